# SPDX-License-Identifier: LGPL-2.1-or-later
# Disk images, kernels and initial ramdisks of the roots. Sourced, never run.

# Everything that the image depends on beside its root.
image_path() {
	local key
	key=$(cat "$tree"/lab.d/{image-inside,modules-unpack,init.c,labexec.c,vmlinux-extract} "$tree/tests/guest/init" | sha256sum | cut -c1-8)
	echo "$(root_path "$1").$key"
}

# Make the image directory of root $1 unless it is there.
image_ensure() {
	local kind=$1 dir root spare=2048 log
	root_ensure host
	root_ensure "$kind"
	root=$(root_path "$kind")
	dir=$(image_path "$kind")
	if [[ -d $dir ]]; then
		touch "$dir" "$root"
		return
	fi
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
	) 9>"$cache/image-$kind.lock" || exit 1
}

# Both roots, at once, as each keeps one processor busy for minutes: the host's is there afterwards,
# the guest's when process roots_guest has ended.
roots_begin() {
	# Before two builds would install them twice at once
	need_tools mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs setpriv:util-linux \
		/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
	(root_ensure guest) &
	roots_guest=$!
	root_ensure host
}

roots_ensure() {
	[[ -d $(root_path host) && -d $(root_path guest) ]] && return
	roots_begin
	wait "$roots_guest" || exit 1
}

# Whether both images are there.
lab_ready() {
	[[ -d $(image_path host) && -d $(image_path guest) ]]
}

# All that a host VM needs, made side by side on a machine that has none of it yet.
lab_ensure() {
	local host
	need_root
	if lab_ready; then
		build_wanted "$@" && build_ensure
		touch "$(image_path host)" "$(image_path guest)" "$(root_path host)" "$(root_path guest)"
		return
	fi
	roots_begin
	(image_ensure host) &
	host=$!
	build_wanted "$@" && build_ensure
	wait "$roots_guest" || exit 1
	wait "$host" || exit 1
	image_ensure guest
}

# Whether octavo is to be built: always, unless --no-build was said and there is something to run.
build_wanted() {
	[[ ${1:-} != --no-build || ! -f $build/stage.cpio ]] || ! build_for_root
}
