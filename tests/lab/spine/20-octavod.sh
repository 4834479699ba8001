#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# octavod may come, go and be killed: running guests do not notice, opens without it fail at once
# and say why.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

uuid=$(vgpu_create 1_4)
other=$(vgpu_create 1_4)

note "no octavod: QEMU fails at once, kernel log and doctor name the cause"
systemctl stop octavod
mark="octavo-lab octavod $$"
echo "$mark" >/dev/kmsg
before=$EPOCHREALTIME
guest-start --expect-fail absent "$uuid" >/tmp/refused || fail "QEMU ran without octavod"
spent_ms=$(((${EPOCHREALTIME/./} - ${before/./}) / 1000))
note "QEMU ended after $spent_ms ms"
assert_match "kernel log" "$(dmesg | sed "1,/$mark/d" | grep octavo)" 'octavod'
doctor=$(octavoctl doctor) && fail "doctor found nothing wrong without octavod"
assert_match "doctor" "$doctor" 'ERROR +octavod.*systemctl enable --now octavod'
assert_match "doctor shows the refusal" "$doctor" 'kernel:.*open by .* failed'
assert_fails 'systemctl start octavod' octavoctl list
systemctl start octavod

note "a second octavod says so and ends"
rc=0
output=$(octavod 2>&1) || rc=$?
assert_eq "its status" "$rc" 3
assert_match "its message" "$output" 'another octavod'

note "octavod is killed: the guest and its worker go on, the next one adopts it"
guest-start --mem 512 steady "$uuid"
worker=$(vgpu_worker "$uuid")
[[ $worker ]] || fail "no worker serves $uuid"
daemon=$(systemctl show -p MainPID --value octavod)
kill -KILL "$daemon"
guest steady true
changed() { [[ $(systemctl show -p MainPID --value octavod) -gt 0 && $(systemctl show -p MainPID --value octavod) != "$daemon" ]]; }
wait_for 20 "systemd to start octavod again" changed
wait_for 20 "octavod to answer" octavoctl list
assert_eq "worker" "$(vgpu_worker "$uuid")" "$worker"
assert_eq "state" "$(octavoctl --json show "$uuid" | jq -r .state)" open
assert_eq "VM's name" "$(octavoctl --json show "$uuid" | jq -r .opener_name)" steady
assert_match "journal" "$(journalctl -u octavod -o cat -n 20)" "worker $worker adopted"
guest steady sh -c "cat /sys/bus/virtio/devices/*/vendor >/dev/null"

note "and serves others"
guest-start --no-wait second "$other"
wait_for 20 "a worker for the second" bash -c "octavoctl --json show $other | jq -e '.state == \"open\"'"
guest-stop second
wait_for 20 "the second to be idle" bash -c "octavoctl --json show $other | jq -e '.state == \"idle\"'"

note "a stop and a start, likewise"
systemctl restart octavod
assert_eq "worker" "$(vgpu_worker "$uuid")" "$worker"
guest-stop steady
gone() { [[ -z $(vgpu_worker "$uuid") ]]; }
wait_for 10 "the adopted worker to end with its VM" gone
