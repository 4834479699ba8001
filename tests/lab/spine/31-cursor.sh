#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The guest's cursor lies above its picture, blended, moves, leaves at the edges and leaves no trace.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/cursor.sh"

uuid=$(vgpu_create 1_8)
guest-start --display cursor "$uuid"
cursor_begin cursor
cursor_expect "a picture without a cursor"
cursor_tell cursor 100 80 0 0
cursor_expect "a cursor at 100,80" 100 80
cursor_tell move 300 200
cursor_expect "a cursor at 300,200" 300 200
cursor_tell cursor 300 200 10 20
cursor_expect "a cursor whose hot spot is 10,20" 290 180
cursor_tell move 3 5
cursor_expect "a cursor that leaves to the upper left" -7 -15
cursor_tell move 620 470
cursor_expect "a cursor that leaves to the lower right" 610 450
cursor_tell hide
cursor_expect "the picture as it was"
screendump cursor "$OCTAVO_OUT/cursor.png"
assert_ok guest-stop cursor
assert_ok vgpu_remove "$uuid"
