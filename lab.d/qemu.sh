# SPDX-License-Identifier: LGPL-2.1-or-later
# QEMU with the patches of qemu-patches/, built from Debian's source once for each content of them.
# Sourced, never run.

# Everything that the built QEMU depends on beside its root.
qemu_path() {
	local key
	key=$({ root_key host; cat "$tree/lab.d/qemu-inside" "$tree"/qemu-patches/000[1-9]-*.patch; } | sha256sum | cut -c1-16)
	echo "$cache/qemu-$key"
}

# Build it unless it is there, and lay it where the host VM finds it: guest-start --qemu patched.
# Source and objects stay in the cache, so that a changed patch compiles only what it changes.
qemu_ensure() {
	local dir log
	root_ensure host
	dir=$(qemu_path)
	(
		flock 9
		[[ -d $dir ]] && exit 0
		cache_prune qemu
		log=$cache/logs/qemu.log
		say "building QEMU with qemu-patches/ (some minutes; log: $log)"
		rm -rf --one-file-system "$dir.tmp"
		mkdir -p "$cache/logs" "$dir.tmp"
		(root_run host bash "$tree/lab.d/qemu-inside" "$tree" "$cache/qemu-work" "$dir.tmp" build) \
			>"$log" 2>&1 </dev/null || {
			grep -E -m 5 'error:|ERROR|FAILED|E: ' "$log" >&2 || tail -n 20 "$log" >&2
			rm -rf --one-file-system "$dir.tmp"
			die "building QEMU failed: see $log"
		}
		mv -T "$dir.tmp" "$dir"
	) 9>"$cache/qemu.lock" || exit 1
	touch "$dir"
	mkdir -p "$build/qemu"
	cmp -s "$dir/qemu-system-x86_64" "$build/qemu/qemu-system-x86_64" ||
		cp "$dir/qemu-system-x86_64" "$build/qemu/"
}

# ./lab qemu
qemu_main() {
	[[ $# -eq 0 ]] || die "qemu: it takes no arguments: see ./lab help"
	need_root
	qemu_ensure
	echo "$(qemu_path)/qemu-system-x86_64"
}
