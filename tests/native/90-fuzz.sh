#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# libFuzzer on the virtqueue walker, both queues' requests and the EDID: a minute each, ten with
# --soak, from the corpus in the tree. What it finds is left in $OCTAVO_OUT/fuzz.
# limit: 900
set -euo pipefail

seconds=60
[[ ${OCTAVO_SOAK:-} ]] && seconds=600
targets=(control cursor queue edid)
build=$OCTAVO_BUILD/../fuzz
found=$OCTAVO_OUT/fuzz
mkdir -p "$build" "$found"

cd "$build"
[[ -f Makefile ]] || "$OCTAVO_TREE/configure" --quiet --enable-fuzzers --disable-dependency-tracking \
	CC=clang CFLAGS='-O1 -g' >configure.log 2>&1 || { tail -n 20 configure.log; exit 1; }
make -s -j2 "${targets[@]/#/fuzz_}" >make.log 2>&1 || { tail -n 20 make.log; exit 1; }

# fuzz TARGET: new inputs go to a folder that is thrown away, crashes are kept
fuzz() {
	local corpus log=$found/$1.log
	corpus=$(mktemp -d)
	"./fuzz_$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 \
		-print_final_stats=1 -artifact_prefix="$found/$1-" \
		"$corpus" "$OCTAVO_TREE/tests/fuzz/corpus/$1" >"$log" 2>&1 || {
		grep -a -m 3 -E 'ERROR|SUMMARY|Test unit written' "$log" || tail -n 5 "$log"
		return 1
	}
	rm -rf "$corpus"
	echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, none wrong"
}

failed=0
for pair in 'control cursor' 'queue edid'; do
	pids=()
	for target in $pair; do
		fuzz "$target" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
done
exit "$failed"
