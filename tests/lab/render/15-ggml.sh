#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: soak
# limit: 1800
# ggml's own operations, from the guest's distribution, compute on the vGPU what they compute on the
# guest's CPU. The guest translates ggml's many shaders first, which takes an emulated CPU minutes.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

render_configure
# A software renderer translates a shader where its queue stands, for as long as it takes
conf=/etc/octavo/octavo.conf.d/zz-ggml.conf
trap 'rm -f "$conf"; systemctl reload octavod' EXIT
printf '[gpu any]\nwatchdog = 600 s\n' >"$conf"
systemctl reload octavod
uuid=$(vgpu_create 1_2)
guest-start --mem 1024 g1 "$uuid"
guest_give g1 ggml_check
output=$(guest g1 timeout 1700 /tmp/ggml_check 2>/dev/null | tee /dev/stderr) || fail "ggml: $output"
assert_match "ggml's device" "$output" 'device: Virtio-GPU Venus'
assert_eq "operations that are right" "$(grep -c ': right' <<<"$output")" 5
