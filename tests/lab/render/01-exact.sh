#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Given a guest with a vGPU, OpenGL and Vulkan run on the host's renderer with exact results, one
# after the other and together.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
uuid=$(vgpu_create 1_4)
guest-start g1 "$uuid"
guest_give g1 vk_check gl_check
assert_ok guest g1 test -c /dev/dri/renderD128
output=$(guest g1 /tmp/gl_check 3)
assert_match "OpenGL's renderer" "$output" 'renderer: virgl'
assert_match "OpenGL's pixels" "$output" 'exact: 65536 of 65536 pixels'
output=$(guest g1 /tmp/vk_check --dispatches 3)
assert_match "Vulkan's device" "$output" 'device: Virtio-GPU Venus \(llvmpipe'
assert_match "Vulkan's words" "$output" 'exact: 65536 of 65536 words'
guest g1 /tmp/gl_check 20 >"$tmp/gl" &
gl=$!
guest g1 /tmp/vk_check --dispatches 5 >"$tmp/vk"
wait "$gl"
assert_match "OpenGL's pixels beside Vulkan" "$(cat "$tmp/gl")" 'exact: 65536 of 65536'
assert_match "Vulkan's words beside OpenGL" "$(cat "$tmp/vk")" 'exact: 65536 of 65536'
