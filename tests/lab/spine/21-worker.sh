#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A worker that dies is replaced on the same open; the guest works again after its driver has reset
# the device, and its CPUs never stop meanwhile.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/screen.sh"

uuid=$(vgpu_create 1_4)

guest-start --mem 512 one "$uuid"
wait_for 30 "the guest's driver" guest one test -e /sys/class/drm/card0-Virtual-1
virtio=$(guest_virtio one)
first=$(vgpu_worker "$uuid")
kill -KILL "$first"
wait_for 10 "a replacement" worker_replaced "$uuid" "$first"
wait_for 10 "the state to say so" vgpu_is "$uuid" needs-reset
assert_eq "restarts" "$(octavoctl --json show "$uuid" | jq -r .worker_restarts)" 1
assert_match "log" "$(octavoctl log)" "worker-lost +$uuid"
guest one true
assert_ok guest_driver one unbind "$virtio"
guest_driver one bind "$virtio" || fail "the driver does not come back: $(guest one dmesg | tail -n 5)"
wait_for 20 "the guest's reset to be seen" vgpu_is "$uuid" open
guest one test -e /sys/class/drm/card0-Virtual-1

note "a worker that cannot live is no tight loop, and the open is refused in good time"
guest-stop one
wait_for 10 "it to be idle" vgpu_is "$uuid" idle
mkdir -p /etc/octavo/octavo.conf.d
printf '#!/bin/sh\nexit 3\n' >/run/octavo-lab-bad-worker
chmod 755 /run/octavo-lab-bad-worker
printf '[octavod]\nlauncher = fork\nworker = /run/octavo-lab-bad-worker\n' >/etc/octavo/octavo.conf.d/zz-test.conf
trap 'rm -f /etc/octavo/octavo.conf.d/zz-test.conf; systemctl reload octavod' EXIT
systemctl reload octavod
since=$(date +%s)
guest-start --expect-fail bad "$uuid" >/tmp/refused || fail "QEMU ran with a worker that cannot live"
assert_match "doctor" "$(octavoctl doctor)" "octavod: vGPU $uuid: open refused"
starts=$(journalctl -u octavod --since "@$since" -o cat | grep -c 'exited with status 3')
assert_within "workers started" "$starts" 1 6
rm /etc/octavo/octavo.conf.d/zz-test.conf
systemctl reload octavod

note "and works again with a good one"
guest-start --no-wait again "$uuid"
wait_for 20 "it to be open" vgpu_is "$uuid" open
