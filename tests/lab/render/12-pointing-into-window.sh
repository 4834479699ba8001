#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 300
# A request, a backing page and a blob that point into a BAR2, the vGPU's own or another's, give
# errors; nothing waits for itself, and the device serves on.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
one=$(vgpu_create 1_4)
two=$(vgpu_create 1_8)
guest-start --mem 512 g1 "$one" "$two"
guest_give g1 vq_bar2
mapfile -t addresses < <(guest g1 sh -c 'lspci -D -n -d 1af4:1050 | cut -d" " -f1')
assert_eq "vGPUs in the guest" "${#addresses[@]}" 2
both() { guest g1 sh -c "ls -d /sys/bus/pci/devices/${addresses[0]}/driver /sys/bus/pci/devices/${addresses[1]}/driver"; }
wait_for 30 "the guest's driver on both" both
assert_ok guest g1 sh -c "echo ${addresses[0]} >/sys/bus/pci/devices/${addresses[0]}/driver/unbind"
rc=0
output=$(guest g1 timeout 120 /tmp/vq_bar2 "${addresses[0]}" "${addresses[1]}" 2>&1) || rc=$?
note "$output"
assert_eq "its exit status" "$rc" 0
assert_eq "errors" "$(grep -c 'an error\|asks for a reset' <<<"$output")" 6
assert_ok guest-stop g1
