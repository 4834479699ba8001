# SPDX-License-Identifier: LGPL-2.1-or-later
# ./lab check: every test of the tree, counted. Sourced, never run.
#
# Groups unit and native run in the build root; the others are tests/lab/GROUP/NN-name.{sh,py} and
# run in host VMs; qemu-patches has steps in the build root first. A lab test's first lines may hold:
#   # needs: own-vm     a boot of its own
#   # needs: bare       that boot without octavo; its packages are in $OCTAVO_BUILD/../packages
#   # needs: soak       only with --soak
#   # needs: named      only when it or its group is named, or with --soak: takes minutes
#   # needs: quiet      (native) asserts times: not beside the host VM
#   # needs: proof      not yet seen to hold in the lab: only with --soak or when GROUP/NN is named
#   # needs: restart    run twice, OCTAVO_PHASE=before and =after a restart of the host VM
#   # kernel: 7.3       only on this kernel
#   # kernels: all      on each kernel; else on the first one only, unless --kernel or --soak is given
#   # limit: 300        seconds until it counts as hung (180)

check_groups=(unit native spine render scheduler operate doorbell packages qemu-patches)
# These run only when they are named.
check_named_groups=(qemu-patches)
check_passed=0
check_failed=0
check_series=()	# kernels: --kernel's, or all
check_series_given=
check_soak=

# check_result ok|FAIL NAME STARTED [LOG]
check_result() {
	local line
	line="$1 $2 ($(elapsed "$3") s)"
	if [[ $1 == ok ]]; then
		check_passed=$((check_passed + 1))
	else
		check_failed=$((check_failed + 1))
		[[ -n ${4:-} ]] && line+=": see $4"
	fi
	echo "$line"
}

# The last lines of a failed test's log, indented, so that a reader of a CI log sees the cause.
check_show() {
	[[ -f $1 ]] && tail -n "${2:-24}" "$1" | sed 's/^/    /'
	return 0
}

# One step of unit or native: check_step NAME CMD... in the build root.
check_step() {
	local name=$1 started=$EPOCHREALTIME log
	shift
	log=$check_log/${name//\//-}.log
	if (root_run host timeout --kill-after=10 "${check_limit:-900}" "$@") >"$log" 2>&1 </dev/null; then
		check_result ok "$name" "$started"
	else
		check_result FAIL "$name" "$started" "$log"
		check_show "$log" 25
		return 1
	fi
}

# A step that runs automake's tests: each of its PASS and FAIL lines counts too.
check_programs() {
	local name=$1 log kind program
	shift
	check_step "$name" "$@" || true
	log=$check_log/${name//\//-}.log
	while read -r kind program; do
		program=${name%%/*}/${program##*/}
		case $kind in
		PASS:) check_result ok "$program [${name##*/}]" "$EPOCHREALTIME" ;;
		FAIL: | ERROR: | XPASS:) check_result FAIL "$program [${name##*/}]" "$EPOCHREALTIME" "$log" ;;
		esac
	done < <(grep -E '^(PASS|FAIL|ERROR|XPASS): ' "$log")
}

check_unit() {
	local inside=(bash "$tree/lab.d/unit-inside" "$tree" "$build")
	check_programs unit/sanitizers "${inside[@]}" sanitizers
	check_step unit/clang "${inside[@]}" clang || true
	check_step unit/dist "${inside[@]}" dist || true
	check_step unit/module "${inside[@]}" module || true
	check_step unit/cppcheck "${inside[@]}" cppcheck || true
	check_step unit/clang-tidy "${inside[@]}" clang-tidy || true
	check_step unit/text "${inside[@]}" text || true
}

# Compilers and analysers have the processor time that the host VM leaves. Their results are counted
# and printed when the VM's tests are through.
check_beside_start() {
	(
		trap - EXIT
		trap '' INT	# check_beside_kill ends it
		check_passed=0 check_failed=0 check_limit=2700
		renice -n 19 -p "$BASHPID" >/dev/null
		check_others
		echo "$check_passed $check_failed" >"$check_log/beside.count"
	) >"$check_log/beside.log" 2>&1 </dev/null &
	check_beside=$!
}

check_beside_end() {
	local passed failed
	wait "$check_beside" || true
	check_beside=
	cat "$check_log/beside.log"
	read -r passed failed <"$check_log/beside.count" || return
	check_passed=$((check_passed + passed))
	check_failed=$((check_failed + failed))
}

# A step's timeout leads a process group too, which it ends when it is told to end.
check_beside_kill() {
	local steps
	steps=$(pgrep -P "$check_beside") || true
	kill -KILL "$check_beside" 2>/dev/null
	# shellcheck disable=SC2086
	kill -TERM $steps 2>/dev/null
	return 0
}

# check_native quiet|other: the native tests that need the machine for themselves, or the others
check_native() {
	local test quiet started log
	[[ -d $tree/tests/native ]] || return 0
	if [[ ! ${check_native_made:-} ]]; then
		check_step native/build bash "$tree/lab.d/unit-inside" "$tree" "$build" native-build || return 0
		check_native_made=1
	fi
	for test in "$tree"/tests/native/[0-9]*.sh "$tree"/tests/native/[0-9]*.py; do
		[[ -f $test ]] || continue
		quiet=other
		test_needs "$test" quiet && quiet=quiet
		[[ $quiet == "$1" ]] || continue
		check_wanted "native/$(test_name "$test")" || continue
		check_now "$test" || continue
		check_proven "$test" "native/$(test_name "$test")" || continue
		check_limit=$(test_header "$test" limit 300) check_step "native/$(test_name "$test")" \
			env OCTAVO_TREE="$tree" OCTAVO_BUILD="$build/native" OCTAVO_OUT="$out" \
			OCTAVO_SOAK="$check_soak" "$(test_runner "$test")" "$test" || true
	done
}

# What needs no VM and asserts no times.
check_others() {
	check_wanted_group unit && check_unit
	check_wanted_group native && check_native other
	return 0
}

# What QEMU's own script says of qemu-patches/, and the QEMU that they make.
check_qemu() {
	local started=$EPOCHREALTIME
	if ! (qemu_ensure); then
		check_result FAIL qemu-patches/build "$started" "$cache/logs/qemu.log"
		return
	fi
	check_result ok qemu-patches/build "$started"
	check_step qemu-patches/checkpatch bash "$tree/lab.d/qemu-inside" "$tree" "$cache/qemu-work" - \
		checkpatch || true
}

test_name() {
	local name=${1##*/}
	echo "${name%.*}"
}

test_runner() {
	case $1 in
	*.py) echo python3 ;;
	*) echo bash ;;
	esac
}

# test_header FILE WORD DEFAULT
test_header() {
	local value
	value=$(head -n 15 "$1" | sed -n "s/^# $2: *//p" | head -n 1)
	echo "${value:-$3}"
}

test_needs() {
	head -n 15 "$1" | grep -q "^# needs:.*\b$2\b"
}

# Whether it is the time for a test that takes long.
check_now() {
	[[ $check_soak ]] && return 0
	test_needs "$1" soak && return 1
	[[ ${#check_names[@]} -gt 0 ]] || ! test_needs "$1" named
}

# Whether a test counts: one that was never seen to hold says nothing when it fails.
check_proven() {
	local name
	[[ $check_soak ]] && return 0
	test_needs "$1" proof || return 0
	for name in "${check_names[@]}"; do
		[[ $name == */* ]] && check_named "$2" "$name" && return 0
	done
	say "not run: $2 (not yet seen to hold; give its name to run it)"
	return 1
}

# Whether a group runs when no name is given.
check_by_default() {
	[[ " ${check_named_groups[*]} " != *" $1 "* ]]
}

# check_named TEST NAME: GROUP, GROUP/NN or GROUP/NN-name
check_named() {
	[[ $1 == "$2" || $1 == "$2"/* || $1 == "$2"-* ]]
}

# Whether one of the names given on the command line asks for this test; all do when none is given.
check_wanted() {
	local name
	[[ ${#check_names[@]} -eq 0 ]] && { check_by_default "${1%%/*}"; return; }
	for name in "${check_names[@]}"; do
		check_named "$1" "$name" && return 0
	done
	return 1
}

# check_lab_run TEST LIMIT PHASE: the part of it that runs in the VM
check_lab_run() {
	timeout --kill-after=5 $(($2 + 90)) "$build/labexec" run -w 30 "$vm_dir"/lab{0,1,2,3} -- \
		env OCTAVO_SOAK="$check_soak" OCTAVO_PHASE="$3" OCTAVO_STAGE="$vm_stage" bash "$tree/tests/lab/run-one" "$1" "$2" </dev/null
}

# Run one lab test in the VM that is up. Sets vm_dirty when the next one needs a fresh VM.
check_lab_test() {
	local test=$1 series=$2 name started=$EPOCHREALTIME limit log rc=0 died=0 again=
	name=${test#"$tree/tests/lab/"}
	name=${name%.*}
	limit=$(test_header "$test" limit 180)
	log=$vm_log/test-${name//\//-}.log
	# The inner limit leaves the clean-up its turn; the outer one ends a VM that answers no more.
	if test_needs "$test" restart; then
		check_lab_run "$test" "$limit" before >"$log" 2>&1 &&
			vm_exec -r -w 300 -- systemctl reboot >>"$log" 2>&1 </dev/null &&
			check_lab_run "$test" "$limit" after >>"$log" 2>&1 || rc=$?
	else
		check_lab_run "$test" "$limit" '' >"$log" 2>&1 || rc=$?
	fi
	if [[ $rc -eq 0 ]]; then
		check_result ok "$name [$series]" "$started"
		return
	fi
	case $rc in
	123)
		echo "the host VM restarted during this test; what it said:" >>"$log"
		grep -B 30 -A 3 'Kernel panic' "$vm_log/console.log" >>"$log"
		;;
	124 | 137) echo "the host VM no longer answers" >>"$log" ;;
	125)
		vm_died || died=$?
		{
			echo "the host VM died during this test (its QEMU ended with status $died): see $vm_log/console.log"
			tail -n 6 "$vm_log/console.log"
			tail -n 3 "$vm_log/qemu.log"
		} >>"$log"
		# A kernel that panics says so and starts anew, one that powers off says so too. Any other end
		# is the emulator's own, and no word on the test: told of, and not taken twice.
		if ! grep -qE 'Kernel panic|BUG:|Oops|reboot: ' "$vm_log/console.log"; then
			again="the host VM's emulator ended with status $died: $(tail -n 1 "$vm_log/qemu.log")"
		fi
		;;
	77) again=$(tail -n 1 "$log") ;;
	esac
	if [[ $again && ! ${check_again:-} ]]; then
		say "$name runs once more: $again"
		vm_stop
		if vm_start "$series" check; then
			check_again=1 check_lab_test "$test" "$series"
			return
		fi
	fi
	check_result FAIL "$name [$series]" "$started" "$log"
	check_show "$log"
	# What a failed test leaves behind is not the next one's fault.
	vm_dirty=1
}


# check_lab_batch SERIES TESTS...: in one boot as long as all is well.
check_lab_batch() {
	local series=$1 test name
	shift
	for test in "$@"; do
		name=${test#"$tree/tests/lab/"}
		if ! vm_alive || [[ $vm_dirty ]]; then
			vm_stop
			if ! vm_start "$series" check; then
				check_result FAIL "${name%.*} [$series]" "$EPOCHREALTIME" "$vm_log"
				vm_kill
				continue
			fi
			vm_dirty=
		fi
		check_lab_test "$test" "$series"
	done
	vm_stop
	if [[ $# -gt 0 && -f $vm_log/kernel.log ]]; then
		if kernel_complaints "$vm_log/kernel.log" >"$vm_log/complaints.log"; then
			check_result FAIL "kernel log [$series]" "$EPOCHREALTIME" "$vm_log/complaints.log"
			check_show "$vm_log/complaints.log"
		fi
	fi
}

# What depends on the kernel's interfaces runs on each; the rest of the device is the same program.
check_on_kernel() {
	[[ $check_series_given || $check_soak || $2 == "${check_series[0]}" ]] && return 0
	[[ $(test_header "$1" kernels first) == all || $(test_header "$1" kernel "") == "$2" ]]
}

# The Debian packages, once for all kernels.
check_packages() {
	[[ ${check_packages_made:-} ]] && return
	check_step packages/build bash "$tree/lab.d/packages-inside" "$tree" "$build" || return
	check_packages_made=1
}

check_lab() {
	local series=$1 group test name shared=() own=()
	for group in "${check_groups[@]}"; do
		for test in "$tree/tests/lab/$group"/[0-9]*.sh "$tree/tests/lab/$group"/[0-9]*.py; do
			[[ -f $test ]] || continue
			name=$group/$(test_name "$test")
			check_wanted "$name" || continue
			check_now "$test" || continue
			check_proven "$test" "$name" || continue
			[[ $(test_header "$test" kernel "$series") == "$series" ]] || continue
			check_on_kernel "$test" "$series" || continue
			if test_needs "$test" own-vm; then
				own+=("$test")
			else
				shared+=("$test")
			fi
		done
	done
	vm_dirty=
	check_lab_batch "$series" "${shared[@]}"
	for test in "${own[@]}"; do
		vm_dirty=1
		vm_stage=stage
		if test_needs "$test" bare; then
			check_packages || continue
			vm_stage=bare
		fi
		check_lab_batch "$series" "$test"
	done
	vm_stage=stage
}

check_any_lab() {
	local group
	for group in "${check_groups[@]:2}"; do
		if [[ -d $tree/tests/lab/$group ]]; then
			[[ ${#check_names[@]} -eq 0 ]] && return 0
			[[ " ${check_names[*]} " == *" $group"[\ /]* ]] && return 0
		fi
	done
	return 1
}

check_end() {
	local rc=$?
	vm_kill
	[[ ${check_beside:-} ]] && check_beside_kill
	# Whatever ended the run early is a failure too.
	if [[ -z ${check_complete:-} ]]; then
		check_failed=$((check_failed + 1))
		echo "FAIL check was not completed (status $rc)"
	fi
	printf '%d passed, %d failed\n' "$check_passed" "$check_failed"
	[[ $check_passed -gt 0 || $check_failed -gt 0 ]] || say "check: no test is named ${check_names[*]}"
	[[ $check_failed -eq 0 && $check_passed -gt 0 ]] || exit 1
	exit 0
}

# ./lab check [--soak] [--kernel V] [NAME...]
check_main() {
	local name group started=$EPOCHREALTIME
	check_names=()
	while [[ $# -gt 0 ]]; do
		case $1 in
		--soak) check_soak=1; shift ;;
		--kernel) check_series=("${2:?--kernel needs 6.12 or 7.3}") check_series_given=1; shift 2 ;;
		--kernel=*) check_series=("${1#*=}") check_series_given=1; shift ;;
		-*) die "check: unknown option $1: see ./lab help" ;;
		*) check_names+=("${1%.sh}"); shift ;;
		esac
	done
	[[ $check_series_given ]] || check_series=("${vm_series[@]}")
	for name in "${check_series[@]}"; do
		[[ " ${vm_series[*]} " == *" $name "* ]] ||
			die "there is no kernel '$name' in the lab: its kernels are ${vm_series[*]}"
	done
	for name in "${check_names[@]}"; do
		[[ " ${check_groups[*]} " == *" ${name%%/*} "* ]] ||
			die "there is no test group '${name%%/*}': groups are ${check_groups[*]}"
	done
	trap check_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	if check_any_lab; then
		roots_ensure
	else
		root_ensure host
	fi
	check_log=$out/logs/$(date +%Y%m%d-%H%M%S)-check
	mkdir -p "$check_log" "$build"
	ln -sfn "${check_log##*/}" "$out/logs/latest-check"
	check_wanted_group native && check_native quiet
	check_any_lab || check_others
	check_wanted_group qemu-patches && check_qemu
	if check_any_lab; then
		if (lab_ensure); then
			check_beside_start
			for name in "${check_series[@]}"; do
				check_lab "$name"
			done
			say "check: the host VM is through, waiting for what ran beside it"
			check_beside_end || die "what ran beside the host VM was ended: see $check_log/beside.log"
		else
			check_result FAIL "build for the host VM" "$started" "$build/build.log"
			check_show "$build/build.log" 25
		fi
	fi
	say "check: all done after $(elapsed "$started") s"
	check_complete=1
}

check_wanted_group() {
	local name
	[[ ${#check_names[@]} -eq 0 ]] && { check_by_default "$1"; return; }
	for name in "${check_names[@]}"; do
		[[ ${name%%/*} == "$1" ]] && return 0
	done
	return 1
}
