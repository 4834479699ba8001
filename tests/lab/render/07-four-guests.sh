#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 400
# Four guests on one GPU compute and draw at once; every result is exact.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
uuids=()
for share in 1_2 1_4 1_8 1_8; do
	uuids+=("$(vgpu_create "$share")")
	guest-start --mem 512 "g${#uuids[@]}" "${uuids[-1]}"
done
for n in 1 2 3 4; do
	guest_give "g$n" vk_check gl_check
done
for n in 1 2 3 4; do
	{ guest "g$n" /tmp/vk_check --dispatches 4 >"$tmp/vk$n" 2>&1 || true; } &
	{ guest "g$n" /tmp/gl_check 4 >"$tmp/gl$n" 2>&1 || true; } &
done
wait
for n in 1 2 3 4; do
	assert_match "Vulkan of guest $n" "$(cat "$tmp/vk$n")" 'Venus.*exact: 65536 of 65536'
	assert_match "OpenGL of guest $n" "$(cat "$tmp/gl$n")" 'virgl.*exact: 65536 of 65536'
done
