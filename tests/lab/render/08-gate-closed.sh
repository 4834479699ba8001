#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 400
# While a vGPU's gate is closed in the middle of its work, all that needs no GPU goes on: the cursor
# moves, and a guest that restarts finds its device. Its work goes on when the gate opens.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/../spine/screen.sh"

held=$tmp/gate-held
daemon=
# systemd takes a daemon that stood still for a hung one until it hears from it again.
daemon_goes_on() {
	[[ $daemon ]] || return 0
	kill -CONT "$daemon"
	wait_for 30 "octavod's sign of life" daemon_heard
	systemctl service-watchdogs yes
	daemon=
}
daemon_heard() {
	[[ $(systemctl show -p WatchdogTimestampMonotonic octavod) != "$heard" ]]
}
trap 'rm -f "$held"; daemon_goes_on' EXIT
# close_gate: until open_gate. octavod must not open it: it stands still meanwhile.
close_gate() {
	local worker
	worker=$(vgpu_worker "$uuid")
	[[ $worker ]] || fail "no worker: $(ps -eo pid,comm,args | grep octavo)"
	systemctl service-watchdogs no
	daemon=$(systemctl show -p MainPID --value octavod)
	kill -STOP "$daemon"
	heard=$(systemctl show -p WatchdogTimestampMonotonic octavod)
	touch "$held"
	rm -f "$tmp/holder"
	python3 "$here/hold_gate.py" "$worker" "$held" >"$tmp/holder" 2>&1 &
	holder=$!
	wait_for 20 "the gate to close" grep -q '^closed' "$tmp/holder"
}
open_gate() {
	rm -f "$held"
	wait "$holder" || fail "the gate was not held: $(cat "$tmp/holder")"
	daemon_goes_on
}
here=$(dirname "$(readlink -f "$0")")
spine=$here/../spine

render_configure
gcc -O1 -Wall -I/usr/include/libdrm -o "$tmp/kms" "$spine/kms.c"
uuid=$(vgpu_create 1_4)
guest-start --display g1 "$uuid"
guest_give g1 vk_check
guest-exec -i g1 -- sh -c 'cat >/run/kms; chmod 755 /run/kms' <"$tmp/kms"
coproc kms { guest-exec -i g1 -- /run/kms 640 480 2>&1; }
kms_in=${kms[1]} kms_out=${kms[0]}
tell() {
	local answer
	echo "$*" >&"$kms_in"
	read -rt 30 answer <&"$kms_out" || fail "the guest's program does not answer '$*'"
	assert_eq "the guest's answer to '$*'" "$answer" ok
}
shown() {
	screendump g1 "$tmp/cursor.ppm" && python3 "$spine/cursor.py" "$tmp/cursor.ppm" 640 480 "$@" >"$tmp/differs" 2>&1
}
read -rt 60 answer <&"$kms_out" || fail "the guest's program does not start"
assert_eq "the guest's picture" "$answer" ok
tell cursor 100 80 0 0
wait_for 30 "a cursor" shown 100 80

guest g1 /tmp/vk_check --rounds 2000 --dispatches 40 >"$tmp/vk" 2>&1 &
work=$!
wait_for 60 "the program computes" grep -q '^driver' "$tmp/vk"
close_gate
tell move 300 200
wait_for 30 "the cursor moves at a closed gate" shown 300 200
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
