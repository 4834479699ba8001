#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 300
# A VM whose owner may lock 4 MiB only gets its picture all the same; one that may lock next to
# nothing gets virtio errors and a clear line in the log, and goes on when it may lock more.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$(readlink -f "$0")")

bars() {
	guest memlock sh -c "
		pkill -x modetest
		id=\$(modetest -M virtio_gpu -c | awk '\$3 == \"connected\" { print \$1; exit }')
		setsid sh -c 'sleep 3600 | modetest -M virtio_gpu -F smpte -s '\$id':$1' >/tmp/modetest.log 2>&1 </dev/null &"
}
equals() {
	screendump memlock "$tmp/memlock.ppm" && python3 "$here/bars.py" "$tmp/memlock.ppm" "$@"
}
refused() {
	guest memlock dmesg | grep -q 'response 0x1201 (command 0x105)'
}

uuid=$(vgpu_create 1_4)
# without CAP_IPC_LOCK the limit counts
setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock prlimit --memlock=4194304 \
	guest-start --display memlock "$uuid"
qemu=$(guest_pid memlock)
assert_match "QEMU's limit" "$(grep 'locked memory' "/proc/$qemu/limits")" ' 4194304 '
worker=$(vgpu_worker "$uuid")
assert_ok bars 1920x1080
wait_for 60 "a picture of twice the limit" equals 1920 1080

note "next to nothing"
prlimit --memlock=131072 --pid "$qemu"
assert_ok bars 1024x768
wait_for 60 "OUT_OF_MEMORY for a transfer in the guest's log" refused
assert_match "the worker's log" "$(journalctl -b --no-pager -u 'octavo*' | grep -c 'memlock limit')" '^[1-9]'

note "and more again"
prlimit --memlock=67108864 --pid "$qemu"
painted() {
	bars 640x480
	for _ in {1..20}; do
		equals 640 480 && return
		pause 0.2
	done
	return 1
}
wait_for 60 "a picture" painted
assert_eq "the worker" "$(vgpu_worker "$uuid")" "$worker"
assert_ok guest-stop memlock
assert_ok vgpu_remove "$uuid"
