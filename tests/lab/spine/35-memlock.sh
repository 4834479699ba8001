#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: proof
# limit: 420
# A VM whose owner may lock 4 MiB only: what does not fit fails with a virtio error and a clear line
# in the log; what fits goes on; nothing hangs.
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
assert_match "QEMU's limit" "$(grep 'locked memory' "/proc/$(guest_pid memlock)/limits")" ' 4194304 '
worker=$(vgpu_worker "$uuid")
assert_ok bars 3840x2160
wait_for 60 "OUT_OF_MEMORY for a transfer in the guest's log" refused
assert_match "the worker's log" "$(journalctl -b --no-pager -u 'octavo*' | grep -c 'memlock limit')" '^[1-9]'
assert_ok bars 640x480
wait_for 60 "a picture that fits" equals 640 480
assert_eq "the worker" "$(vgpu_worker "$uuid")" "$worker"
assert_ok guest-stop memlock
assert_ok vgpu_remove "$uuid"
