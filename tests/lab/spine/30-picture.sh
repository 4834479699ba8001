#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What modetest draws in the guest is what the host's screendump shows, pixel for pixel, from the
# smallest common mode to the largest.
# limit: 300
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/screen.sh"
here=$(dirname "$(readlink -f "$0")")

# Shows WIDTHxHEIGHT and compares until the picture is there; the last comparison's words are kept.
picture_equals() {
	screendump "$1" "$tmp/picture.ppm" && python3 "$here/bars.py" "$tmp/picture.ppm" "$2" "$3" >"$tmp/bars" 2>&1
}

uuid=$(vgpu_create 1_4)
guest-start --display picture "$uuid"
assert_match "the driver of the guest's vGPU" \
	"$(guest picture lspci -k -d 1af4:1050)" 'Kernel driver in use: virtio-pci'
assert_match "the guest's mode list" "$(guest picture cat /sys/class/drm/card0-Virtual-1/modes | tr '\n' ' ')" \
	'3840x2160'
for mode in 640x480 1920x1080 3840x2160 1920x1080; do
	guest_blank picture
	assert_ok guest picture sh -c "
		id=\$(modetest -M virtio_gpu -c | awk '\$3 == \"connected\" { print \$1; exit }')
		setsid sh -c 'sleep 3600 | modetest -M virtio_gpu -F smpte -s '\$id':$mode' >/tmp/modetest.log 2>&1 </dev/null &"
	( wait_for 60 "bars at $mode" picture_equals picture "${mode%x*}" "${mode#*x}" ) || {
		cat "$tmp/bars"
		guest picture sh -c 'cat /tmp/modetest.log; dmesg | tail -n 5'
		fail "the screen is not what modetest draws at $mode"
	}
	note "$mode: $(cat "$tmp/bars")"
done
screendump picture "$OCTAVO_OUT/picture-1920x1080.png"
assert_ok guest-stop picture
assert_ok vgpu_remove "$uuid"
