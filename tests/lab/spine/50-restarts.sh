#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 1500
# A guest that reboots, starts another kernel by kexec, or rebinds its driver finds a working vGPU.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/screen.sh"

cycles=1
[[ ${OCTAVO_SOAK:-} ]] && cycles=20
uuid=$(vgpu_create 1_4)
guest-start --display life "$uuid"
guest_paints life

for ((i = 1; i <= cycles; i++)); do
	before=$(guest life cat /proc/sys/kernel/random/boot_id)
	assert_ok guest-restart -w 180 life
	[[ $(guest life cat /proc/sys/kernel/random/boot_id) != "$before" ]] || fail "no reboot $i"
	guest_paints life
	note "reboot $i of $cycles"
done

# The old kernel's driver is not told of a kexec: its rings are live when the new one begins.
assert_ok guest life sh -c 'version=$(uname -r)
	kexec -l /boot/vmlinuz-$version --initrd=/boot/lab-initrd-$(echo $version | cut -d. -f1,2) --reuse-cmdline'
before=$(guest life cat /proc/sys/kernel/random/boot_id)
assert_ok guest-exec -r -w 180 life -- kexec -e
[[ $(guest life cat /proc/sys/kernel/random/boot_id) != "$before" ]] || fail "no kexec"
guest_paints life

virtio=$(guest_virtio life)
for ((i = 1; i <= cycles; i++)); do
	guest_blank life
	assert_ok guest_driver life unbind "$virtio"
	assert_ok guest_driver life bind "$virtio"
	guest_paints life
done

pid=$(vgpu_worker "$uuid")
assert_ok guest-stop --power life
wait_for 10 "end of the worker after its VM" test ! -d "/proc/$pid"
assert_ok vgpu_remove "$uuid"
