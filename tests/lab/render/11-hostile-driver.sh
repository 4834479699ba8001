#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 500
# A driver that breaks every rule of virtio, against a worker that renders: errors, lost contexts and
# resets for it alone; a guest beside it computes and draws on with exact results.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

seconds=30
[[ ${OCTAVO_SOAK:-} ]] && seconds=240
render_configure
bad=$(vgpu_create 1_4)
good=$(vgpu_create 1_4)
guest-start --mem 512 neighbour "$good"
guest_give neighbour vk_check gl_check
"$OCTAVO_BUILD/hostile-queues" "$bad" "$seconds" >"$tmp/hostile" 2>&1 &
attack=$!
while kill -0 "$attack" 2>/dev/null; do
	assert_match "the neighbour's Vulkan" "$(guest neighbour /tmp/vk_check)" 'exact: 65536 of 65536'
	assert_match "the neighbour's OpenGL" "$(guest neighbour /tmp/gl_check)" 'exact: 65536 of 65536'
done
rc=0
wait "$attack" || rc=$?
note "$(cat "$tmp/hostile")"
assert_eq "exit status of the attack" "$rc" 0
assert_match "what was done" "$(cat "$tmp/hostile")" '[1-9][0-9]* rounds'
