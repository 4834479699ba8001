#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: proof
# limit: 900
# octavod that is killed or stands still costs order, not progress: guests go on computing, no gate
# stays closed, and their shares hold again with the next one.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../render/common.sh"
. "$(dirname "$0")/common.sh"

render_configure
octavoctl policy "$(gpu_parent)" elastic >/dev/null
rounds=$(rounds_of 10)
guests_on 1_2 1_4

note "stopped under load"
trap octavod_goes_on EXIT
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
