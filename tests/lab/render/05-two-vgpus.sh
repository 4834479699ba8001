#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Given two vGPUs in one guest, both render at the same time with exact results.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
one=$(vgpu_create 1_4)
two=$(vgpu_create 1_4)
guest-start --mem 1024 g1 "$one" "$two"
guest_give g1 vk_check
assert_ok guest g1 test -c /dev/dri/renderD128
assert_ok guest g1 test -c /dev/dri/renderD129
# Venus takes the first render node it may open: each program sees one
for node in 128 129; do
	guest g1 unshare --mount sh -c "mount --bind /dev/null /dev/dri/renderD$((257 - node)) && /tmp/vk_check --dispatches 3" \
		>"$tmp/vk$node" 2>&1 &
done
wait
for node in 128 129; do
	assert_match "words from renderD$node" "$(cat "$tmp/vk$node")" 'exact: 65536 of 65536 words'
done
