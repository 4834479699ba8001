# SPDX-License-Identifier: LGPL-2.1-or-later
# ./lab demo, bench and clean. Sourced, never run.

# ./lab demo [--kernel V]
demo_main() {
	local series=6.12 rc=0 started=$EPOCHREALTIME
	while [[ $# -gt 0 ]]; do
		case $1 in
		--kernel) series=${2:?--kernel needs 6.12 or 7.3}; shift 2 ;;
		*) die "demo: unknown option $1: see ./lab help" ;;
		esac
	done
	# A newcomer's first picture need not wait for what only tests use.
	[[ $series != 6.12 ]] || lab_ready || root_size=small
	lab_ensure
	trap vm_kill EXIT
	trap 'vm_kill; exit 130' INT
	trap 'vm_kill; exit 143' TERM HUP
	vm_start "$series" demo || exit 1
	vm_exec -- env OCTAVO_ELAPSED="$(elapsed "$lab_started")" bash "$tree/tests/lab/demo" || rc=$?
	vm_stop
	say "demo: done after $(elapsed "$started") s; pictures and table are in $out/demo"
	exit "$rc"
}

# ./lab bench [NAME...]: tests/bench/NAME; "# runs: host" in its head means in the host VM.
bench_main() {
	local name file names=("$@") rc=0 in_host=()
	if [[ ${#names[@]} -eq 0 ]]; then
		for file in "$tree"/tests/bench/*; do
			[[ -x $file && -f $file ]] && names+=("${file##*/}")
		done
	fi
	[[ ${#names[@]} -gt 0 ]] || die "there is no benchmark in tests/bench"
	for name in "${names[@]}"; do
		[[ -x $tree/tests/bench/$name ]] ||
			die "there is no benchmark '$name': there are $(ls "$tree/tests/bench" | tr '\n' ' ')"
	done
	mkdir -p "$out"
	for name in "${names[@]}"; do
		if test_header "$tree/tests/bench/$name" runs native | grep -q host; then
			in_host+=("$name")
			continue
		fi
		root_ensure host
		mkdir -p "$build"
		(root_run host bash "$tree/lab.d/unit-inside" "$tree" "$build" native-build) \
			>"$build/native.log" 2>&1 </dev/null || die "building for the benchmarks failed: see $build/native.log"
		say "bench: $name"
		(root_run host env OCTAVO_TREE="$tree" OCTAVO_BUILD="$build/native" OCTAVO_OUT="$out" \
			"$tree/tests/bench/$name") || rc=1
	done
	if [[ ${#in_host[@]} -gt 0 ]]; then
		lab_ensure
		trap vm_kill EXIT
		trap 'vm_kill; exit 130' INT
		trap 'vm_kill; exit 143' TERM HUP
		vm_start 6.12 bench || exit 1
		for name in "${in_host[@]}"; do
			say "bench: $name"
			vm_exec -- env OCTAVO_OUT="$out" "$tree/tests/bench/$name" || rc=1
		done
		vm_stop
	fi
	exit "$rc"
}

# ./lab clean [--all]
clean_main() {
	need_root
	case ${1:-} in
	'') rm -rf --one-file-system "$build" "$out" ;;
	--all)
		exec 9>"$cache/host.lock" 8>"$cache/guest.lock"
		flock -n 9 && flock -n 8 || die "another run is building: end it first"
		if [[ -n $(ls -d /tmp/octavo-lab.* 2>/dev/null) ]] && pgrep -f 'qemu-system-x86_64 -name octavo-host' >/dev/null; then
			die "a host VM runs from the cache: end it first"
		fi
		rm -rf --one-file-system "$out" "$cache"
		;;
	*) die "clean: unknown option $1: see ./lab help" ;;
	esac
}
