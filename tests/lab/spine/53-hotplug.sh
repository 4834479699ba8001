#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# limit: 600
# A vGPU comes to a running guest and leaves it; one that is removed under a guest is let go.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/screen.sh"

cycles=2
[[ ${OCTAVO_SOAK:-} ]] && cycles=10
uuid=$(vgpu_create 1_8)
guest-start plug

plug() {
	qmp plug "{\"execute\":\"device_add\",\"arguments\":{\"driver\":\"vfio-pci\",\"id\":\"hot\",\"bus\":\"free0\",
		\"sysfsdev\":\"/sys/bus/mdev/devices/$uuid\"}}"
}
in_guest() {
	guest plug sh -c 'lspci -k -d 1af4:1050 | grep -q "Kernel driver in use: virtio-pci" && modetest -M virtio_gpu -c | grep -qw connected'
}
gone_in_guest() {
	[[ -z $(guest plug lspci -d 1af4:1050) ]]
}
gone_in_qemu() {
	! qmp plug '{"execute":"qom-list","arguments":{"path":"/machine/peripheral/hot"}}'
}

for ((i = 1; i <= cycles; i++)); do
	assert_ok plug
	wait_for 60 "the vGPU in the guest" in_guest
	assert_ok qmp plug '{"execute":"device_del","arguments":{"id":"hot"}}'
	wait_for 60 "its leave from QEMU" gone_in_qemu
	assert_ok gone_in_guest
	wait_for 10 "the end of its worker" sh -c "! pgrep -x octavo-vgpu"
	note "hot-plug $i of $cycles"
done

note "removal while in use"
assert_ok plug
wait_for 60 "the vGPU in the guest" in_guest
assert_ok timeout 60 mdevctl stop -u "$uuid"
assert_eq "vGPUs" "$(vgpus | wc -l)" 0
wait_for 60 "its leave from QEMU" gone_in_qemu
assert_eq "state of the guest" "$(guest plug uname -s)" Linux
assert_ok guest-stop plug
