#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The guest's cursor lies above its picture, blended, moves, leaves at the edges and leaves no trace.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$(readlink -f "$0")")

tell() {
	local answer
	echo "$*" >&"${kms[1]}"
	read -rt 30 answer <&"${kms[0]}" || fail "the guest's program does not answer '$*'"
	assert_eq "the guest's answer to '$*'" "$answer" ok
}

# shown [X Y]: where the cursor's corner must be
shown() {
	screendump cursor "$tmp/cursor.ppm" && python3 "$here/cursor.py" "$tmp/cursor.ppm" 640 480 "$@" >"$tmp/differs" 2>&1
}

# expect WHAT [X Y]
expect() {
	local what=$1
	shift
	( wait_for 30 "$what" shown "$@" ) || { cat "$tmp/differs"; fail "$what is not what the screen shows"; }
}

gcc -O1 -Wall -I/usr/include/libdrm -o "$tmp/kms" "$here/kms.c"
uuid=$(vgpu_create 1_8)
guest-start --display cursor "$uuid"
guest-exec -i cursor -- sh -c 'cat >/run/kms; chmod 755 /run/kms' <"$tmp/kms"
coproc kms { guest-exec -i cursor -- /run/kms 640 480 2>&1; }
read -rt 60 answer <&"${kms[0]}" || fail "the guest's program does not start"
assert_eq "the guest's picture" "$answer" ok
expect "a picture without a cursor"
tell cursor 100 80 0 0
expect "a cursor at 100,80" 100 80
tell move 300 200
expect "a cursor at 300,200" 300 200
tell cursor 300 200 10 20
expect "a cursor whose hot spot is 10,20" 290 180
tell move 3 5
expect "a cursor that leaves to the upper left" -7 -15
tell move 620 470
expect "a cursor that leaves to the lower right" 610 450
tell hide
expect "the picture as it was"
screendump cursor "$OCTAVO_OUT/cursor.png"
assert_ok guest-stop cursor
assert_ok vgpu_remove "$uuid"
