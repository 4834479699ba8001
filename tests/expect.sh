# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by tests of programs.

# expect STATUS REGEX CMD...: its status, and what it prints on both outputs matches
expect() {
	local wanted=$1 text=$2 output rc=0
	shift 2
	output=$("$@" 2>&1) || rc=$?
	[[ $rc -eq $wanted && $output =~ $text ]] && return
	printf 'FAIL line %s: "%s" ended with %s and said "%s"; wanted %s and "%s"\n' \
		"${BASH_LINENO[0]}" "$*" "$rc" "$output" "$wanted" "$text" >&2
	exit 1
}
