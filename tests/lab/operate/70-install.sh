#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: own-vm
# needs: bare
# needs: named
# limit: 900
# From a host that never saw octavo to a guest with a vGPU, and back, by the commands of
# docs/install.md themselves. What they build was built by the same document's command before
# (lab.d/packages-inside), as an emulated CPU takes too long.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../packages/common.sh"
. "$OCTAVO_TREE/tests/guest/common.sh"

# document NAME: the commands of that block of the document, in this shell, up to the first that fails
document() {
	local commands
	commands=$("$OCTAVO_TREE/tests/doc-block" "$OCTAVO_TREE/docs/install.md" "$1")
	commands=${commands/.../"${dots:-}"}
	note "$commands"
	eval "$commands" </dev/null
}

# The lab's hosts reach no archive. What the document wants of Debian is installed, except for the
# package that names the newest kernel's headers.
archive() {
	local repository=$tmp/repository headers
	headers=$(dpkg-query -W -f '${Package}\n' "linux-headers-$kernel")
	mkdir -p "$repository/pack/DEBIAN"
	printf '%s\n' 'Package: linux-headers-amd64' 'Version: 1' 'Architecture: amd64' \
		'Maintainer: lab <root@localhost>' "Depends: $headers" 'Description: the lab'\''s' \
		>"$repository/pack/DEBIAN/control"
	dpkg-deb -Znone -b "$repository/pack" "$repository/" >/dev/null
	rm -r "$repository/pack"
	(cd "$repository" && dpkg-scanpackages . >Packages 2>/dev/null)
	mkdir -p /etc/apt/sources.list.kept
	mv /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/sources.list.kept/ 2>/dev/null || true
	echo "deb [trusted=yes] file:$repository ./" >/etc/apt/sources.list
	# nobody is there to say yes
	printf 'APT::Get::Assume-Yes "true";\nAPT::Sandbox::User "root";\n' >/etc/apt/apt.conf.d/zz-lab
	apt-get update >/dev/null 2>&1
}
export DEBIAN_FRONTEND=noninteractive
archive
lab_figures
kernels_hide

# As a tree that was unpacked, with what its build leaves beside it
mkdir -p "$tmp/source/octavo"
cp -r "$OCTAVO_TREE/debian" "$tmp/source/octavo/"
cd "$tmp/source/octavo"
document prepare
cp "$packages"/octavo*.deb ..
document install

note "look"
gpus_wait
# The lab's GPUs have no render node, of which it warns (6).
document doctor || [[ $? -eq 6 ]] || fail "the doctor finds this host unfit"
document look >"$tmp/look"
cat "$tmp/look"

note "the first vGPU"
assert_match "what the document has for the reader to choose" \
	"$("$OCTAVO_TREE/tests/doc-block" "$OCTAVO_TREE/docs/install.md" choose)" '^gpu=[0-9a-f:.]+ type=[a-z]+-octavo_1_4$'
read -r gpu type < <(octavoctl --json types | jq -r '[.[] | select(.id | endswith("octavo_1_4"))][0] | "\(.gpu_address) \(.id)"')
document create
assert_match "the vGPU's UUID" "$uuid" '^[0-9a-f-]{36}$'

ports=()
for i in 0 1 2 3; do
	ports+=(-chardev "socket,id=lab$i,path=$tmp/lab$i,server=on,wait=off"
		-device "virtserialport,chardev=lab$i,name=lab$i")
done
disk=(-machine smm=off -m 768 -nodefaults -display none -serial "file:$OCTAVO_OUT/logs/install-guest.log"
	-kernel "$lab/guest/vmlinux-6.12" -initrd "$lab/guest/initrd-6.12.cpio" -append "$guest_words"
	-drive file=/dev/disk/by-id/virtio-guest,if=none,id=root,format=raw,readonly=on
	-device virtio-blk-pci,drive=root -device virtio-serial-pci,max_ports=8 "${ports[@]}")
dots=$(printf '%q ' "${disk[@]}")
document guest >"$tmp/qemu.log" 2>&1 &
qemu=$!
trap 'kill "$qemu" 2>/dev/null || true; kernels_unhide' EXIT
up() { "$lab/labexec" run -w 1 "$tmp"/lab{0,1,2,3} -- true </dev/null || ! kill -0 "$qemu"; }
wait_for 240 "the guest" up
kill -0 "$qemu" || fail "QEMU ended: $(cat "$tmp/qemu.log")"
assert_match "the guest's device" \
	"$("$lab/labexec" run -w 20 "$tmp"/lab{0,1,2,3} -- lspci -k -d 1af4:1050 </dev/null)" 'Kernel driver in use: virtio-pci'
wait_for 20 "the vGPU to be open" vgpu_is "$uuid" open
document define
assert_match "what mdevctl keeps" "$(mdevctl list -d)" "$uuid $gpu $type auto"

note "away again"
"$lab/labexec" run "$tmp"/lab{0,1,2,3} -- "$lab/labexec" poweroff </dev/null >/dev/null 2>&1 || true
wait "$qemu" || fail "QEMU ended with $?: $(cat "$tmp/qemu.log")"
document stop
assert_eq "vGPUs" "$(vgpus)" ""
assert_eq "definitions" "$(mdevctl list -d)" ""
document purge
! pgrep -x octavod >/dev/null || fail "octavod still runs"
[[ ! -e /usr/sbin/octavod ]] || fail "octavod is still there"
