#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# limit: 400
# needs: proof
# With the patched QEMU every kick reaches the module and none traps; with the stock one, and where
# the patched one may not bind the doorbells, every kick traps. All are answered either way.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../doorbell/common.sh"
. "$(dirname "$0")/common.sh"

rounds=1000
# what a driver's start and end access of the registers
setup=300

trap polling_back EXIT
polling_off
uuid=$(vgpu_create 1_4)

guest-start --qemu patched bound "$uuid"
assert_match "QEMU of the guest" "$(readlink "/proc/$(guest_pid bound)/exe")" '/qemu/qemu-system-x86_64$'
ping_prepare bound
kicks_of bound "$uuid" "$rounds"
assert_within "kicks by the guest" "$kicks" $((rounds * 9 / 10)) "$rounds"
assert_within "kicks told to the module" "$told" "$kicks" $((kicks + 10))
assert_within "accesses that trapped" "$trapped" 0 "$setup"

note "after a reset by the guest's driver"
kicks_of bound "$uuid" "$rounds"
assert_within "accesses that trapped" "$trapped" 0 "$setup"
assert_ok guest-stop bound

note "bindings end with the VM: the stock QEMU traps"
guest-start trapped "$uuid"
ping_prepare trapped
kicks_of trapped "$uuid" "$rounds"
assert_within "kicks told to the module" "$told" "$kicks" $((kicks + 10))
assert_within "accesses that trapped" "$trapped" "$kicks" $((kicks + setup))
assert_ok guest-stop trapped

note "so does the patched one where it may not give the module its eventfds"
guest-start --qemu patched --vfio-arg x-no-vfio-ioeventfd=on refused "$uuid"
ping_prepare refused
kicks_of refused "$uuid" "$rounds"
assert_within "accesses that trapped" "$trapped" "$kicks" $((kicks + setup))
assert_ok guest-stop refused
assert_ok vgpu_remove "$uuid"
