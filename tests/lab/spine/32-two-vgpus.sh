#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Two vGPUs in one guest: both are driven, each with its own screen and worker.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$(readlink -f "$0")")

a=$(vgpu_create 1_4)
b=$(vgpu_create 1_8)
guest-start --display two "$a" "$b"
assert_eq "functions 1af4:1050 in the guest" "$(guest two lspci -n -d 1af4:1050 | wc -l)" 2
driven() {
	[[ $(guest two sh -c 'ls -d /sys/bus/virtio/drivers/virtio_gpu/virtio* /sys/class/drm/card? | wc -l') == 4 ]]
}
wait_for 30 "the guest's driver on both" driven
worker_a=$(vgpu_worker "$a")
worker_b=$(vgpu_worker "$b")
[[ -n $worker_a && -n $worker_b && $worker_a != "$worker_b" ]] ||
	fail "workers are '$worker_a' and '$worker_b', wanted one each"
# both accept a mode of their own at once; the console is the first one's
assert_ok guest two sh -c '
	for card in 0 1; do
		bus=$(readlink -f /sys/class/drm/card$card/device | grep -o "0000:[0-9a-f:.]*" | tail -n 1)
		size=$([ $card = 0 ] && echo 800x600 || echo 1024x768)
		id=$(modetest -M virtio_gpu -D $bus -c | awk "\$3 == \"connected\" { print \$1; exit }")
		[ -n "$id" ] || exit 1
		setsid sh -c "sleep 3600 | modetest -M virtio_gpu -D $bus -F smpte -s $id:$size" >/tmp/modetest$card.log 2>&1 </dev/null &
	done'
equals() {
	screendump two "$tmp/two.ppm" && python3 "$here/bars.py" "$tmp/two.ppm" "$@"
}
either() {
	equals 800 600 || equals 1024 768
}
wait_for 60 "bars on the first vGPU's console" either
assert_match "errors of the guest's driver" "errors:$(guest two dmesg | grep -c 'virtio_gpu_dequeue_ctrl_func')" 'errors:0$'
assert_ok guest-stop two
assert_ok vgpu_remove "$a"
assert_ok vgpu_remove "$b"
