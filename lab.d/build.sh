# SPDX-License-Identifier: LGPL-2.1-or-later
# Octavo itself, built out of tree in the host root and staged for the host VM. Sourced, never run.

build=$cache/build-$(printf '%s' "$tree" | sha256sum | cut -c1-12)

# Whether what is built is of this root.
build_for_root() {
	[[ $(cat "$build/root" 2>/dev/null) == "$(root_key host)" ]]
}

# Build what changed, then pack it (and the lab's own files) into $build/stage.cpio.
build_ensure() {
	root_ensure host
	mkdir -p "$build" "$out/logs"
	(
		flock 9
		say "building octavo (log: $build/build.log)"
		# Another root has other libraries to find
		build_for_root || rm -f "$build/root" "$build/programs/config.status"
		(root_run host bash "$tree/lab.d/build-inside" "$tree" "$build") \
			> >(tee "$build/build.log" | grep --line-buffered '^lab: ' >&2) 2>&1 </dev/null || {
			sleep 0.1
			grep -E -m 5 'error|Error' "$build/build.log" >&2
			die "building octavo failed: see $build/build.log"
		}
		root_key host >"$build/root"
	) 9>"$build/lock" || exit 1
}
