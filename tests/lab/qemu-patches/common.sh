# SPDX-License-Identifier: LGPL-2.1-or-later
# What the tests of the patched QEMU share. Sourced after lib.sh and doorbell/common.sh, never run.

# Without polling, so that each request is a kick.
polling_off() {
	printf '[gpu any]\nbusy-poll = 0 us\n' >/etc/octavo/octavo.conf.d/zz-qemu-patches.conf
	systemctl reload octavod
}

polling_back() {
	rm -f /etc/octavo/octavo.conf.d/zz-qemu-patches.conf
	systemctl reload octavod
}

# kicks_of NAME UUID ROUNDS: lets the guest ping. Sets kicks, as the guest counted them, and told and
# trapped, as the module did. It pauses for long enough that the worker waits for each of them.
kicks_of() {
	local before_told before_trapped output
	before_told=$(vgpu_counter "$2" kicks)
	before_trapped=$(vgpu_counter "$2" registers)
	output=$(guest "$1" /tmp/vq_ping "$address" "$3" 1000-1500) || fail "the guest's requests: $output"
	note "$1: $output"
	kicks=$(sed -n 's/.* kicks \([0-9]*\) .*/\1/p' <<<"$output")
	told=$(($(vgpu_counter "$2" kicks) - before_told))
	trapped=$(($(vgpu_counter "$2" registers) - before_trapped))
	note "$1: $kicks kicks by the guest, $told told to the module, $trapped accesses trapped"
}
