#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# octavod that is killed or stands still costs order, not progress: guests go on computing, no gate
# stays closed, and their shares hold again with the next one. Work that never ends is ended by the
# watchdog, named, and its vGPU held off when it does so again; the guest beside it goes on.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../render/common.sh"
. "$(dirname "$0")/common.sh"

conf=/etc/octavo/octavo.conf.d/zz-watchdog.conf
trap 'octavod_goes_on; rm -f "$conf"; systemctl reload octavod' EXIT
render_configure
octavoctl policy "$(gpu_parent)" elastic >/dev/null
rounds=$(rounds_of 10)
guests_on 1_2 1_4

note "stopped under load"
guest g1 /tmp/vk_check --rounds "$rounds" --seconds 15 >"$tmp/background" 2>&1 &
background=$!
wait_for 60 "the first guest computes" grep -q '^driver' "$tmp/background"
octavod_stands_still
output=$(guest g2 timeout 60 /tmp/vk_check --rounds "$rounds" --seconds 5) || fail "at a stopped arbiter: $output"
assert_match "work at a stopped arbiter" "$output" 'work: [0-9.]*[1-9]'
octavod_goes_on
wait "$background" || fail "the first guest: $(cat "$tmp/background")"
assert_match "results over the stop" "$(cat "$tmp/background")" 'exact: (65 of 65|65536 of 65536) words'

note "killed under load"
guest g1 /tmp/vk_check --rounds "$rounds" --seconds 15 >"$tmp/background" 2>&1 &
background=$!
wait_for 60 "the first guest computes" grep -q '^driver' "$tmp/background"
systemctl kill --kill-whom=main --signal=KILL octavod
output=$(guest g2 timeout 60 /tmp/vk_check --rounds "$rounds" --seconds 5) || fail "without an arbiter: $output"
assert_match "work without an arbiter" "$output" 'work: [0-9.]*[1-9]'
wait "$background" || fail "the first guest: $(cat "$tmp/background")"
wait_for 30 "octavod to answer" octavoctl list
compute 20 "$rounds" 1 2
assert_share "elastic, after its return" 1 66.7 4 1 2

note "work that never ends"
printf '[gpu any]\nwatchdog = 5 s\n' >"$conf"
systemctl reload octavod
guest g2 /tmp/vk_check --rounds "$rounds" --seconds 90 >"$tmp/neighbour" 2>&1 &
neighbour=$!
for ((i = 1; i <= 3; i++)); do
	rc=0
	# 4e9 rounds take hours
	guest g1 timeout 120 /tmp/vk_check --rounds 4000000000 >"$tmp/endless" 2>&1 || rc=$?
	[[ $rc -ne 0 && $rc -ne 124 ]] || fail "the endless work ended with status $rc: $(cat "$tmp/endless")"
	note "time $i: ended with status $rc"
	told() { [[ $(octavoctl log | grep -c "hang +${uuids[0]}\|hang.*${uuids[0]}") -ge $i ]]; }
	wait_for 20 "the log to name the culprit" told
done
assert_match "the third time" "$(octavoctl log | grep hang)" 'no turns for a while'
wait "$neighbour" || fail "the neighbour: $(cat "$tmp/neighbour")"
assert_match "the neighbour's results" "$(cat "$tmp/neighbour")" 'exact: (65 of 65|65536 of 65536) words'
! octavoctl log | grep hang | grep -q "${uuids[1]}" || fail "the neighbour is named a culprit"
