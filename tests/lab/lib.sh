# SPDX-License-Identifier: LGPL-2.1-or-later
# What lab tests are written with. They run as root inside the host VM; a test sources this file:
#
#	. "$(dirname "$0")/../lib.sh"
#
# and ends with status 0 if what it says holds. What it makes (guests, vGPUs) is taken down after
# it and checked to be gone; files for a person to look at go to $OCTAVO_OUT.

. /etc/octavo-lab.conf
. "$OCTAVO_TREE/lab.d/kernel-log.sh"
lab=/usr/lib/octavo-lab
guests=/run/octavo-lab
tmp=${TMPDIR:-/tmp}

# ---- assertions: each tells what was looked at, found and wanted

fail() {
	printf 'FAIL %s:%s: %s\n' "$(basename "${BASH_SOURCE[1]}")" "${BASH_LINENO[0]}" "$*" >&2
	exit 1
}

note() {
	printf '# %3d s  %s\n' "$SECONDS" "$*"
}

# assert_eq WHAT GOT WANTED
assert_eq() {
	[[ $2 == "$3" ]] && return
	printf 'FAIL line %s: %s: got "%s", wanted "%s"\n' "${BASH_LINENO[0]}" "$1" "$2" "$3" >&2
	exit 1
}

# assert_match WHAT GOT REGEX
assert_match() {
	[[ $2 =~ $3 ]] && return
	printf 'FAIL line %s: %s: got "%s", which does not match "%s"\n' "${BASH_LINENO[0]}" "$1" "$2" "$3" >&2
	exit 1
}

# assert_within WHAT GOT LOW HIGH: whole numbers
assert_within() {
	[[ $2 -ge $3 && $2 -le $4 ]] && return
	printf 'FAIL line %s: %s: got %s, wanted %s to %s\n' "${BASH_LINENO[0]}" "$1" "$2" "$3" "$4" >&2
	exit 1
}

# assert_ok CMD...: its output is shown when it fails
assert_ok() {
	local output rc=0
	output=$("$@" 2>&1) || rc=$?
	[[ $rc -eq 0 ]] && return
	printf 'FAIL line %s: "%s" ended with %s: %s\n' "${BASH_LINENO[0]}" "$*" "$rc" "$output" >&2
	exit 1
}

# assert_fails REGEX CMD...: it fails, and says something that matches
assert_fails() {
	local wanted=$1 output rc=0
	shift
	output=$("$@" 2>&1) || rc=$?
	if [[ $rc -eq 0 ]]; then
		printf 'FAIL line %s: "%s" succeeded, but had to fail: %s\n' "${BASH_LINENO[0]}" "$*" "$output" >&2
		exit 1
	fi
	[[ $output =~ $wanted ]] && return
	printf 'FAIL line %s: "%s" failed as it must, but said "%s", which does not match "%s"\n' \
		"${BASH_LINENO[0]}" "$*" "$output" "$wanted" >&2
	exit 1
}

# wait_for SECONDS WHAT CMD...: until CMD succeeds; the deadline is a failure that names WHAT.
# CMD may be a function or a command; several words, no quoting games.
wait_for() {
	local seconds=$1 what=$2 end
	shift 2
	end=$((SECONDS + seconds))
	until "$@" >/dev/null 2>&1; do
		if [[ $SECONDS -ge $end ]]; then
			printf 'FAIL line %s: %s: not within %s s (%s)\n' "${BASH_LINENO[0]}" "$what" "$seconds" "$*" >&2
			exit 1
		fi
		pause 0.1
	done
}

# A pause without a process: for loops that wait on a condition.
pause() {
	read -rt "$1" <> <(:) || true
}

# ---- GPUs and vGPUs

# PCI addresses of the host's GPUs that offer vGPUs.
gpu_parents() {
	local path
	for path in /sys/class/mdev_bus/*; do
		[[ -e $path/mdev_supported_types ]] && echo "${path##*/}"
	done
	return 0
}

gpus_ready() {
	[[ $(gpu_parents | wc -l) -eq 2 ]]
}

# A host that has just booted is still binding its drivers.
gpus_wait() {
	udevadm settle --timeout=60
	wait_for 90 "vGPUs on both GPUs of the host" gpus_ready
}

gpu_parent() {
	local first
	first=$(gpu_parents | head -n 1)
	[[ -n $first ]] || { echo "no GPU of this host offers vGPUs: is octavo.ko loaded, is octavod running?" >&2; return 1; }
	echo "$first"
}

# vgpu_type SHARE [PARENT]: 1_4 -> the type's full id, which begins with the parent's driver.
vgpu_type() {
	local parent path
	parent=${2:-$(gpu_parent)} || return
	for path in /sys/class/mdev_bus/"$parent"/mdev_supported_types/*-octavo_"$1"; do
		[[ -d $path ]] && basename "$path" && return
	done
	echo "GPU $parent has no type octavo_$1" >&2
	return 1
}

# vgpu_available SHARE [PARENT]: how many more fit
vgpu_available() {
	local parent type
	parent=${2:-$(gpu_parent)} || return
	type=$(vgpu_type "$1" "$parent") || return
	cat "/sys/class/mdev_bus/$parent/mdev_supported_types/$type/available_instances"
}

# vgpu_create SHARE [PARENT [UUID]]: through mdevctl, as an operator does; prints the UUID.
vgpu_create() {
	local parent type uuid
	parent=${2:-$(gpu_parent)} || return
	type=$(vgpu_type "$1" "$parent") || return
	uuid=${3:-$(cat /proc/sys/kernel/random/uuid)}
	mdevctl start -u "$uuid" -p "$parent" -t "$type" || return
	echo "$uuid"
}

vgpu_remove() {
	mdevctl stop -u "$1"
}

vgpus() {
	local path
	for path in /sys/bus/mdev/devices/*; do
		[[ -e $path ]] && echo "${path##*/}"
	done
	return 0
}

# vgpu_worker UUID: process ids of the workers that serve it now
vgpu_worker() {
	local pid
	for pid in $(pgrep -x octavo-vgpu); do
		tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF "$1" && echo "$pid"
	done
	return 0
}

# vgpu_is UUID STATE: whether octavod has it in that state
vgpu_is() {
	[[ $(octavoctl --json show "$1" | jq -r .state) == "$2" ]]
}

# vgpu_counter UUID NAME: one of its counters, of mdev/octavo.h or the scheduler
vgpu_counter() {
	octavoctl --json show "$1" | jq ".counters.$2"
}

# vgpu_counted UUID NAME N: whether it has counted beyond N
vgpu_counted() {
	[[ $(vgpu_counter "$1" "$2") -gt $3 ]]
}

# worker_replaced UUID OLD: whether another process than OLD serves it
worker_replaced() {
	local now
	now=$(vgpu_worker "$1")
	[[ $now && $now != "$2" ]]
}

# octavod_stands_still, until octavod_goes_on: stopped, not ended. systemd takes it for a hung one
# meanwhile, until it hears from it again.
octavod_pid=
octavod_stands_still() {
	systemctl service-watchdogs no
	octavod_pid=$(systemctl show -p MainPID --value octavod)
	kill -STOP "$octavod_pid"
	octavod_heard=$(systemctl show -p WatchdogTimestampMonotonic octavod)
}
octavod_goes_on() {
	[[ $octavod_pid ]] || return 0
	kill -CONT "$octavod_pid"
	octavod_pid=
	wait_for 30 "octavod's sign of life" octavod_was_heard
	systemctl service-watchdogs yes
}
octavod_was_heard() {
	[[ $(systemctl show -p WatchdogTimestampMonotonic octavod) != "$octavod_heard" ]]
}

# ---- guests: guest-start, guest-exec, guest-stop and guest-run are commands

# guests_lost: running guests whose page tables lie beyond their memory. The lab's emulated processor now
# and then saves the host's registers as the guest's when it leaves a guest: such a guest never runs again.
guests_lost() {
	local dir memory_mib cr3
	for dir in "$guests"/*/; do
		[[ -S $dir/qmp-lab && -f $dir/command ]] || continue
		memory_mib=$(sed -n 's/.* -m \([0-9]*\) .*/\1/p' "$dir/command")
		for cr3 in $(timeout 10 "$lab/labexec" qmp "$dir/qmp-lab" \
			'{"execute":"human-monitor-command","arguments":{"command-line":"info registers -a"}}' </dev/null |
			grep -o 'CR3=[0-9a-f]*'); do
			((16#${cr3#CR3=} >= memory_mib << 20)) && echo "$(basename "$dir") ($cr3, $memory_mib MiB)"
		done
	done
	return 0
}

# guest NAME CMD...: in a running guest
guest() {
	local name=$1
	shift
	guest-exec "$name" -- "$@"
}

# guest_give NAME PROGRAM...: our guest programs, as files in the guest's /tmp
guest_give() {
	local name=$1 program
	shift
	for program in "$@"; do
		guest-exec -i "$name" -- sh -c "cat >/tmp/$program && chmod +x /tmp/$program" \
			<"$OCTAVO_BUILD/$program"
	done
}

# qmp NAME JSON: one QMP command to a guest's QEMU, its answer on stdout; fails on an error
qmp() {
	"$lab/labexec" qmp "$guests/$1/qmp" "$2"
}

guest_pid() {
	cat "$guests/$1/pid"
}

# screendump NAME FILE: what the guest's first screen shows; FILE ends in .png or .ppm
screendump() {
	local format=${2##*.} file=/tmp/screen.$$
	rm -f "$file"
	qmp "$1" "{\"execute\":\"screendump\",\"arguments\":{\"filename\":\"$file\",\"format\":\"$format\"}}" >/dev/null || return
	mv "$file" "$2"
}

# screen_size FILE.ppm: WIDTHxHEIGHT
screen_size() {
	head -c 64 "$1" | tr '\n' ' ' | awk '{ print $2 "x" $3 }'
}

# screen_shades FILE.ppm BYTES: how many colours there are in its middle, in so many bytes
screen_shades() {
	tail -c "+$(($(stat -c %s "$1") / 2))" "$1" | head -c "$2" | xxd -p -c 3 | sort -u | wc -l
}

# ---- what the host holds: taken before a test, compared after it

# The kernel sums its CPUs' shares up once a second, or when asked to.
pinned_pages() {
	cat /proc/sys/vm/stat_refresh
	awk '/^nr_foll_pin_acquired / { a = $2 } /^nr_foll_pin_released / { r = $2 } END { print a - r }' /proc/vmstat
}

# Lines "NAME VALUE"; a value that grew is a leak.
snapshot_resources() {
	local pid
	echo "mdevs $(vgpus | wc -l)"
	echo "mdev-definitions $(mdevctl list -d 2>/dev/null | grep -c .)"
	echo "qemu-processes $(pgrep -c qemu)"
	echo "worker-processes $(pgrep -xc octavo-vgpu)"
	echo "render-processes $(pgrep -fc virgl_render_server)"
	echo "pinned-pages $(pinned_pages)"
	echo "module-users $(cat /sys/module/octavo/refcnt 2>/dev/null || echo 0)"
	echo "gpus $(gpu_parents | wc -l)"
	pid=$(pidof -s octavod) && echo "octavod-files $(ls "/proc/$pid/fd" | wc -l)"
	awk '/^octavo/ { print "slab-" $1, $2 }' /proc/slabinfo
	return 0
}

# compare_resources BEFORE: true when nothing is left behind; ends of processes may take a moment.
compare_resources() {
	local end=$((SECONDS + 10)) after differ
	while :; do
		after=$(snapshot_resources)
		# octavod may have been restarted by the test: a smaller count is no leak.
		differ=$(join <(sort <<<"$1") <(sort <<<"$after") |
			awk '$3 > $2 || ($1 == "gpus" && $3 != $2) { printf "left behind: %s: %s before, %s after\n", $1, $2, $3 }')
		[[ -z $differ ]] && return 0
		[[ $SECONDS -ge $end ]] && break
		pause 0.3
	done
	echo "$differ"
	return 1
}

# Back to what a booted host looks like, whatever the test did. Says what it had to undo.
host_reset() {
	local uuid path name
	guest-stop --all || true
	pkill -KILL -x 'qemu-system-.*' 2>/dev/null
	for path in /sys/bus/pci/devices/*; do
		[[ $(cat "$path/class") == 0x0380?? || $(cat "$path/class") == 0x0300?? ]] || continue
		[[ -e $path/driver ]] || echo "${path##*/}" >/sys/bus/pci/drivers_probe
	done
	# An mdev goes away once its QEMU's last descriptor is closed.
	for uuid in $(vgpus); do
		timeout 20 mdevctl stop -u "$uuid" || echo "clean-up: vGPU $uuid does not go away"
	done
	while read -r uuid name; do
		mdevctl undefine -u "$uuid" || true
	done < <(mdevctl list -d 2>/dev/null | awk '{ print $1 }')
	if [[ -f /usr/lib/systemd/system/octavod.service ]]; then
		modinfo octavo >/dev/null 2>&1 && [[ ! -d /sys/module/octavo ]] && modprobe octavo
		systemctl is-active --quiet octavod || {
			systemctl reset-failed octavod
			systemctl start octavod || echo "clean-up: octavod does not start"
		}
	fi
	return 0
}
