#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 400
# Unmodified programs of the guest's distribution run on the vGPU: what they say they render on
# and what they show is right.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/../spine/screen.sh"

render_configure
uuid=$(vgpu_create 1_2)
guest-start --mem 1024 --display g1 "$uuid"
wait_for 30 "the guest's driver" guest g1 test -c /dev/dri/renderD128

note "vulkaninfo"
output=$(guest g1 vulkaninfo --summary 2>/dev/null)
assert_match "Vulkan device" "$output" 'deviceName *= Virtio-GPU Venus \(llvmpipe'
assert_match "Vulkan driver" "$output" 'driverName *= venus'

note "kmscube"
colours() {
	screendump g1 "$tmp/cube.ppm" && [[ $(screen_shades "$tmp/cube.ppm" 300000) -gt 100 ]]
}
# the end of its input is the user's wish to end it
guest g1 sh -c 'tail -f /dev/null | setsid kmscube -D /dev/dri/card0 >/tmp/kmscube.log 2>&1 &'
# a lit cube has hundreds of shades
wait_for 90 "a shaded cube on the screen" colours
screendump g1 "$OCTAVO_OUT/kmscube.png"
guest g1 pkill -x kmscube
assert_match "kmscube's renderer" "$(guest g1 cat /tmp/kmscube.log)" 'renderer: "virgl'

note "glmark2"
# It takes the largest mode, 3840x2160: about a picture a second on an emulated CPU, so its score is 0
# or 1. The guest's driver shows no picture with an alpha channel.
output=$(guest g1 timeout 200 glmark2-es2-drm --visual-config alpha=0 -b build:duration=2 -b shading:duration=2 2>&1) ||
	fail "glmark2: $output"
assert_match "glmark2's renderer" "$output" 'GL_RENDERER: *virgl'
[[ $output != *Error* ]] || fail "glmark2: $output"
assert_eq "glmark2's scenes with pictures" "$(grep -c 'FPS: [1-9]' <<<"$output")" 2
assert_match "glmark2's score" "$output" 'glmark2 Score: [0-9]'

note "vkmark"
output=$(guest g1 timeout 200 vkmark --winsys headless -s 320x240 -b clear:duration=1 -b shading:duration=1 2>&1) ||
	fail "vkmark: $output"
assert_match "vkmark's device" "$output" 'Device Name: *Virtio-GPU Venus'
assert_match "vkmark's score" "$output" 'vkmark Score: [1-9]'
