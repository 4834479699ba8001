#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# UEFI firmware finds the vGPU and draws on it before any system runs.
# The guest's CPU is emulated: where the host VM is emulated too, its QEMU (11.1, TCG with SVM) ends
# with a segmentation fault or "cpu_interrupt: assertion failed: (bql_locked())" while OVMF runs
# under nested KVM.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

# Colours of a picture: a black or blank one has one.
colours() {
	tail -c +16 "$1" | xxd -p -c 3 | sort -u | wc -l
}
drawn() {
	screendump firmware "$tmp/firmware.ppm" && [[ $(colours "$tmp/firmware.ppm") -gt 1 ]]
}

uuid=$(vgpu_create 1_8)
guest-start --no-wait --tcg --uefi --display firmware "$uuid"
wait_for 500 "something on the screen" drawn
mv "$tmp/firmware.ppm" "$tmp/first.ppm"
note "the firmware's screen is $(screen_size "$tmp/first.ppm") with $(colours "$tmp/first.ppm") colours"
assert_match "its size" "$(screen_size "$tmp/first.ppm")" '^[0-9]{3,4}x[0-9]{3,4}$'
screendump firmware "$OCTAVO_OUT/firmware.png"
assert_ok guest-stop --kill firmware
assert_ok vgpu_remove "$uuid"
