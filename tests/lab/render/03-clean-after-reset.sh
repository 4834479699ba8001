#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Given a guest that has filled all memory it can get with a pattern, when it is killed, then no
# render process is left and the next guest on the same vGPU finds zeros only.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
uuid=$(vgpu_create 1_8)
for tenant in first second; do
	guest-start g1 "$uuid"
	guest_give g1 vk_check
	output=$(guest g1 env VN_PERF=no_async_mem_alloc timeout 200 /tmp/vk_check --fill) ||
		fail "the $tenant tenant: $output"
	note "$tenant tenant: $(grep '^fill' <<<"$output")"
	assert_match "the $tenant tenant's memory" "$output" ' 0 words not zero, 0 with the pattern'
	guest-stop --kill g1
	none_left() { ! pgrep -f virgl_render_server; }
	wait_for 20 "render processes end with the guest" none_left
done
