# SPDX-License-Identifier: LGPL-2.1-or-later
# Octavo itself, built out of tree in the host root and staged for the host VM. Sourced, never run.

build=$cache/build-$(printf '%s' "$tree" | sha256sum | cut -c1-12)

# Build what changed, then pack it (and the lab's own files) into $build/stage.cpio.
build_ensure() {
	root_ensure host
	mkdir -p "$build" "$out/logs"
	(
		flock 9
		say "building octavo (log: $build/build.log)"
		(root_run host bash "$tree/lab.d/build-inside" "$tree" "$build") \
			> >(tee "$build/build.log" | grep --line-buffered '^lab: ' >&2) 2>&1 </dev/null || {
			sleep 0.1
			grep -E -m 5 'error|Error' "$build/build.log" >&2
			die "building octavo failed: see $build/build.log"
		}
	) 9>"$build/lock" || exit 1
}
