# SPDX-License-Identifier: LGPL-2.1-or-later
# Disk images, kernels and initial ramdisks of the roots. Sourced, never run.

# Everything that the image depends on beside its root.
image_path() {
	local key
	key=$(cat "$tree"/lab.d/{image-inside,image.sh,init.c,labexec.c,vmlinux-extract} "$tree/tests/guest/init" | sha256sum | cut -c1-8)
	echo "$(root_path "$1").$key"
}

# Make the image directory of root $1 unless it is there.
image_ensure() {
	local kind=$1 dir root spare=2048 log
	root_ensure host
	root_ensure "$kind"
	root=$(root_path "$kind")
	dir=$(image_path "$kind")
	[[ -d $dir ]] && return
	[[ $kind == guest ]] && spare=64
	log=$cache/logs/image-$kind.log
	(
		flock 9
		[[ -d $dir ]] && exit 0
		say "making the $kind disk image (log: $log)"
		rm -rf --one-file-system "$dir.tmp"
		mkdir -p "$dir.tmp"
		(root_run host bash "$tree/lab.d/image-inside" "$kind" "$tree" "$root" "$dir.tmp" "$spare") \
			>"$log" 2>&1 </dev/null || {
			tail -n 20 "$log" >&2
			rm -rf --one-file-system "$dir.tmp"
			die "making the $kind image failed: see $log"
		}
		mv -T "$dir.tmp" "$dir"
	) 9>"$cache/build.lock" || exit 1
}
