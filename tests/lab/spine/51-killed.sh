#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# kill -9 of QEMU, of the worker and of octavod: each is followed by a working guest.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/screen.sh"

uuid=$(vgpu_create 1_4)
guest-start --display victim "$uuid"
guest_paints victim

note "QEMU"
pid=$(vgpu_worker "$uuid")
assert_ok guest-stop --kill victim
wait_for 10 "end of the worker after its VM" test ! -d "/proc/$pid"
assert_ok guest-start --display victim "$uuid"
guest_paints victim
boot=$(guest victim cat /proc/sys/kernel/random/boot_id)

note "worker"
old=$(vgpu_worker "$uuid")
kill -KILL "$old"
wait_for 20 "a replacement of the worker" worker_replaced "$uuid" "$old"
# The dead worker's picture stays until the driver resets the device.
guest victim pkill -x modetest || true
virtio=$(guest_virtio victim)
assert_ok guest_driver victim unbind "$virtio"
assert_ok guest_driver victim bind "$virtio"
guest_paints victim

note "octavod"
worker=$(vgpu_worker "$uuid")
old_daemon=$(pidof octavod)
systemctl kill --kill-whom=main --signal=KILL octavod
restarted() {
	local now
	now=$(pidof octavod)
	[[ $now && $now != "$old_daemon" ]] && systemctl is-active --quiet octavod && octavoctl list
}
wait_for 30 "return of octavod" restarted
assert_eq "worker of the running guest" "$(vgpu_worker "$uuid")" "$worker"
guest_paints victim
assert_eq "boot of the guest, through all of it" "$(guest victim cat /proc/sys/kernel/random/boot_id)" "$boot"
# The new daemon looks after what the old one began.
kill -KILL "$worker"
wait_for 20 "a replacement of the adopted worker" worker_replaced "$uuid" "$worker"
assert_ok guest-stop victim
