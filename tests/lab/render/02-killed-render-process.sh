#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Given a program that computes in a guest, when its render process is killed, then that program
# fails, and the guest, its OpenGL and its next Vulkan program go on.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
uuid=$(vgpu_create 1_4)
guest-start g1 "$uuid"
guest_give g1 vk_check gl_check
worker=$(vgpu_worker "$uuid")
has_process() { [[ -n $(render_processes "$worker") ]]; }
guest g1 timeout 100 /tmp/vk_check --rounds 1000000 --dispatches 100 >"$tmp/vk" 2>&1 &
victim=$!
wait_for 60 "a render process" has_process
wait_for 60 "the program computes" grep -q '^driver' "$tmp/vk"
render_processes "$worker" | xargs kill -KILL
rc=0
wait "$victim" || rc=$?
[[ $rc -ne 0 ]] || fail "the program whose render process was killed ended with success"
assert_eq "the worker" "$(vgpu_worker "$uuid")" "$worker"
assert_match "the next Vulkan program" "$(guest g1 /tmp/vk_check)" 'exact: 65536 of 65536'
assert_match "OpenGL" "$(guest g1 /tmp/gl_check)" 'exact: 65536 of 65536'
