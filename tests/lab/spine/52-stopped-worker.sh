#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# A worker that does not run costs the guest its pictures, never a vCPU.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/screen.sh"

uuid=$(vgpu_create 1_4)
guest-start --smp 2 --display calm "$uuid"
guest_paints calm
address=$(guest calm sh -c 'lspci -D -d 1af4:1050 | cut -d" " -f1')
virtio=$(guest_virtio calm)

# Everything the guest does without its pictures, while nobody serves its queues.
goes_on() {
	assert_match "configuration space" "$(guest calm timeout 20 lspci -vv -s "$address")" 'VirtIO: CommonCfg'
	assert_eq "another vCPU's work" \
		"$(guest calm timeout 60 taskset -c 1 sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo $i')" 20000
}

guest_blank calm
note "stopped"
worker=$(vgpu_worker "$uuid")
kill -STOP "$worker"
goes_on
assert_ok guest calm timeout 90 sh -c "echo $virtio >/sys/bus/virtio/drivers/virtio_gpu/unbind"
assert_ok guest-restart -w 240 calm
goes_on
kill -CONT "$worker"
wait_for 30 "the worker running again" sh -c "! grep -q '^State:.*T' /proc/$worker/status"
# Linux gives up on its head when nobody answered at probe: begin anew, as a reload does.
virtio=$(guest_virtio calm)
guest calm sh -c "echo $virtio >/sys/bus/virtio/drivers/virtio_gpu/unbind" || true
assert_ok guest_driver calm bind "$virtio"
guest_paints calm

note "dead, and no replacement"
guest_blank calm
systemctl stop octavod
kill -KILL "$(vgpu_worker "$uuid")"
goes_on
assert_ok guest calm timeout 90 sh -c "echo $virtio >/sys/bus/virtio/drivers/virtio_gpu/unbind"
assert_ok guest-restart -w 240 calm
goes_on
systemctl start octavod
served() {
	[[ $(vgpu_worker "$uuid") ]]
}
wait_for 20 "a worker once octavod is back" served
virtio=$(guest_virtio calm)
guest calm sh -c "echo $virtio >/sys/bus/virtio/drivers/virtio_gpu/unbind" || true
assert_ok guest_driver calm bind "$virtio"
guest_paints calm
assert_ok guest-stop calm
