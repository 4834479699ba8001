#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: named
# limit: 500
# A virtual CPU that is unplugged while it kicks takes no kick with it.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

cycles=2
[[ ${OCTAVO_SOAK:-} ]] && cycles=20

uuid=$(vgpu_create 1_4)
guest-start --smp 1,maxcpus=2 plug "$uuid"
ping_prepare plug
free=$(qmp plug '{"execute":"query-hotpluggable-cpus"}' |
	jq -c '[.. | objects | select(has("vcpus-count") and (has("qom-path") | not))][0]')
cpu=$(jq -c '{driver: .type, id: "cpu1"} + .props' <<<"$free")
note "the virtual CPU: $cpu"

cpu_is_there() {
	guest plug sh -c 'echo 1 >/sys/devices/system/cpu/cpu1/online; grep -qx 1 /sys/devices/system/cpu/cpu1/online'
}
cpu_is_gone() {
	! qmp plug '{"execute":"qom-list","arguments":{"path":"/machine/peripheral/cpu1"}}'
}

for ((i = 1; i <= cycles; i++)); do
	assert_ok qmp plug "{\"execute\":\"device_add\",\"arguments\":$cpu}"
	wait_for 30 "a second virtual CPU in the guest" cpu_is_there
	# the guest's kernel moves it when its CPU goes
	kicking_begin plug "$uuid" 1
	assert_ok qmp plug '{"execute":"device_del","arguments":{"id":"cpu1"}}'
	wait_for 60 "its leave" cpu_is_gone
	kill -0 "$ping" 2>/dev/null || fail "a kick was lost: $(cat "$tmp/ping")"
	wait_for 20 "kicks from the other CPU" vgpu_counted "$uuid" kicks $(($(vgpu_counter "$uuid" kicks) + 100))
	assert_ok guest plug pkill -KILL -x vq_ping
	wait "$ping" || true
	note "unplugged while it kicked, $i of $cycles"
done
output=$(guest plug /tmp/vq_ping "$address" 500 0-500) || fail "at the end: $output"
assert_ok guest-stop plug
assert_ok vgpu_remove "$uuid"
