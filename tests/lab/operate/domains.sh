# SPDX-License-Identifier: LGPL-2.1-or-later
# Domains of libvirt that boot the lab's guest, out of the examples of libvirt-xml/. Sourced after
# lib.sh, never run.

. "$OCTAVO_TREE/tests/guest/common.sh"
examples=$OCTAVO_TREE/libvirt-xml
work=/run/octavo-libvirt

# QEMU runs as a user of its own: what it opens has to be its to read, and to make sockets in
domains_prepare() {
	mkdir -p "$work"
	cp "$lab/guest/vmlinux-6.12" "$lab/guest/initrd-6.12.cpio" "$work/"
	chmod 755 "$work"
	chmod 644 "$work"/*
}

# domain EXAMPLE NAME [UUID...]: define it
domain() {
	local example=$1 name=$2
	shift 2
	rm -rf "${work:?}/$name"
	mkdir "$work/$name"
	chown libvirt-qemu: "$work/$name"
	python3 "$OCTAVO_TREE/tests/lab/operate/guest-domain.py" "$examples/$example.xml" "$name" "$work/$name" \
		"$work/vmlinux-6.12" "$work/initrd-6.12.cpio" "$guest_words" "$@" >"$work/$name.xml"
	assert_ok virt-xml-validate "$work/$name.xml" domain
	assert_ok virsh define "$work/$name.xml"
}

# agent NAME [OPTION...] -- CMD...: CMD in that guest
agent() {
	local name=$1 options=()
	shift
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	"$lab/labexec" run "${options[@]}" "$work/$name"/lab{0,1,2,3} "$@" </dev/null
}

# domains_remove NAME...: whatever is there of them
domains_remove() {
	local name
	for name; do
		virsh -q destroy "$name" >/dev/null 2>&1 || true
		virsh -q undefine "$name" >/dev/null 2>&1 || true
	done
	rm -rf "$work"
}

has_vgpu='lspci -k -d 1af4:1050 | grep -q "Kernel driver in use: virtio-pci"'
