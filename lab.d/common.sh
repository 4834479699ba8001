# SPDX-License-Identifier: LGPL-2.1-or-later
# What every part of ./lab shares: messages, the cache, locks. Sourced, never run.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/octavo
out=$tree/out
lab_started=${lab_started:-$EPOCHREALTIME}

# Elapsed seconds since $1 (EPOCHREALTIME form), one decimal.
elapsed() {
	local now=$EPOCHREALTIME ms
	ms=$(( (${now/./} - ${1/./}) / 100000 ))
	printf '%d.%d' $((ms / 10)) $((ms % 10))
}

# Progress goes to stderr, so that a command's own output stays clean.
say() {
	printf '[%6ss] %s\n' "$(elapsed "$lab_started")" "$*" >&2
}

die() {
	printf 'lab: %s\n' "$*" >&2
	exit 1
}

need_root() {
	[[ $EUID -eq 0 ]] ||
		die "asked to run as uid $EUID, but chroots, mounts and device images need root: run it again with sudo"
}

# Install the machine's own packages that are missing; arguments are COMMAND:PACKAGE pairs.
need_tools() {
	local pair missing=()
	for pair in "$@"; do
		[[ $pair == /* && -e ${pair%%:*} ]] && continue
		command -v "${pair%%:*}" >/dev/null && continue
		missing+=("${pair##*:}")
	done
	[[ ${#missing[@]} -eq 0 ]] && return
	command -v apt-get >/dev/null ||
		die "missing on this machine: ${missing[*]}, and there is no apt-get to install them: use Debian 12 or later, or install them yourself"
	say "installing on this machine: ${missing[*]}"
	mkdir -p "$cache/logs"
	{
		apt-get update &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
	} >"$cache/logs/apt.log" 2>&1 </dev/null ||
		die "apt-get could not install ${missing[*]}: see $cache/logs/apt.log"
}

# Roots and images of kind $1 that no run has used for two days make room for a new one.
cache_prune() {
	find "$cache" -maxdepth 1 -name "$1-*" -mtime +2 -exec rm -rf --one-file-system {} +
}
