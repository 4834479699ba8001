#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: proof
# limit: 900
# Work that never ends is ended by the watchdog, named, and its vGPU held off when it does so again;
# the guest beside it goes on.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../render/common.sh"
. "$(dirname "$0")/common.sh"

conf=/etc/octavo/octavo.conf.d/zz-watchdog.conf
render_configure
printf '[gpu any]\nwatchdog = 5 s\n' >"$conf"
systemctl reload octavod
trap 'rm -f "$conf"; systemctl reload octavod' EXIT
rounds=$(rounds_of 10)
guests_on 1_4 1_4

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
