#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every example and filled template of libvirt-xml/ is what libvirt's schemas allow and its QEMU
# driver takes, and every vGPU in an example domain is the hostdev template's.
# limit: 60
set -euo pipefail
fail() { echo "FAIL: $*" >&2; exit 1; }
cd "$OCTAVO_TREE/libvirt-xml"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

uuid=83b8f4f2-509f-382f-3c1e-e6bfe0fa1001
filled() {
	sed -e "s/@DISPLAY@/$2/" -e 's/@PARENT@/pci_0000_01_00_0/' -e 's/@TYPE@/bochs-drm-octavo_1_8/' \
		-e "s/@UUID@/$uuid/" "$1"
}

# There is no schema of a hostdev alone: within_domain FILE puts it where attach-device does
within_domain() {
	sed "/<\/devices>/{
		s/.*//
		r $1
		a </devices>
	}" domain-hotplug.xml
}

# A schema that allows everything would show nothing
filled hostdev.xml.in perhaps >"$work/hostdev.xml"
within_domain "$work/hostdev.xml" >"$work/wrong.xml"
! virt-xml-validate "$work/wrong.xml" domain >/dev/null 2>&1 ||
	fail "virt-xml-validate allows display='perhaps'"

for display in on off; do
	filled hostdev.xml.in $display >"$work/hostdev.xml"
	within_domain "$work/hostdev.xml" >"$work/domain.xml"
	virt-xml-validate "$work/domain.xml" domain || fail "hostdev.xml.in with display=$display"
done
filled nodedev.xml.in off >"$work/nodedev.xml"
virt-xml-validate "$work/nodedev.xml" nodedev || fail "nodedev.xml.in"
within_domain "$OCTAVO_BUILD/libvirt-xml/hostdev.xml" >"$work/domain.xml"
virt-xml-validate "$work/domain.xml" domain || fail "the build's hostdev.xml"
virt-xml-validate "$OCTAVO_BUILD/libvirt-xml/nodedev.xml" nodedev || fail "the build's nodedev.xml"
for name in hostdev nodedev; do
	! grep '@' "$OCTAVO_BUILD/libvirt-xml/$name.xml" || fail "$name.xml is not filled"
done
for domain in domain-*.xml; do
	virt-xml-validate "$domain" domain || fail "$domain"
done

# The schema knows nothing of what QEMU's machines allow. There may be no KVM here to define it for.
for domain in domain-*.xml; do
	sed -e "s/<domain type='kvm'>/<domain type='qemu'>/" -e "s/mode='host-passthrough'/mode='maximum'/" \
		"$domain" >"$work/$domain"
	virsh -q -c "qemu:///embed?root=$work/libvirt" define "$work/$domain" ||
		fail "libvirt's QEMU driver does not take $domain"
done

# What a template says of display and the UUID is the example's own
python3 - "$work/hostdev.xml" domain-*.xml <<'PYTHON'
import sys, xml.etree.ElementTree as tree

def shape(hostdev):
    own = {key: value for key, value in hostdev.attrib.items() if key not in ("display", "ramfb")}
    return own, [(element.tag, sorted(element.attrib)) for element in hostdev.iter() if element is not hostdev]

wanted = shape(tree.parse(sys.argv[1]).getroot())
found = {}
for path in sys.argv[2:]:
    hostdevs = tree.parse(path).getroot().findall("devices/hostdev")
    found[path] = len(hostdevs)
    for hostdev in hostdevs:
        assert shape(hostdev) == wanted, f"{path}: {shape(hostdev)} instead of {wanted}"
    uuids = [hostdev.find("source/address").get("uuid") for hostdev in hostdevs]
    assert len(set(uuids)) == len(uuids), f"{path}: one vGPU twice"
assert found == {"domain-console.xml": 1, "domain-headless.xml": 1, "domain-hotplug.xml": 0,
                 "domain-memlock.xml": 1, "domain-two.xml": 2}, found
PYTHON
echo "ok: libvirt's schemas and its QEMU driver allow every example"
