#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 3600
# Guests that start, render and stop, over and over, leave nothing: the harness compares open files,
# processes, pinned pages and the module's memory before and after.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

cycles=2
[[ ${OCTAVO_SOAK:-} ]] && cycles=100
render_configure
uuid=$(vgpu_create 1_4)
for ((i = 1; i <= cycles; i++)); do
	guest-start --mem 512 g1 "$uuid"
	guest_give g1 vk_check gl_check
	assert_match "OpenGL of guest $i" "$(guest g1 /tmp/gl_check)" 'exact: 65536 of 65536'
	assert_match "Vulkan of guest $i" "$(guest g1 /tmp/vk_check)" 'exact: 65536 of 65536'
	guest-stop g1
	none_left() { ! pgrep -f virgl_render_server && ! pgrep -x octavo-vgpu; }
	wait_for 20 "processes to end with guest $i" none_left
	[[ $i -eq 1 ]] && pinned=$(pinned_pages)
	assert_eq "pinned pages after guest $i" "$(pinned_pages)" "$pinned"
done
