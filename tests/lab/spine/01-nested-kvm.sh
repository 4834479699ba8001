#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# The lab itself: a stock guest runs under real KVM inside the host VM, its words and status exact.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

assert_match "modules of the host" "$(lsmod)" 'kvm_(amd|intel)'
guest-start plain
assert_match "the guest's CPU flags" "$(guest plain grep -m1 flags /proc/cpuinfo)" ' hypervisor '
assert_match "the guest's clock sources" \
	"$(guest plain cat /sys/devices/system/clocksource/clocksource0/available_clocksource)" kvm-clock
assert_match "what QEMU says of its accelerator" \
	"$(qmp plain '{"execute":"query-kvm"}')" '"enabled": true'

got=$(guest plain printf '[%s]' 'a  b' '' '$HOME' '"q" \ *')
assert_eq "words of a command" "$got" '[a  b][][$HOME]["q" \ *]'
rc=0
guest plain sh -c 'echo to stderr >&2; exit 9' 2>"$tmp/err" || rc=$?
assert_eq "exit status" "$rc" 9
assert_eq "standard error" "$(cat "$tmp/err")" "to stderr"
rc=0
guest plain sh -c 'kill -SEGV $$' || rc=$?
assert_eq "status of a command that a signal ended" "$rc" 139
assert_eq "standard input" "$(echo through | guest-exec -i plain -- cat)" through
got=$(guest plain head -c 300000 /dev/zero | wc -c)
assert_eq "bytes of a long output" "$got" 300000

before=$(guest plain cat /proc/sys/kernel/random/boot_id)
assert_ok guest-restart plain
after=$(guest plain cat /proc/sys/kernel/random/boot_id)
[[ $before != "$after" ]] || fail "the guest did not restart"
assert_ok guest-stop plain
assert_eq "QEMU processes" "$(pgrep -c qemu || true)" 0
