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
