#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 400
# Each worker is a unit with a sandbox: who takes over one through its guest has a user without
# rights, no network, no files, no way to another vGPU, and a bounded part of the host.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../spine/screen.sh"

unit_of() { echo "octavo-vgpu@$1.service"; }
unit_has() { systemctl show -P "$2" "$(unit_of "$1")"; }
status_of() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; }
no_units() { [[ -z $(systemctl list-units --all --plain --no-legend 'octavo-vgpu@*') ]]; }

dropins=/run/systemd/system/octavo-vgpu@.service.d
inside=/usr/local/lib/octavo-sandbox-test
cleanup() {
	rm -rf "$dropins" /run/systemd/system/octavo-vgpu@test.service.d "$inside"
	systemctl daemon-reload
	systemctl start octavod
}
trap cleanup EXIT

note "what systemd thinks of it"
for unit in octavo-vgpu@:15 octavod:25; do
	systemd-analyze security --offline=yes --no-pager --threshold="${unit#*:}" "/usr/lib/systemd/system/${unit%:*}.service" >"$tmp/security" ||
		fail "${unit%:*}.service is too exposed: $(tail -n 1 "$tmp/security")"
	note "$(tail -n 1 "$tmp/security")"
done

parent=$(gpu_parent)
uuid=$(vgpu_create 1_4)
other=$(vgpu_create 1_8 "$parent")
guest-start --mem 512 --display one "$uuid"
guest-start --no-wait two "$other"
wait_for 30 "the second to be served" vgpu_is "$other" open
# from the open to the worker's READY, which the open waits for
note "$(journalctl -u octavod -u "$(unit_of "$uuid")" -u "$(unit_of "$other")" -b -o short-monotonic | grep -E 'opened by|serves session|Starting|Started' | sed 's/octavo-host //')"
worker=$(unit_has "$uuid" MainPID)
[[ $worker -gt 0 ]] || fail "$(unit_of "$uuid") has no process: $(systemctl status "$(unit_of "$uuid")")"
assert_eq "the module's worker" "$(octavoctl --json show "$uuid" | jq -r .worker_pid)" "$worker"

note "user, rights, limits"
for key in CapInh CapPrm CapEff CapBnd CapAmb; do
	assert_eq "$key" "$(status_of "$worker" "$key")" 0000000000000000
done
assert_eq "no new privileges" "$(status_of "$worker" NoNewPrivs)" 1
assert_eq "system calls are filtered" "$(status_of "$worker" Seccomp)" 2
first=$(status_of "$worker" Uid)
second=$(status_of "$(unit_has "$other" MainPID)" Uid)
assert_within "its user" "$first" 1000 65533
[[ $first != "$second" ]] || fail "two vGPUs have one user, $first"
vram=$(octavoctl --json show "$uuid" | jq -r .vram_bytes)
assert_eq "memory" "$(unit_has "$uuid" MemoryMax)" $((2 * vram + (1 << 30)))
assert_eq "its cgroup's" "$(cat "/sys/fs/cgroup$(cut -d: -f3 "/proc/$worker/cgroup")/memory.max")" $((2 * vram + (1 << 30)))
assert_eq "tasks" "$(unit_has "$uuid" TasksMax)" 512
assert_eq "tasks of an eighth" "$(unit_has "$other" TasksMax)" 256
assert_match "devices" "$(unit_has "$uuid" DeviceAllow)" '/dev/udmabuf rw'
files=$(readlink "/proc/$worker/fd/"* | sed 's/[0-9:[].*//' | sort -u | tr '\n' ' ')
note "its files: $files"
[[ $files != *octavo/vgpu* ]] || fail "it keeps its connection to octavod"

note "what somebody in there can do"
cat >"$inside" <<SCRIPT
must_fail() { "\$@" 2>/dev/null && echo "ESCAPE: \$*" || true; }
for folder in / /etc /usr /var /run /root /sys /dev/shm; do must_fail touch \$folder/x; done
must_fail ls /root
must_fail kill -0 $worker
must_fail kill -0 1
must_fail ls /proc/$worker
must_fail cat /proc/1/environ
must_fail dd if=/dev/kvm count=0
must_fail dd if=/dev/vda count=1
must_fail dd if=/dev/octavo count=0
must_fail unshare --user true
must_fail unshare --mount true
must_fail mount -t tmpfs none /tmp
must_fail socat -u OPEN:/dev/null UNIX-CONNECT:/run/dbus/system_bus_socket
must_fail socat -u OPEN:/dev/null UNIX-CONNECT:/run/systemd/private
must_fail socat -u OPEN:/dev/null TCP:127.0.0.1:22
must_fail ip link set lo up
must_fail chrt -f 1 true
must_fail sh -c 'echo 0 >/proc/sys/kernel/sysrq'
must_fail dmesg
echo "links \$(grep -c : /proc/net/dev) processes \$(ls -d /proc/[0-9]* | wc -l) user \$(id -u)"
touch /tmp/own && dd if=/dev/udmabuf count=0 2>/dev/null && echo useful
SCRIPT
mkdir -p /run/systemd/system/octavo-vgpu@test.service.d
printf '[Service]\nType=oneshot\nOpenFile=\nDeviceAllow=/dev/udmabuf rw\nExecStart=\nExecStart=/bin/bash %s\n' "$inside" \
	>/run/systemd/system/octavo-vgpu@test.service.d/90-test.conf
systemctl daemon-reload
systemctl start octavo-vgpu@test || fail "$(journalctl -u octavo-vgpu@test -n 20 -o cat)"
journalctl --sync
said=$(journalctl -u octavo-vgpu@test -o cat -b)
note "$said"
[[ $said != *ESCAPE* ]] || fail "$said"
assert_match "it ran, and had what it needs" "$said" useful

note "the guest's pictures come through"
guest_paints one

note "a killed worker is replaced, in a unit of the same name"
kill -KILL "$worker"
replaced() { local now; now=$(unit_has "$uuid" MainPID); [[ $now -gt 0 && $now != "$worker" ]]; }
wait_for 20 "a replacement" replaced
wait_for 20 "the guest to be told" vgpu_is "$uuid" needs-reset
device=$(guest_virtio one)
guest_driver one unbind "$device"
guest_driver one bind "$device"
wait_for 30 "the guest's reset" vgpu_is "$uuid" open
guest_paints one

note "octavod stops: the worker does not, and the next octavod adopts it, gate and all"
worker=$(unit_has "$uuid" MainPID)
assert_eq "gates in systemd's keeping" "$(systemctl show -P NFileDescriptorStore octavod)" 2
systemctl stop octavod
assert_eq "worker" "$(unit_has "$uuid" MainPID)" "$worker"
since=$(date +%s)
systemctl start octavod
assert_eq "state" "$(octavoctl --json show "$uuid" | jq -r .state)" open
assert_match "journal" "$(journalctl -u octavod -o cat --since "@$since")" "worker $worker adopted"
[[ $(journalctl -u octavod -o cat --since "@$since") != *'without order'* ]] ||
	fail "the gate is lost: $(journalctl -u octavod -o cat --since "@$since" | grep order)"
guest_paints one

note "host processes join the same arbiter"
assert_match "its status" "$(octavo-run --status)" 'policy elastic'
assert_match "the group" "$(stat -L -c %a:%G /run/octavo/join)" 660:render

note "the unit ends with the VM's use of it"
guest-stop one
guest-stop two
wait_for 20 "the units to be gone" no_units
none_kept() { [[ $(systemctl show -P NFileDescriptorStore octavod) == 0 ]]; }
wait_for 10 "their gates to be given up" none_kept

note "an operator's drop-in wins"
mkdir -p "$dropins"
printf '[Service]\nMemoryMax=777M\n' >"$dropins/90-test.conf"
systemctl daemon-reload
guest-start --no-wait three "$uuid"
wait_for 20 "it to be served" vgpu_is "$uuid" open
assert_eq "memory" "$(unit_has "$uuid" MemoryMax)" $((777 << 20))
guest-stop three
wait_for 20 "the unit to be gone" no_units

note "a worker that cannot start: the open is refused in good time"
printf '[Service]\nExecStart=\nExecStart=/bin/false\n' >"$dropins/90-test.conf"
systemctl daemon-reload
guest-start --expect-fail bad "$uuid" >"$tmp/refused" || fail "QEMU ran with a worker that cannot live"
assert_match "doctor" "$(octavoctl doctor)" "octavod: vGPU $uuid: open refused"
wait_for 20 "the units to be gone" no_units
