#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: proof
# The slice layer on lavapipe: memory share, submissions, waits before signals, threads; then the
# same under Khronos' validation, above and below, which must find nothing.
# needs: quiet
# limit: 600
set -euo pipefail
. "$OCTAVO_TREE/tests/native/layer.sh"

"$OCTAVO_BUILD/test_layer" "$layer_dir"

# one load with exact results, through octavo-run, for a second: validated LAYERS
validated() {
	local tally=$work/tally log=$work/validation.log
	truncate -s 1M "$tally"
	export XDG_RUNTIME_DIR=$work
	(
		VK_INSTANCE_LAYERS=$1 VK_LAYER_ENABLES='VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT' \
			"$OCTAVO_BUILD/octavo-run" --socket "$work/join" -- "$OCTAVO_BUILD/load" "$2" 3 "$tally"
	) >"$log" 2>&1 &
	local load=$!
	python3 - "$tally" <<'PYTHON'
import mmap, struct, sys, time
with open(sys.argv[1], "r+b") as file:
    tally = mmap.mmap(file.fileno(), 0)
for attempt in range(3000):
    if struct.unpack_from("I", tally, 0)[0]:
        break
    time.sleep(0.01)
else:
    sys.exit("the load did not become ready")
struct.pack_into("I", tally, 4, 1)
for attempt in range(3000):
    if struct.unpack_from("Q", tally, 16)[0] >= 50:
        break
    time.sleep(0.01)
else:
    sys.exit("the load did not get 50 pieces done")
struct.pack_into("I", tally, 8, 1)
PYTHON
	wait "$load" || { cat "$log" >&2; fail "the load under $1 failed"; }
	if grep -E 'VUID|Validation (Error|Warning)|SYNC-' "$log" >&2; then
		fail "validation found something with $1"
	fi
	echo "ok: validation is clean with $1"
}

validated VK_LAYER_KHRONOS_validation:VK_LAYER_OCTAVO_slice 20000
validated VK_LAYER_OCTAVO_slice:VK_LAYER_KHRONOS_validation 20000

# and validation was there: it speaks when something is wrong
if VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation "$OCTAVO_BUILD/load" invalid 2>&1 | grep -q VUID; then
	echo "ok: validation speaks of a wrong use"
else
	fail "validation says nothing of a wrong use, so its silence means nothing"
fi
