#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# limit: 400
# needs: proof
# Whatever ends while a guest kicks through a bound doorbell, nothing hangs and nothing is left: the
# worker, the guest's use of the device, its place in the guest, the mdev.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../doorbell/common.sh"
. "$(dirname "$0")/common.sh"

trap polling_back EXIT
polling_off
uuid=$(vgpu_create 1_4)
guest-start --qemu patched lives "$uuid"
ping_prepare lives

kicking() {
	[[ $(counter "$uuid" kicks) -gt $((before + 20)) ]]
}
# The guest kicks, without an end of its own; sets ping.
ping_begin() {
	before=$(counter "$uuid" kicks)
	guest lives /tmp/vq_ping "$address" 1000000 0 >"$tmp/ping" 2>&1 &
	ping=$!
	wait_for 30 "kicks" kicking
}

note "the worker dies"
ping_begin
worker=$(vgpu_worker "$uuid")
kill -KILL "$worker"
rc=0
wait "$ping" || rc=$?
assert_eq "the program whose worker died" "$rc" 1
assert_match "its message" "$(cat "$tmp/ping")" 'no answer to request'
wait_for 20 "a replacement" worker_replaced "$uuid" "$worker"
kicks_of lives "$uuid" 200
assert_within "kicks told to the module" "$told" "$kicks" $((kicks + 10))

note "the program is killed, and another resets the device"
for i in 1 2 3; do
	ping_begin
	guest lives pkill -KILL -x vq_ping || fail "round $i: vq_ping does not run any more: $(cat "$tmp/ping")"
	wait "$ping" || true
	kicks_of lives "$uuid" 50
done

note "the mdev is removed"
ping_begin
assert_ok timeout 60 mdevctl stop -u "$uuid"
assert_eq "vGPUs" "$(vgpus | wc -l)" 0
wait_for 10 "the end of its worker" sh -c "! pgrep -x octavo-vgpu"
assert_eq "state of the guest" "$(guest lives uname -s)" Linux
wait "$ping" || true
assert_ok guest-stop lives
