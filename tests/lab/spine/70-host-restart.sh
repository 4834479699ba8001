#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: restart
# limit: 300
# A vGPU that is defined with autostart is there again when the host has restarted; another is not.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

auto=83b8f4f2-509f-382f-3c1e-e6bfe0fa2001
manual=83b8f4f2-509f-382f-3c1e-e6bfe0fa2002
parent=$(gpu_parent)
type=$(vgpu_type 1_4 "$parent")

if [[ $OCTAVO_PHASE == before ]]; then
	assert_ok mdevctl define --auto -u "$auto" -p "$parent" -t "$type"
	assert_ok mdevctl define -u "$manual" -p "$parent" -t "$type"
	cat /proc/sys/kernel/random/boot_id >/var/lib/octavo-lab-boot
	exit
fi

[[ $(cat /proc/sys/kernel/random/boot_id) != "$(cat /var/lib/octavo-lab-boot)" ]] || fail "the host did not restart"
wait_for 60 "vGPU $auto after the restart of the host" test -e "/sys/bus/mdev/devices/$auto"
assert_eq "type of the vGPU" "$(cat "/sys/bus/mdev/devices/$auto/mdev_type/name")" "Octavo 1/4"
[[ ! -e /sys/bus/mdev/devices/$manual ]] || fail "vGPU $manual was started, but is defined without autostart"
assert_eq "1/4 vGPUs that still fit" "$(vgpu_available 1_4 "$parent")" 3
assert_ok mdevctl start -u "$manual"
assert_ok vgpu_remove "$manual"
assert_ok vgpu_remove "$auto"
assert_ok mdevctl undefine -u "$manual"
assert_ok mdevctl undefine -u "$auto"
