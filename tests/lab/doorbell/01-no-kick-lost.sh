#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 400
# Requests that come at any distance from the last one are answered: none is lost between the
# worker's look at the ring and its wait for a kick, with event indexes and without, on a busy guest.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

rounds=10000
[[ ${OCTAVO_SOAK:-} ]] && rounds=10000000
conf=/etc/octavo/octavo.conf.d/zz-doorbell.conf
trap 'rm -f "$conf"; systemctl reload octavod' EXIT
# in an emulated host everything takes longer: a window that requests fall into and out of
printf '[gpu any]\nbusy-poll = 3 ms\n' >"$conf"
systemctl reload octavod
uuid=$(vgpu_create 1_4)
guest-start --smp 2 hunt "$uuid"
ping_prepare hunt
guest hunt timeout 1000000 sh -c 'while :; do cat /proc/stat >/dev/null; done' &
for range in 0-300 0-4000 2800-3300; do
	output=$(guest hunt taskset -c 0 /tmp/vq_ping "$address" "$((rounds / 5))" "$range") ||
		fail "pauses of $range us: $output"
	note "pauses of $range us: $output"
done
output=$(guest hunt taskset -c 0 /tmp/vq_ping "$address" "$((rounds / 5))" 0-4000 no-event-idx) ||
	fail "without event indexes: $output"
note "without event indexes: $output"

note "a worker's death and a reset in the middle"
guest hunt taskset -c 0 /tmp/vq_ping "$address" 1000000 0-500 >"$tmp/ping" 2>&1 &
ping=$!
wait_for 20 "kicks" vgpu_counted "$uuid" kicks "$(vgpu_counter "$uuid" kicks)"
worker=$(vgpu_worker "$uuid")
kill -KILL "$worker"
rc=0
wait "$ping" || rc=$?
assert_eq "the program whose worker died" "$rc" 1
assert_match "its message" "$(cat "$tmp/ping")" 'no answer to request'
wait_for 20 "a replacement" worker_replaced "$uuid" "$worker"
output=$(guest hunt taskset -c 0 /tmp/vq_ping "$address" 500 0-500) || fail "after a reset: $output"
assert_ok guest-stop hunt
assert_ok vgpu_remove "$uuid"
