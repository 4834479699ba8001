#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: proof
# limit: 600
# Four guests that compute at once get what their profiles promise; the time of one that ends is
# lent under elastic and not under fixed-share, which a running guest notices in its speed only.
# A guest sees the memory of its profile.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../render/common.sh"
. "$(dirname "$0")/common.sh"

seconds=24
[[ ${OCTAVO_SOAK:-} ]] && seconds=80
render_configure
parent=$(gpu_parent)
trap 'octavoctl policy "$parent" elastic >/dev/null; engine_back' EXIT
engine_apart
rounds=$(rounds_of 10)
guests_on 1_2 1_4 1_8 1_8

for n in 1 2 3; do
	vram=$(octavoctl --json show "${uuids[n - 1]}" | jq .vram_bytes)
	size=$(sed -n 's/^heap: \([0-9]*\) bytes/\1/p' "$tmp/first$n")
	note "guest $n: heap of $((size >> 20)) MiB, share of $((vram >> 20)) MiB"
	assert_eq "the heap of guest $n" "$size" "$vram"
done

octavoctl policy "$parent" elastic >/dev/null
compute "$seconds" "$rounds" 1 2 3 4
assert_share "elastic, all busy" 1 50 3 1 2 3 4
assert_share "elastic, all busy" 2 25 3 1 2 3 4
assert_share "elastic, all busy" 3 12.5 3 1 2 3 4
assert_share "elastic, all busy" 4 12.5 3 1 2 3 4
all=$(total 1 2 3 4)
compute "$seconds" "$rounds" 2 3 4
assert_share "elastic, the first idle" 2 50 3 2 3 4
assert_ratio "work done when the first is idle, elastic" "$(total 2 3 4)" "$all" 0.85 1.15

# The policy changes under running guests.
change() {
	wait_for 60 "the second guest computes" grep -q '^driver' "$tmp/work2"
	octavoctl policy "$parent" fixed-share >/dev/null
}
rm "$tmp/work2"
change &
changing=$!
compute "$seconds" "$rounds" 2 3 4
wait "$changing" || fail "the policy was not changed"
assert_ratio "work done when the first is idle, fixed-share" "$(total 2 3 4)" "$all" 0.4 0.6
