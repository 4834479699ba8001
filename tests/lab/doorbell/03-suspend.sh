#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: named
# limit: 600
# needs: proof
# A guest that suspends to RAM while it draws shows the right picture again when it has resumed. The
# virtio_gpu driver of 6.12 cannot suspend, so the guest's kernel is 7.3.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../spine/screen.sh"
. "$(dirname "$0")/common.sh"

cycles=2
[[ ${OCTAVO_SOAK:-} ]] && cycles=20

# vm_status NAME STATUS
vm_status() {
	[[ $(qmp "$1" '{"execute":"query-status"}' | jq -r '.. | .status? // empty') == "$2" ]]
}

uuid=$(vgpu_create 1_4)
guest-start --kernel 7.3 --display sleeper "$uuid"
guest_paints sleeper
for ((i = 1; i <= cycles; i++)); do
	before=$(vgpu_counter "$uuid" kicks)
	# returns when the guest has resumed
	guest sleeper sh -c 'echo mem >/sys/power/state' >"$tmp/suspend" 2>&1 &
	suspend=$!
	wait_for 60 "the suspension of the guest" vm_status sleeper suspended
	assert_ok qmp sleeper '{"execute":"system_wakeup"}'
	wait_for 30 "the guest's resumption" vm_status sleeper running
	wait "$suspend" || fail "the guest did not suspend: $(cat "$tmp/suspend")"
	guest_paints sleeper
	assert_within "kicks in cycle $i" "$(($(vgpu_counter "$uuid" kicks) - before))" 1 1000000
	note "suspended and resumed, $i of $cycles"
done
assert_ok guest-stop sleeper
assert_ok vgpu_remove "$uuid"
