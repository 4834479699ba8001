#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# Memory of the GPU that is mapped into BAR2 is read and written without traps, and mapping and
# unmapping it over and over leaves nothing.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

cycles=20 mib=64
[[ ${OCTAVO_SOAK:-} ]] && cycles=1000 mib=1024
render_configure
uuid=$(vgpu_create 1_2)
guest-start g1 "$uuid"
guest_give g1 vk_check
assert_ok guest g1 /tmp/vk_check
traps=$(vgpu_counter "$uuid" registers) faults=$(vgpu_counter "$uuid" window_faults)
output=$(guest g1 /tmp/vk_check --bandwidth 64) || fail "$output"
note "$(tail -n 2 <<<"$output" | tr '\n' ' ')"
traps=$(($(vgpu_counter "$uuid" registers) - traps)) faults=$(($(vgpu_counter "$uuid" window_faults) - faults))
note "960 MiB copied: $traps accesses trapped, $faults faults"
# 32 pieces of 2 MiB, and what the program maps beside them
assert_within "faults of the window" "$faults" 1 2000
assert_within "trapped accesses" "$traps" 0 5000

worker=$(vgpu_worker "$uuid")
held() { echo "files $(ls "/proc/$worker/fd" | wc -l) mapped $(vgpu_counter "$uuid" window_mapped_bytes) pinned $(pinned_pages)"; }
before=$(held)
output=$(guest g1 timeout 500 /tmp/vk_check --churn "$cycles" --bandwidth "$mib") || fail "$output"
note "$(tail -n 1 <<<"$output")"
same() { [[ $(held) == "$before" ]]; }
wait_for 20 "what is held to be as before ($before)" same
