#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# Given a guest that binds and unbinds its driver with rendering in between, the host's open files,
# processes and pinned pages are as before.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/../spine/screen.sh"

cycles=2
[[ ${OCTAVO_SOAK:-} ]] && cycles=20
render_configure
uuid=$(vgpu_create 1_4)
guest-start g1 "$uuid"
guest_give g1 gl_check vk_check
device=$(guest_virtio g1)
cycle() {
	assert_ok guest g1 /tmp/gl_check
	assert_ok guest g1 /tmp/vk_check
	assert_ok guest_driver g1 unbind "$device"
	assert_ok guest_driver g1 bind "$device"
	wait_for 30 "the driver is back" guest g1 test -c /dev/dri/renderD128
}
count() {
	local worker
	worker=$(vgpu_worker "$uuid")
	echo "$(ls "/proc/$worker/fd" | wc -l) $(pgrep -fc virgl_render_server)"
}
assert_driver() {
	! guest g1 dmesg | grep -q 'timed out waiting for cap set' || fail "the guest's driver waited too long for an answer"
}
cycle
before=$(count)
for ((i = 0; i < cycles; i++)); do
	cycle
done
assert_driver
assert_eq "open files of the worker, render processes" "$(count)" "$before"
