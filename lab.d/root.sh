# SPDX-License-Identifier: LGPL-2.1-or-later
# Debian roots: built once from a package list, kept under a name that is the hash of
# everything they depend on, used read-only ever after. Sourced, never run.

# A root is "small", with what octavo's build and the demo use, or "full": that and what the tests use.
root_size=full

# root_key KIND [SIZE]
root_key() {
	local lists=("$tree/lab.d/packages.$1")
	[[ ${2:-$root_size} == small ]] || lists+=("$tree/lab.d/packages.$1.tests")
	cat "${lists[@]}" "$tree"/lab.d/root-{build,fill,slim} | sha256sum | cut -c1-16
}

# Print the path of root KIND (host or guest), which exists after root_ensure.
root_path() {
	echo "$cache/$1-${2:-$root_size}-$(root_key "$@")"
}

# root_ensure KIND [SIZE]: build it unless it is there. Others that want the same root wait for the lock.
root_ensure() {
	local kind=$1 size=${2:-$root_size} root log base=() what
	need_root
	root=$(root_path "$kind" "$size")
	[[ -d $root ]] && return
	need_tools flock:util-linux unshare:util-linux
	mkdir -p "$cache/logs"
	what="building the Debian $kind root"
	if [[ $size == full ]]; then
		root_ensure "$kind" small
		base=("$(root_path "$kind" small)")
		what="adding to the Debian $kind root what tests use"
	fi
	(
		flock -n 9 || { say "waiting for another run that is building"; flock 9; }
		[[ -d $root ]] && exit 0
		need_tools mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs \
			/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
		# What an interrupted build left; whoever holds the lock may clear it.
		rm -rf --one-file-system "$cache/$kind-$size-"????????????????.tmp
		cache_prune "$kind"
		log=$cache/logs/root-$kind-$size.log
		say "$what (once; log: $log)"
		bash "$tree/lab.d/root-build" "$kind" "$root.tmp" "$tree" "$cache" "${base[@]}" >"$log" 2>&1 </dev/null || {
			tail -n 20 "$log" >&2
			rm -rf --one-file-system "$root.tmp"
			die "building the $kind root failed: see $log"
		}
		mv -T "$root.tmp" "$root"
		say "root is ready: $root"
	) 9>"$cache/$kind.lock" || exit 1
}

# Run a command in root $1 with the source tree, the cache, /tmp and the kernel's file systems at
# their own paths. The root itself stays as built: what the command writes to it vanishes with it.
root_run() {
	local root
	root=$(root_path "$1")
	shift
	exec unshare --mount --propagation private -- \
		bash "$tree/lab.d/root-enter" "$root" "$tree" "$cache" "$PWD" "$@"
}
