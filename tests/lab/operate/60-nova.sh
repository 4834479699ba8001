#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: named
# limit: 1200
# OpenStack Nova's own libvirt driver, configured by octavoctl nova-conf: it lists the types, offers
# what exists and what fits, makes vGPUs, hands free ones on, gives them to servers, and starts them.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$OCTAVO_TREE/tests/guest/common.sh"
work=/var/lib/octavo-nova

cleanup() {
	local name
	for name in $(virsh -q list --all --name); do
		virsh -q destroy "$name" >/dev/null 2>&1 || true
		virsh -q undefine "$name" >/dev/null 2>&1 || true
	done
	rm -rf "$work"
}
trap cleanup EXIT

python3 -c 'import libvirt' ||
	fail "Nova's driver needs libvirt's Python binding: add python3-libvirt to lab.d/packages.host.tests"
mkdir -p "$work/instances"
cat >"$work/nova.conf" <<NOVA
[DEFAULT]
instances_path = $work/instances
state_path = $work
my_ip = 127.0.0.1
debug = true
log_file = $OCTAVO_OUT/logs/nova.log
[libvirt]
virt_type = kvm
cpu_mode = host-passthrough
cpu_model_extra_flags = -svm
[oslo_concurrency]
lock_path = $work
NOVA
# nova WORD...: with what octavoctl printed as it is
nova() {
	local mode=$1
	shift
	python3 "$OCTAVO_TREE/tests/lab/operate/nova-driver.py" "$mode" "$@" "$work/nova.conf" "$work/octavo.conf" ||
		fail "Nova's driver, $mode: see above, and nova.log"
}
mapfile -t parents < <(gpu_parents)
names=("${parents[@]//[:.]/_}")

note "two sizes: a class for each, and what something else made counts"
octavoctl nova-conf 1/8 "${parents[1]}=1/2" >"$work/octavo.conf"
cat "$work/octavo.conf"
existing=$(vgpu_create 1_8 "${parents[0]}")
foreign=$(vgpu_create 1_2 "${parents[0]}")
assert_eq "inventory" "$(nova inventory)" \
	"pci_${names[0]} CUSTOM_OCTAVO_1_8 4"$'\n'"pci_${names[1]} CUSTOM_OCTAVO_1_2 2"
assert_ok vgpu_remove "$existing"
assert_ok vgpu_remove "$foreign"

note "one size: tenants"
octavoctl nova-conf 1/4 >"$work/octavo.conf"
cat "$work/octavo.conf"
nova tenants "$lab/guest" "$guest_words"
