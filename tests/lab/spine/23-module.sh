#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# The module is loaded after and before octavod, cannot be unloaded in use, and leaves nothing.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

module_state() { busctl get-property org.octavo1 /org/octavo1 org.octavo1.Manager ModuleState; }
module_is() { [[ $(module_state) == "s \"$1\"" ]]; }
registered() { octavoctl --json gpus | jq -e 'map(select(.state == "registered")) | length > 0'; }

note "in use: refused"
assert_fails 'in use' modprobe -r octavo
uuid=$(vgpu_create 1_8)
systemctl stop octavod
systemctl start octavod
assert_fails 'in use' modprobe -r octavo
assert_match "the vGPU survived" "$(octavoctl list)" "$uuid"
vgpu_remove "$uuid"

for round in 1 2 3; do
	note "round $round: octavod first, then the module"
	systemctl stop octavod
	assert_ok modprobe -r octavo
	assert_eq "GPUs with types" "$(gpu_parents | wc -l)" 0
	systemctl start octavod
	module_is absent || fail "octavod says $(module_state) without the module"
	assert_match "reason" "$(octavoctl gpus 2>&1)" 'modprobe octavo'
	assert_match "doctor" "$(octavoctl doctor || true)" 'ERROR +module'
	assert_ok modprobe octavo
	wait_for 20 "octavod to find the module" module_is loaded
	wait_for 20 "a GPU to be registered" registered
	vgpu_remove "$(vgpu_create 1_4)"

	note "round $round: the module first, then octavod"
	systemctl stop octavod
	assert_ok modprobe -r octavo
	assert_ok modprobe octavo
	assert_eq "GPUs with types before octavod" "$(gpu_parents | wc -l)" 0
	systemctl start octavod
	wait_for 20 "a GPU to be registered" registered
done
