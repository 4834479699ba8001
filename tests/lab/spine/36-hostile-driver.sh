#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A driver that breaks every rule of virtio gets errors and resets; the same worker serves it to the
# end, and an honest one after it.
# limit: 300
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

uuid=$(vgpu_create 1_8)
seconds=30
[[ ${OCTAVO_SOAK:-} ]] && seconds=240
# octavod lets nobody in before it knows what the GPU can render
ready() {
	"$OCTAVO_BUILD/hostile-queues" "$uuid" 0 >"$tmp/hostile" 2>&1
}
wait_for 60 "an open of the vGPU" ready
"$OCTAVO_BUILD/hostile-queues" "$uuid" "$seconds" >"$tmp/hostile" 2>&1 &
attack=$!
served() {
	[[ -n $(vgpu_worker "$uuid") ]]
}
wait_for 20 "a worker" served
worker=$(vgpu_worker "$uuid")
# the worker may leave only when the device is closed, which the program does as its last act
while kill -0 "$attack" 2>/dev/null; do
	now=$(vgpu_worker "$uuid")
	[[ $now == "$worker" || -z $now ]] || fail "worker $worker was replaced by $now"
	pause 0.5
done
rc=0
wait "$attack" || rc=$?
note "$(cat "$tmp/hostile")"
assert_eq "its exit status" "$rc" 0
assert_match "what was done" "$(cat "$tmp/hostile")" '[1-9][0-9]* rounds.*[1-9][0-9]* broken rings'
assert_ok vgpu_remove "$uuid"
