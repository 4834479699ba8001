#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A UUID exists once: a second create is EEXIST, of three at once exactly one wins, on one GPU or
# on two, and nothing leaks. octavod and octavoctl see what was created.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

parent=$(gpu_parent)
mapfile -t parents < <(gpu_parents)
uuid=$(cat /proc/sys/kernel/random/uuid)
create=/sys/class/mdev_bus/$parent/mdev_supported_types/$(vgpu_type 1_8)/create

echo "$uuid" >"$create"
assert_eq "1/8 left" "$(vgpu_available 1_8)" 7
assert_fails 'File exists' bash -c "echo $uuid >'$create'"
assert_eq "1/8 left after the duplicate" "$(vgpu_available 1_8)" 7

wait_for 5 "octavoctl to list it" bash -c "octavoctl list | grep -q $uuid"
assert_match "octavoctl list" "$(octavoctl list)" "$uuid  1/8   $parent  idle"
assert_eq "type by D-Bus" "$(octavoctl --json show "$uuid" | jq -r .type)" "$(vgpu_type 1_8)"
assert_eq "octavoctl types" "$(octavoctl --json types |
	jq -r ".[] | select(.gpu_address == \"$parent\" and .eighths == 1).available_instances")" 7
assert_ok mdevctl stop -u "$uuid"
wait_for 5 "octavoctl to forget it" bash -c "! octavoctl list 2>&1 | grep -q $uuid"

for round in {1..20}; do
	uuid=$(cat /proc/sys/kernel/random/uuid)
	won=0
	pids=()
	for n in 0 1 2; do
		where=${parents[$((n % ${#parents[@]}))]}
		bash -c "echo $uuid >/sys/class/mdev_bus/$where/mdev_supported_types/$(vgpu_type 1_4 "$where")/create" 2>/dev/null &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" && won=$((won + 1))
	done
	assert_eq "winners of round $round" "$won" 1
	assert_eq "vGPUs in round $round" "$(vgpus | wc -l)" 1
	echo 1 >"/sys/bus/mdev/devices/$uuid/remove"
	for where in "${parents[@]}"; do
		assert_eq "1/8 of $where after round $round" "$(vgpu_available 1_8 "$where")" 8
	done
done

note "octavoctl create and remove do the same through octavod"
uuid=$(octavoctl create 1/4 --gpu "$parent")
assert_eq "1/4 left" "$(vgpu_available 1_4)" 3
assert_fails "vGPU $uuid already" octavoctl create 1/4 --gpu "$parent" --uuid "$uuid"
octavoctl create 1/2 --gpu "$parent" >/dev/null
assert_fails 'takes 4 eighths.* has 2 of 8 free' octavoctl create 1/2 --gpu "$parent"
for each in $(octavoctl --json list | jq -r '.[].uuid'); do
	assert_ok octavoctl remove "$each"
done
assert_eq "vGPUs at the end" "$(vgpus | wc -l)" 0
assert_fails "no vGPU '$uuid'" octavoctl remove "$uuid"
