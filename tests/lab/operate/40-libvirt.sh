#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 1500
# libvirt makes and keeps vGPUs, and the examples of libvirt-xml/ start: console, locked memory, two
# vGPUs, plugging in and out; saving is refused with a reason; reboot, reset and destroy leave it whole.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/domains.sh"
cycles=3
[[ ${OCTAVO_SOAK:-} ]] && cycles=10

cleanup() {
	local name
	domains_remove desktop later limited twin
	for name in $(virsh -q nodedev-list --cap mdev --all 2>/dev/null); do
		virsh -q nodedev-destroy "$name" >/dev/null 2>&1 || true
		virsh -q nodedev-undefine "$name" >/dev/null 2>&1 || true
	done
}
trap cleanup EXIT
domains_prepare
locked_bytes() {
	awk '/^Max locked memory/ { print $4 }' "/proc/$(cat "/run/libvirt/qemu/$1.pid")/limits"
}

note "the types, as libvirt sees them"
parent=$(gpu_parent)
node=pci_${parent//[:.]/_}
assert_match "parents" "$(virsh -q nodedev-list --cap mdev_types)" "$node"
types=$(virsh nodedev-dumpxml "$node")
for share in 1_2 1_4 1_8; do
	assert_match "types of $node" "$types" "<type id='$(vgpu_type $share "$parent")'>"
done
assert_match "their names" "$types" '<name>Octavo 1/4</name>'
assert_match "what is left" "$types" '<availableInstances>8</availableInstances>'

note "nodedev-create and nodedev-destroy"
uuid=$(cat /proc/sys/kernel/random/uuid)
nodedev() {
	sed -e "s/@PARENT@/$node/" -e "s/@TYPE@/$(vgpu_type "$2" "$parent")/" -e "s/@UUID@/$1/" \
		"$examples/nodedev.xml.in" >"$work/nodedev.xml"
}
device=mdev_${uuid//-/_}_${parent//[:.]/_}
nodedev "$uuid" 1_8
assert_ok virsh nodedev-create "$work/nodedev.xml"
[[ -e /sys/bus/mdev/devices/$uuid ]] || fail "nodedev-create made no vGPU $uuid"
assert_match "libvirt's list" "$(virsh -q nodedev-list --cap mdev)" "$device"
assert_ok virsh nodedev-destroy "$device"
[[ ! -e /sys/bus/mdev/devices/$uuid ]] || fail "nodedev-destroy left the vGPU"

note "nodedev-define, nodedev-start, nodedev-autostart"
nodedev "$uuid" 1_4
assert_ok virsh nodedev-define "$work/nodedev.xml"
[[ ! -e /sys/bus/mdev/devices/$uuid ]] || fail "nodedev-define started the vGPU"
listed() { virsh -q nodedev-list --cap mdev --inactive | grep -q "$device"; }
wait_for 20 "the definition in libvirt's list" listed
assert_ok virsh nodedev-start "$device"
assert_ok virsh nodedev-autostart "$device"
assert_match "autostart" "$(virsh nodedev-info "$device")" 'Autostart: +yes'
assert_match "mdevctl's view" "$(mdevctl list -d)" "$uuid.*auto"
assert_ok vgpu_is "$uuid" idle
assert_ok virsh nodedev-autostart --disable "$device"

note "a VM whose console is its vGPU"
domain domain-console desktop "$uuid"
assert_ok virsh start desktop
assert_ok agent desktop -w 300 -- sh -c "$has_vgpu"
assert_ok vgpu_is "$uuid" open
assert_eq "name of the VM" "$(octavoctl --json show "$uuid" | jq -r .opener_name)" desktop
assert_eq "locked memory: the guest's and 1 GiB" "$(locked_bytes desktop)" $(((768 + 1024) << 20))
display=$(virsh -q domdisplay desktop)
assert_match "domdisplay" "$display" '^vnc://127\.0\.0\.1:[0-9]+'
read -r -t 10 greeting <"/dev/tcp/127.0.0.1/$((5900 + ${display##*:}))" || fail "no VNC server at $display"
assert_match "the VNC server's greeting" "$greeting" '^RFB '
agent desktop -- sh -c 'id=$(modetest -M virtio_gpu -c | awk "\$3 == \"connected\" { print \$1; exit }")
	setsid sh -c "sleep 3600 | modetest -M virtio_gpu -F smpte -s $id:640x480" >/tmp/modetest.log 2>&1 </dev/null &'
picture() {
	virsh -q screenshot desktop "$work/picture" || return
	case $(head -c 4 "$work/picture" | tr -d '\0') in
	*PNG) pngtopnm "$work/picture" >"$work/picture.ppm" 2>/dev/null || return ;;
	*) cp "$work/picture" "$work/picture.ppm" ;;
	esac
	python3 "$OCTAVO_TREE/tests/lab/spine/bars.py" "$work/picture.ppm" 640 480
}
wait_for 60 "modetest's picture in virsh screenshot" picture

note "saving is refused, with a reason, and harms nothing"
said=$(virsh managedsave desktop 2>&1) && fail "a domain with a vGPU was saved"
note "$said"
assert_match "the reason" "$said" '(VFIO|vfio|host device|migrat)'
assert_ok agent desktop -w 20 -- true

note "reboot from within, reset from without, destroy, start again"
assert_ok agent desktop -r -w 300 -- "$lab/labexec" restart
assert_ok agent desktop -w 300 -- sh -c "$has_vgpu"
boot=$(agent desktop -- cat /proc/sys/kernel/random/boot_id)
assert_ok virsh reset desktop
booted() { [[ $(timeout 20 "$lab/labexec" run -w 15 "$work/desktop"/lab{0,1,2,3} -- cat /proc/sys/kernel/random/boot_id </dev/null) != "$boot" ]]; }
again() { booted && timeout 30 "$lab/labexec" run -w 20 "$work/desktop"/lab{0,1,2,3} -- sh -c "$has_vgpu" </dev/null; }
wait_for 300 "the guest after the reset" again
assert_ok virsh destroy desktop
wait_for 20 "the vGPU to be idle" vgpu_is "$uuid" idle
assert_ok virsh start --paused desktop
assert_ok vgpu_is "$uuid" open
assert_ok virsh destroy desktop
wait_for 20 "the vGPU to be idle" vgpu_is "$uuid" idle

note "two vGPUs in a VM, and a limit of the operator's own"
second=$(vgpu_create 1_8)
domain domain-two twin "$uuid" "$second"
assert_ok virsh start --paused twin
assert_ok vgpu_is "$uuid" open
assert_ok vgpu_is "$second" open
assert_ok virsh destroy twin
wait_for 20 "the vGPU to be idle" vgpu_is "$uuid" idle
domain domain-memlock limited "$uuid"
assert_ok virsh start --paused limited
assert_eq "locked memory: hard_limit" "$(locked_bytes limited)" $((3072 << 20))
assert_ok virsh destroy limited
wait_for 20 "the vGPU to be idle" vgpu_is "$uuid" idle
wait_for 20 "the second to be idle" vgpu_is "$second" idle
assert_ok vgpu_remove "$second"

note "plugged in and out of a running VM"
domain domain-hotplug later
assert_ok virsh start later
assert_ok agent later -w 300 -- true
octavoctl xml "$uuid" >"$work/hostdev.xml"
plugged() { agent later -w 10 -- sh -c "$has_vgpu"; }
unplugged() { ! virsh dumpxml later | grep -q '<hostdev'; }
for ((i = 1; i <= cycles; i++)); do
	assert_ok virsh attach-device later "$work/hostdev.xml"
	wait_for 60 "the vGPU in the guest" plugged
	assert_ok virsh detach-device later "$work/hostdev.xml"
	wait_for 60 "its leave from the domain" unplugged
	wait_for 20 "the vGPU to be idle" vgpu_is "$uuid" idle
	note "$i of $cycles"
done
assert_eq "the guest's PCI devices of ours" "$(agent later -w 20 -- lspci -d 1af4:1050)" ""
assert_ok virsh destroy later
assert_ok virsh nodedev-destroy "$device"
assert_ok virsh nodedev-undefine "$device"
