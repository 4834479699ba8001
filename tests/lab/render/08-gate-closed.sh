#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 400
# While a vGPU's gate is closed in the middle of its work, all that needs no GPU goes on: the cursor
# moves, and a guest that restarts finds its device. Its work goes on when the gate opens.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/../spine/cursor.sh"

held=$tmp/gate-held
trap 'rm -f "$held"; octavod_goes_on' EXIT
# close_gate: until open_gate. octavod must not open it: it stands still meanwhile.
close_gate() {
	local worker
	worker=$(vgpu_worker "$uuid")
	[[ $worker ]] || fail "no worker: $(ps -eo pid,comm,args | grep octavo)"
	octavod_stands_still
	touch "$held"
	rm -f "$tmp/holder"
	python3 "$here/hold_gate.py" "$worker" "$held" >"$tmp/holder" 2>&1 &
	holder=$!
	wait_for 20 "the gate to close" grep -q '^closed' "$tmp/holder"
}
open_gate() {
	rm -f "$held"
	wait "$holder" || fail "the gate was not held: $(cat "$tmp/holder")"
	octavod_goes_on
}
here=$(dirname "$(readlink -f "$0")")

render_configure
uuid=$(vgpu_create 1_4)
guest-start --display g1 "$uuid"
guest_give g1 vk_check
cursor_begin g1
cursor_tell cursor 100 80 0 0
cursor_expect "a cursor" 100 80

guest g1 /tmp/vk_check --rounds 2000 --dispatches 40 >"$tmp/vk" 2>&1 &
work=$!
wait_for 60 "the program computes" grep -q '^driver' "$tmp/vk"
close_gate
cursor_tell move 300 200
cursor_expect "the cursor, moved at a closed gate," 300 200
kill -0 "$work" 2>/dev/null || fail "the program ended before its gate was closed: $(cat "$tmp/vk")"
open_gate
wait "$work" || fail "the program: $(cat "$tmp/vk")"
assert_match "the program's words" "$(cat "$tmp/vk")" 'exact: 65 of 65'

note "a restart of the guest at a closed gate"
guest g1 /tmp/vk_check --rounds 2000 --dispatches 1000 >"$tmp/vk" 2>&1 &
wait_for 60 "the program computes" grep -q '^driver' "$tmp/vk"
close_gate
qmp g1 '{"execute":"system_reset"}' >/dev/null
back() {
	guest-exec -w 100 g1 -- test -e /sys/class/drm/card0-Virtual-1
}
wait_for 150 "the guest and its driver" back
[[ -e $held ]] || fail "the gate was not held"
open_gate
guest_give g1 vk_check
assert_match "words after it" "$(guest g1 /tmp/vk_check)" 'exact: 65536 of 65536'
