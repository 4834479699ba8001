#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# mdevctl's whole life of a vGPU: types, define, start, stop, autostart when the GPU comes, undefine.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

parent=$(gpu_parent)
type=$(vgpu_type 1_4)
uuid=$(cat /proc/sys/kernel/random/uuid)
driver=$(basename "$(readlink "/sys/bus/pci/devices/$parent/driver")")

types=$(mdevctl types --dumpjson -p "$parent")
assert_eq "types" "$(jq -r '.. | objects | keys[] | select(test("-octavo_1_"))' <<<"$types" | sed 's/.*-octavo/octavo/' | sort | xargs)" \
	"octavo_1_2 octavo_1_4 octavo_1_8"
assert_eq "device API" "$(jq -r "[.. | objects | .device_api // empty] | unique | join(\",\")" <<<"$types")" vfio-pci
assert_eq "name" "$(jq -r "[.. | objects | .[\"$type\"] // empty][0].name" <<<"$types")" "Octavo 1/4"
assert_match "description" "$(jq -r "[.. | objects | .[\"$type\"] // empty][0].description" <<<"$types")" \
	'^num_heads=1, framebuffer=[0-9]+M, max_resolution=3840x2160, max_instance=4$'

assert_ok mdevctl define -u "$uuid" -p "$parent" -t "$type"
assert_eq "defined only" "$(vgpus | wc -l)" 0
assert_ok mdevctl start -u "$uuid"
assert_eq "1/4 left" "$(vgpu_available 1_4)" 3
assert_match "mdevctl list" "$(mdevctl list)" "$uuid $parent $type"
[[ -L /sys/bus/mdev/devices/$uuid/iommu_group ]] || fail "libvirt needs the link iommu_group, there is none"
assert_ok mdevctl stop -u "$uuid"
assert_eq "1/4 left after stop" "$(vgpu_available 1_4)" 4
assert_match "still defined" "$(mdevctl list -d)" "$uuid"

note "autostart: a driver that comes makes udev start it, as at boot"
assert_ok mdevctl modify -u "$uuid" --auto
echo "$parent" >"/sys/bus/pci/drivers/$driver/unbind"
wait_for 10 "the types to go with the driver" test ! -e "/sys/class/mdev_bus/$parent"
echo "$parent" >"/sys/bus/pci/drivers/$driver/bind"
wait_for 20 "udev to start it" test -e "/sys/bus/mdev/devices/$uuid"
wait_for 10 "octavoctl to list it" bash -c "octavoctl list | grep -q $uuid"

assert_ok mdevctl undefine -u "$uuid"
assert_ok mdevctl stop -u "$uuid"
assert_eq "vGPUs at the end" "$(vgpus | wc -l)" 0
