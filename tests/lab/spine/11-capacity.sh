#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# Given a GPU of eight eighths: every mix of types that fits can be created, one that does not is
# ENOSPC, and the counts of all types are right before and after each step.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

parent=$(gpu_parent)
types=/sys/class/mdev_bus/$parent/mdev_supported_types
declare -A eighths=([1_2]=4 [1_4]=2 [1_8]=1) id
for share in 1_2 1_4 1_8; do
	id[$share]=$(vgpu_type "$share" "$parent")
done
used=0
made=()

uuid_new() {
	read -r uuid </proc/sys/kernel/random/uuid
}

# The remaining count of each type follows from the free eighths.
check_counts() {
	local share count
	for share in 1_2 1_4 1_8; do
		read -r count <"$types/${id[$share]}/available_instances"
		assert_eq "available $share with $used eighths used" "$count" $(((8 - used) / eighths[$share]))
	done
}

create() {
	uuid_new
	echo "$uuid" >"$types/${id[$1]}/create" || fail "creating $1 with $used eighths used"
	made+=("$uuid")
	used=$((used + eighths[$1]))
	check_counts
}

remove_all() {
	local each
	for each in "${made[@]}"; do
		echo 1 >"/sys/bus/mdev/devices/$each/remove"
	done
	made=()
	used=0
	check_counts
}

# what must not fit is refused with ENOSPC and changes nothing
refuse() {
	uuid_new
	assert_fails 'No space left on device' bash -c "echo $uuid >'$types/${id[$1]}/create'"
	[[ ! -e /sys/bus/mdev/devices/$uuid ]] || fail "a refused $1 exists"
	check_counts
}

assert_eq "vGPUs at the start" "$(vgpus | wc -l)" 0
check_counts
mixes=0
for ((halves = 0; halves <= 2; halves++)); do
	for ((quarters = 0; 4 * halves + 2 * quarters <= 8; quarters++)); do
		rest=$((8 - 4 * halves - 2 * quarters))
		for ((n = 0; n < halves; n++)); do create 1_2; done
		for ((n = 0; n < quarters; n++)); do create 1_4; done
		for ((n = 0; n < rest; n++)); do create 1_8; done
		assert_eq "eighths used" "$used" 8
		for share in 1_2 1_4 1_8; do refuse "$share"; done
		remove_all
		mixes=$((mixes + 1))
	done
done
note "$mixes full mixes"

# the other way round, and a hole in the middle
create 1_8
create 1_2
refuse 1_2
create 1_4
refuse 1_4
create 1_8
refuse 1_8
echo 1 >"/sys/bus/mdev/devices/${made[1]}/remove"
unset 'made[1]'
made=("${made[@]}")
used=$((used - 4))
check_counts
create 1_2
remove_all

note "a refusal tells the kernel log what was asked, free and taken"
mark="octavo-lab capacity $$"
create 1_2
create 1_2
echo "$mark" >/dev/kmsg
refuse 1_8
assert_match "kernel log" "$(dmesg | sed "1,/$mark/d" | grep octavo)" '1.*0.*8'
remove_all
