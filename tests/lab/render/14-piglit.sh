#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: named
# limit: 1500
# Piglit's shader tests, those of a few folders that a guest of the lab runs in two minutes, all
# pass on virgl.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

spec=tests/spec
folders=("$spec"/glsl-1.10/execution/{derivatives,discard,variable-indexing}
	"$spec"/glsl-1.30/execution/{clipping,switch})
[[ ${OCTAVO_SOAK:-} ]] && folders+=("$spec"/glsl-1.{20,30}/execution "$spec"/glsl-1.10/execution/samplers)
render_configure
uuid=$(vgpu_create 1_2)
guest-start --mem 1024 g1 "$uuid"
wait_for 30 "the guest's driver" guest g1 test -c /dev/dri/renderD128
for folder in "${folders[@]}"; do
	# piglit's own runner, many tests a process: a process each takes longer than the test
	output=$(guest g1 sh -c 'cd /usr/lib/x86_64-linux-gnu/piglit && PIGLIT_PLATFORM=gbm \
		exec bin/shader_runner "$1"/*.shader_test -auto -fbo -report-subtests' piglit "$folder" 2>&1) ||
		fail "$folder: $(grep -v '"pass"' <<<"$output" | tail -n 20)"
	ran=$(grep -c '"subtest".*"pass"' <<<"$output") || fail "$folder: $output"
	assert_eq "$folder: tests that did not pass" "$(grep '"subtest"' <<<"$output" | grep -v '"pass"\|"skip"')" ""
	assert_within "$folder: tests that passed" "$ran" 4 1000
	note "$folder: $ran passed"
done
turns=$(vgpu_counter "$uuid" gpu_turns)
[[ $turns -gt 100 ]] || fail "the tests had $turns turns on the GPU: they ran elsewhere"
