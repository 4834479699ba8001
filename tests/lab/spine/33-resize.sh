#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# octavoctl resize changes what a running guest sees as its monitor, and what it then draws.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$(readlink -f "$0")")

modes() {
	guest resize sh -c 'modetest -M virtio_gpu -c' | awk '/^ +#0 / { print $2; exit }'
}
mode_is() {
	[[ $(modes) == "$1" ]]
}
equals() {
	screendump resize "$tmp/resize.ppm" && python3 "$here/bars.py" "$tmp/resize.ppm" "$@"
}

uuid=$(vgpu_create 1_4)
guest-start --display resize "$uuid"
first=$(modes)
assert_match "the preferred mode at first" "$first" '^[0-9]+x[0-9]+$'
for mode in 1400x1050 800x600 3840x2160 1400x1048; do
	assert_ok octavoctl resize "$uuid" "$mode"
	wait_for 30 "$mode as the guest's preferred mode" mode_is "$mode"
done
assert_ok guest resize sh -c '
	id=$(modetest -M virtio_gpu -c | awk "\$3 == \"connected\" { print \$1; exit }")
	setsid sh -c "sleep 3600 | modetest -M virtio_gpu -F smpte -s $id:#0" >/tmp/modetest.log 2>&1 </dev/null &'
wait_for 60 "bars at the new size" equals 1400 1048
assert_fails 'x' octavoctl resize "$uuid" 8000x100
assert_fails 'x' octavoctl resize "$uuid" 641x480
assert_ok guest-stop resize
assert_ok vgpu_remove "$uuid"
