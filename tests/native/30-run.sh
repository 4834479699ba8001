#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# octavo-run: heaps of the profile's size, exit statuses, two commands under one arbiter, status,
# log and time line, CDI; and the arbiter that it starts goes when nobody needs it any more.
# limit: 120
set -euo pipefail
. "$OCTAVO_TREE/tests/native/layer.sh"
socket=$work/join
run() { "$OCTAVO_BUILD/octavo-run" --socket "$socket" "$@"; }
status() { local rc=0; "$@" >"$work/out" 2>&1 || rc=$?; echo $rc; }

[[ $(status run -- sh -c 'exit 7') == 7 ]] || fail "the command's exit status is lost"
[[ $(status run -- /nonexistent/command) == 127 ]] || fail "a missing command is not 127"
[[ $(status run -p 1_3 -- true) == 125 ]] && grep -q 'want 1_1, 1_2, 1_4 or 1_8' "$work/out" ||
	fail "a bad profile is not refused with what to do"
[[ $(status run --policy fair -- true) == 125 ]] || fail "a bad policy is not refused"
[[ $(status run --memory 1Q -- true) == 125 ]] || fail "a bad size is not refused"
[[ $(status run) == 125 ]] || fail "no command is not refused"
[[ $(status run -- sh -c 'kill -TERM $$') == 143 ]] || fail "a signal is not 128 + its number"

# wait for the arbiter of the above to go, then begin with a known amount of memory
gone() {
	local i
	for ((i = 0; i < 1000; i++)); do
		[[ -e $socket ]] || return 0
		sleep 0.01
	done
	fail "the arbiter did not go when nobody needed it"
}
gone
run --memory 4G -p 1_4 -- vulkaninfo >"$work/info" 2>/dev/null
grep -q 'size   = 1073741824 ' "$work/info" || fail "a 1/4 of 4 GiB does not show a heap of 1 GiB"

# two loads with a quarter and the rest, both busy: the status shows them, the log can be drawn
truncate -s 1M "$work/a" "$work/b"
run --memory 4G -p 1_4 --name first -- "$OCTAVO_BUILD/load" 50000 2 "$work/a" & a=$!
run --memory 4G -p 1_2 --name second -- "$OCTAVO_BUILD/load" 50000 2 "$work/b" & b=$!
python3 - "$work/a" "$work/b" <<'PYTHON'
import mmap, struct, sys, time
tallies = []
for path in sys.argv[1:]:
    with open(path, "r+b") as file:
        tallies.append(mmap.mmap(file.fileno(), 0))
def wait(what, test):
    for attempt in range(3000):
        if all(test(tally) for tally in tallies):
            return
        time.sleep(0.01)
    sys.exit("not " + what)
wait("ready", lambda tally: struct.unpack_from("I", tally, 0)[0])
for tally in tallies:
    struct.pack_into("I", tally, 4, 1)
wait("working", lambda tally: struct.unpack_from("Q", tally, 16)[0] > 300)
PYTHON
run --status | tee "$work/status"
[[ $(grep -cE '^(first|second) ' "$work/status") == 2 ]] || fail "the status does not show both"
run --log >"$work/log.csv"
for name in first second; do
	[[ $(grep -c ",$name," "$work/log.csv") -gt 10 ]] || fail "the log has hardly a slice of $name"
done
"$OCTAVO_BUILD/octavo-sim" --log "$work/log.csv" >"$work/line.svg"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$work/line.svg" ||
	fail "the time line is no XML"
for tally in a b; do
	printf '\1' | dd of="$work/$tally" bs=1 seek=8 conv=notrunc status=none
done
wait $a || fail "the first load's results are wrong"
wait $b || fail "the second load's results are wrong"

run --cdi | python3 -c '
import json, sys
spec = json.load(sys.stdin)
assert spec["cdiVersion"] == "0.6.0" and spec["kind"] == "org.octavo/vgpu", spec
assert [device["name"] for device in spec["devices"]] == ["1_2", "1_4", "1_8"], spec
assert all(len(device["containerEdits"]["env"]) == 1 for device in spec["devices"])
' || fail "the CDI specification is not what it should be"
gone
echo "ok: octavo-run"
