# SPDX-License-Identifier: LGPL-2.1-or-later
# A guest whose program draws and moves a cursor as it is told. Sourced after lib.sh, once a test.

cursor_here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

# cursor_begin NAME: kms.c shows its picture in that guest
cursor_begin() {
	local answer
	cursor_guest=$1
	gcc -O1 -Wall -I/usr/include/libdrm -o "$tmp/kms" "$cursor_here/kms.c"
	guest-exec -i "$1" -- sh -c 'cat >/run/kms; chmod 755 /run/kms' <"$tmp/kms"
	coproc kms { guest-exec -i "$cursor_guest" -- /run/kms 640 480 2>&1; }
	read -rt 60 answer <&"${kms[0]}" || fail "the guest's program does not start"
	assert_eq "the guest's picture" "$answer" ok
}

# cursor_tell WORD...: see kms.c
cursor_tell() {
	local answer
	echo "$*" >&"${kms[1]}"
	read -rt 30 answer <&"${kms[0]}" || fail "the guest's program does not answer '$*'"
	assert_eq "the guest's answer to '$*'" "$answer" ok
}

# cursor_shown [X Y]: the screen has that picture, and the cursor's corner there
cursor_shown() {
	screendump "$cursor_guest" "$tmp/cursor.ppm" &&
		python3 "$cursor_here/cursor.py" "$tmp/cursor.ppm" 640 480 "$@" >"$tmp/differs" 2>&1
}

# cursor_expect WHAT [X Y]
cursor_expect() {
	local what=$1
	shift
	( wait_for 30 "$what" cursor_shown "$@" ) || { cat "$tmp/differs"; fail "$what is not what the screen shows"; }
}
