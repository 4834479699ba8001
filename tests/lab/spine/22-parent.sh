#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# The GPU's driver comes and goes, the GPU itself is pulled out and put back, with and without
# vGPUs on it: types and vGPUs follow, octavod says how things stand.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

# the one behind a root port can be pulled
parent=0000:01:00.0
[[ -e /sys/class/mdev_bus/$parent ]] || fail "GPU $parent is not registered"
driver=$(basename "$(readlink "/sys/bus/pci/devices/$parent/driver")")
state_is() { [[ $(octavoctl --json gpus | jq -r ".[] | select(.address == \"$parent\").state") == "$1" ]]; }

note "unbind and bind, ten times"
for round in {1..10}; do
	echo "$parent" >"/sys/bus/pci/drivers/$driver/unbind"
	[[ ! -e /sys/class/mdev_bus/$parent ]] || fail "round $round: types stay without a driver"
	echo "$parent" >"/sys/bus/pci/drivers/$driver/bind"
	assert_eq "round $round: 1/8 left" "$(vgpu_available 1_8 "$parent")" 8
done
wait_for 10 "octavod to see it registered" state_is registered
echo "$parent" >"/sys/bus/pci/drivers/$driver/unbind"
wait_for 10 "octavod to see it waiting" state_is waiting
assert_match "reason" "$(octavoctl gpus 2>&1)" 'no driver is bound'
echo "$parent" >"/sys/bus/pci/drivers/$driver/bind"
wait_for 10 "octavod to see it registered" state_is registered

note "unbound with a vGPU on it: the vGPU goes"
uuid=$(vgpu_create 1_2 "$parent")
echo "$parent" >"/sys/bus/pci/drivers/$driver/unbind"
[[ ! -e /sys/bus/mdev/devices/$uuid ]] || fail "the vGPU outlived its GPU's driver"
wait_for 10 "octavoctl to forget the vGPU" bash -c "! octavoctl list 2>&1 | grep -q $uuid"
echo "$parent" >"/sys/bus/pci/drivers/$driver/bind"
assert_eq "1/2 left" "$(vgpu_available 1_2 "$parent")" 2

note "pulled out with a vGPU on it, and put back"
uuid=$(vgpu_create 1_4 "$parent")
echo 1 >"/sys/bus/pci/devices/$parent/remove"
[[ ! -e /sys/bus/mdev/devices/$uuid ]] || fail "an orphan vGPU is left"
wait_for 10 "octavoctl to forget the vGPU" bash -c "! octavoctl list 2>&1 | grep -q $uuid"
echo 1 >/sys/bus/pci/rescan
wait_for 20 "its types to be back" test -e "/sys/class/mdev_bus/$parent/mdev_supported_types"
wait_for 10 "octavod to see it registered" state_is registered
assert_eq "1/4 left" "$(vgpu_available 1_4 "$parent")" 4
