#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Everybody may look; only root and the group octavo may change, by polkit. octavod and its workers
# are confined.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

stranger=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
useradd -M -N -G octavo octavo-test
trap 'userdel octavo-test' EXIT
member=(setpriv --reuid=octavo-test --regid=nogroup --init-groups)

uuid=$(octavoctl create 1/4)
assert_match "a stranger looks" "$("${stranger[@]}" octavoctl list)" "$uuid"
assert_match "at counters too" "$("${stranger[@]}" octavoctl show "$uuid")" 'registers: 0'
assert_fails 'not allowed' "${stranger[@]}" octavoctl create 1/8
assert_fails 'not allowed' "${stranger[@]}" octavoctl remove "$uuid"
assert_fails 'not allowed' "${stranger[@]}" octavoctl resize "$uuid" 1024x768
assert_fails 'not allowed' "${stranger[@]}" octavoctl policy "$(gpu_parent)" equal-share
assert_ok "${member[@]}" octavoctl resize "$uuid" 1024x768
assert_match "the mode" "$(octavoctl list)" 1024x768
assert_ok "${member[@]}" octavoctl remove "$uuid"
[[ $(stat -c %a:%U /dev/octavo) == 600:root ]] || fail "/dev/octavo is $(stat -c %a:%U /dev/octavo)"

exposure=$(systemd-analyze security --no-pager octavod.service | sed -n 's/.*Overall exposure level for octavod.service: \([0-9.]*\).*/\1/p')
note "systemd-analyze security: exposure $exposure"
awk -v e="$exposure" 'BEGIN { exit !(e > 0 && e <= 5.0) }' || fail "octavod's exposure is $exposure"

note "policy and slice change at run time, wrong ones are refused"
gpu=$(gpu_parent)
assert_ok octavoctl policy "$gpu" fixed-share
assert_ok octavoctl slice "$gpu" 2.5
assert_eq "policy" "$(octavoctl --json gpus | jq -r ".[] | select(.address == \"$gpu\").policy")" fixed-share
assert_eq "slice" "$(octavoctl --json gpus | jq -r ".[] | select(.address == \"$gpu\").slice_us")" 2500
assert_fails 'best-effort, equal-share' octavoctl policy "$gpu" fair
assert_fails '1000 to 30000' octavoctl slice "$gpu" 31
assert_fails 'no GPU' octavoctl slice 0000:ff:00.0 5
systemctl reload octavod
policy_is() { [[ $(octavoctl --json gpus | jq -r ".[] | select(.address == \"$gpu\").policy") == "$1" ]]; }
wait_for 10 "the configuration's policy to be back" policy_is elastic
