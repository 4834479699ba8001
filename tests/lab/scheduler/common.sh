# SPDX-License-Identifier: LGPL-2.1-or-later
# What the scheduler tests share. Sourced after lib.sh and render/common.sh, never run.

# A GPU computes beside the host's processors. Here a software renderer plays it, with one thread: the
# last processor is its and the workers', guests and everything else have the others. Without that what
# guests take of the processors is missing to the engine, and two engines run at once where a GPU has one.
engine_apart() {
	local last=$(($(nproc) - 1))
	export LP_NUM_THREADS=1
	systemctl set-environment LP_NUM_THREADS=1
	systemctl set-property --runtime octavo.slice AllowedCPUs="$last"
	systemctl set-property --runtime system.slice AllowedCPUs="0-$((last - 1))"
}

engine_back() {
	systemctl set-property --runtime system.slice AllowedCPUs=
	systemctl set-property --runtime octavo.slice AllowedCPUs=
	systemctl unset-environment LP_NUM_THREADS
}

# guests_on SHARE...: a vGPU and a guest for each, g1, g2 …, with vk_check in it, whose first words are in
# $tmp/first1 … Sets uuids.
guests_on() {
	local share n
	uuids=()
	for share in "$@"; do
		uuids+=("$(vgpu_create "$share" "$(gpu_parent)")")
		guest-start --mem 512 "g${#uuids[@]}" "${uuids[-1]}"
	done
	for ((n = 1; n <= ${#uuids[@]}; n++)); do
		guest_give "g$n" vk_check
		# what is compiled at the first use is not what is measured
		guest "g$n" /tmp/vk_check >"$tmp/first$n" 2>&1 || fail "guest $n: $(cat "$tmp/first$n")"
	done
}

# compute SECONDS ROUNDS N...: guests N compute at once, each with as much queued as outlasts its way
# to the GPU, or that way and not the gate would set its speed. Sets rate[N], dispatches a second.
declare -A rate
compute() {
	local seconds=$1 rounds=$2 n pids=()
	shift 2
	for n in "$@"; do
		guest "g$n" /tmp/vk_check --rounds "$rounds" --seconds "$seconds" --deep 16 >"$tmp/work$n" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}" || true
	for n in "$@"; do
		assert_match "results of guest $n" "$(cat "$tmp/work$n")" 'exact: (65 of 65|65536 of 65536) words'
		rate[$n]=$(sed -n 's/^work: \([0-9.]*\).*/\1/p' "$tmp/work$n")
	done
}

# total N...: sum of the rates of guests N
total() {
	local n
	for n in "$@"; do
		echo "${rate[$n]}"
	done | awk '{ s += $1 } END { print s }'
}

# assert_share WHAT N WANTED_PERCENT MARGIN N...: guest N's part of the work of all
assert_share() {
	local what=$1 n=$2 wanted=$3 margin=$4 got
	shift 4
	got=$(awk -v own="${rate[$n]}" -v all="$(total "$@")" 'BEGIN { printf "%.1f", all ? 100 * own / all : 0 }')
	note "$what: guest $n has $got % (wanted $wanted ± $margin)"
	awk -v g="$got" -v w="$wanted" -v m="$margin" 'BEGIN { exit !(g >= w - m && g <= w + m) }' ||
		fail "$what: guest $n has $got %, wanted $wanted ± $margin"
}

# assert_ratio WHAT VALUE REFERENCE LOW HIGH
assert_ratio() {
	local got
	got=$(awk -v a="$2" -v b="$3" 'BEGIN { printf "%.2f", b ? a / b : 0 }')
	note "$1: $got"
	awk -v g="$got" -v l="$4" -v h="$5" 'BEGIN { exit !(g >= l && g <= h) }' ||
		fail "$1: $got, wanted $4 to $5"
}
