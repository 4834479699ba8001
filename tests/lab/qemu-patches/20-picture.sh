#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 300
# needs: proof
# A stock guest on the patched QEMU drives its vGPU, from its firmware's reset to a picture on the
# screen that is right pixel for pixel, and again after it has restarted.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../spine/screen.sh"
. "$(dirname "$0")/../doorbell/common.sh"

bars=$(dirname "$(readlink -f "$0")")/../spine/bars.py
picture_equals() {
	screendump picture "$tmp/picture.ppm" && python3 "$bars" "$tmp/picture.ppm" 1280 800 >"$tmp/bars" 2>&1
}

uuid=$(vgpu_create 1_4)
guest-start --qemu patched --display picture "$uuid"
for time in first second; do
	guest_paints picture
	wait_for 30 "the $time picture" picture_equals
	note "the $time picture: $(cat "$tmp/bars")"
	[[ $time == second ]] || assert_ok guest-restart picture
done
assert_within "kicks" "$(vgpu_counter "$uuid" kicks)" 1 1000000
assert_ok guest-stop picture
assert_ok vgpu_remove "$uuid"
