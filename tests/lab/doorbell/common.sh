# SPDX-License-Identifier: LGPL-2.1-or-later
# What the doorbell tests share. Sourced after lib.sh, never run.

# ping_prepare NAME: vq_ping is in the guest, which has given its vGPU's function up. Sets address.
ping_prepare() {
	guest_give "$1" vq_ping
	address=$(guest "$1" sh -c 'lspci -D -n -d 1af4:1050 | cut -d" " -f1')
	# the driver may still be on its way
	wait_for 30 "the guest's driver" guest "$1" test -e "/sys/bus/pci/devices/$address/driver"
	assert_ok guest "$1" sh -c "echo $address >/sys/bus/pci/devices/$address/driver/unbind"
}

# kicking_begin NAME UUID [CPU]: the guest kicks, with no end of its own. Sets ping, the process.
kicking_begin() {
	local before
	before=$(vgpu_counter "$2" kicks)
	guest "$1" taskset -c "${3:-0}" /tmp/vq_ping "$address" 1000000 0-500 >"$tmp/ping" 2>&1 &
	ping=$!
	wait_for 30 "kicks of $1" vgpu_counted "$2" kicks $((before + 20))
}

# lives_while_kicking NAME UUID: whatever ends while that guest kicks, nothing hangs, and what comes
# after it is served. The vGPU is gone in the end.
lives_while_kicking() {
	local name=$1 uuid=$2 worker rc=0 i output
	note "the worker dies"
	kicking_begin "$name" "$uuid"
	worker=$(vgpu_worker "$uuid")
	kill -KILL "$worker"
	wait "$ping" || rc=$?
	assert_eq "the program whose worker died" "$rc" 1
	assert_match "its message" "$(cat "$tmp/ping")" 'no answer to request'
	wait_for 20 "a replacement" worker_replaced "$uuid" "$worker"
	output=$(guest "$name" /tmp/vq_ping "$address" 200 0) || fail "after the worker's death: $output"

	note "the program is killed, and another resets the device"
	for i in 1 2 3; do
		kicking_begin "$name" "$uuid"
		guest "$name" pkill -KILL -x vq_ping || fail "round $i: $(cat "$tmp/ping")"
		wait "$ping" || true
		output=$(guest "$name" /tmp/vq_ping "$address" 50 0) || fail "after reset $i: $output"
	done

	note "the mdev is removed"
	kicking_begin "$name" "$uuid"
	assert_ok timeout 60 mdevctl stop -u "$uuid"
	assert_eq "vGPUs" "$(vgpus | wc -l)" 0
	wait_for 10 "the end of its worker" sh -c "! pgrep -x octavo-vgpu"
	assert_eq "state of the guest" "$(guest "$name" uname -s)" Linux
	guest "$name" pkill -KILL -x vq_ping || true
	wait "$ping" || true
}
