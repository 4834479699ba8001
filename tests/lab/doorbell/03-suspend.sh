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

# gone if the guest started anew
resumed() {
	[[ $(guest sleeper cat /run/suspended) == 0 ]]
}

uuid=$(vgpu_create 1_4)
guest-start --kernel 7.3 --display sleeper "$uuid"
guest_paints sleeper
for ((i = 1; i <= cycles; i++)); do
	before=$(vgpu_counter "$uuid" kicks)
	# what carries commands into the guest is suspended too
	guest sleeper sh -c 'rm -f /run/suspended
		setsid sh -c "echo mem >/sys/power/state; echo \$? >/run/suspended" >/dev/null 2>&1 </dev/null &'
	wait_for 60 "the suspension of the guest" vm_status sleeper suspended
	assert_ok qmp sleeper '{"execute":"system_wakeup"}'
	wait_for 30 "the guest's resumption" vm_status sleeper running
	wait_for 60 "the guest's word that it had suspended" resumed
	guest_paints sleeper
	assert_within "kicks in cycle $i" "$(($(vgpu_counter "$uuid" kicks) - before))" 1 1000000
	note "suspended and resumed, $i of $cycles"
done
assert_ok guest-stop sleeper
assert_ok vgpu_remove "$uuid"
