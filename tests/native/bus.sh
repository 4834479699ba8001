#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# octavod on a bus of its own, with no module: what octavoctl says, and to whom. It runs in the
# build folder, needs dbus-daemon and root (77, skipped, without).
set -u
[[ $EUID -eq 0 ]] && command -v dbus-daemon >/dev/null || exit 77
srcdir=${srcdir:-.}
. "$srcdir/tests/native/daemon.sh"
dir=$(mktemp -d)
daemon=
bus=
cleanup() {
	[[ $daemon ]] && kill "$daemon" 2>/dev/null
	[[ $bus ]] && kill "$bus" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
chmod 755 "$dir"

fail() {
	printf 'FAIL line %s: %s\n' "${BASH_LINENO[0]}" "$*" >&2
	sed 's/^/octavod: /' "$dir/log" >&2
	exit 1
}

export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$dir/bus
: >"$dir/log"
conf=$dir/octavo.conf
: >"$conf"

start() {
	./octavod --config "$conf" --control "$dir/no-module" >"$dir/log" 2>&1 &
	daemon=$!
	wait_until ./octavoctl gpus
}

# no bus, no daemon
expect 3 'system bus' ./octavoctl list
policy='<policy context="default">
    <allow user="*"/>
    <allow send_type="signal"/><allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/><allow receive_type="method_call"/>
    <allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>'
bus_start "$dir" "$policy<include>$(realpath "$srcdir")/daemon/org.octavo1.conf</include>"
expect 3 'systemctl start octavod' ./octavoctl list
expect 1 'octavod does not run' ./octavoctl doctor

# usage
expect 2 'command is missing' ./octavoctl
expect 2 "no command 'lst'" ./octavoctl lst
expect 2 'usage: octavoctl show UUID' ./octavoctl show
expect 2 'takes no --follow' ./octavoctl list --follow
expect 2 'Unknown option' ./octavoctl --frobnicate
expect 0 'octavoctl [0-9]' ./octavoctl --version
expect 0 'create TYPE' ./octavoctl --help

# a wrong configuration ends octavod with 78 and says where
echo $'[gpu any]\nheads = 9' >"$conf"
expect 78 'octavo.conf:2: \[gpu any\] heads = 9: allowed: 1 to 4' ./octavod --check --config "$conf"
expect 78 'octavo.conf:2' ./octavod --config "$conf" --control "$dir/no-module"
: >"$conf"
expect 0 '' ./octavod --check --config "$conf"

# no module: it waits, and says so
start
expect 0 'no vGPUs' ./octavoctl list
expect 0 '^\[\]$' ./octavoctl list --json
expect 0 'waits for it' cat "$dir/log"
expect 5 'no vGPU .nonsense. on this host' ./octavoctl show nonsense
expect 5 'no vGPU' ./octavoctl remove 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001
expect 2 'is no mode' ./octavoctl resize 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001 wide
expect 1 'no type .1/3.: types are 1/2, 1/4 and 1/8' ./octavoctl create 1/3
expect 1 'no GPU .0000:ff:1f.7.' ./octavoctl create 1/4 --gpu 0000:ff:1f.7
expect 1 '.x. is no UUID' ./octavoctl create 1/4 --uuid x
expect 1 'eighths free' ./octavoctl create 1/4
expect 5 'no GPU .0000:ff:1f.7.' ./octavoctl policy 0000:ff:1f.7 elastic
expect 2 'no length of a slice' ./octavoctl slice 0000:ff:1f.7 long

# one instance
expect 3 'another octavod' ./octavod --config "$conf" --control "$dir/no-module"

# reload: a good file is taken, a wrong one changes nothing
echo $'[gpu 0000:ff:1f.7]\nvram = 8 GiB' >"$conf"
kill -HUP "$daemon"
wait_until sh -c './octavoctl gpus | grep -q 0000:ff:1f.7'
expect 0 '8192M' ./octavoctl gpus
expect 0 '"vram_bytes" : 8589934592' ./octavoctl gpus --json
expect 0 '' ./octavoctl policy 0000:ff:1f.7 fixed-share
expect 0 '"policy" : "fixed-share"' ./octavoctl gpus --json
expect 0 'begin_ns,end_ns,vgpu' ./octavoctl slices 0000:ff:1f.7
expect 5 'no GPU .0000:ff:1f.0.' ./octavoctl slices 0000:ff:1f.0
expect 1 'no policy .fair.: there are best-effort' ./octavoctl policy 0000:ff:1f.7 fair
expect 1 '1000 to 30000 us' ./octavoctl slice 0000:ff:1f.7 31
expect 0 '' ./octavoctl slice 0000:ff:1f.7 2.5
expect 0 '"slice_us" : 2500' ./octavoctl gpus --json
echo $'[gpu 0000:ff:1f.7]\nvram = 9 GB' >"$conf"
expect 1 'octavo.conf:2' gdbus call --system -d org.octavo1 -o /org/octavo1 -m org.octavo1.Manager.Reload
expect 0 '8192M' ./octavoctl gpus
kill -HUP "$daemon"
wait_until grep -q 'the configuration in force stays' "$dir/log"
expect 0 '8192M' ./octavoctl gpus
: >"$conf"
expect 0 '' gdbus call --system -d org.octavo1 -o /org/octavo1 -m org.octavo1.Manager.Reload
expect 1 '' sh -c './octavoctl gpus | grep 0000:ff:1f.7'

# everybody may look, not change (there is no polkit here)
chmod -R a+rX "$dir"
unprivileged=(setpriv --reuid=65534 --clear-groups)
if "${unprivileged[@]}" test -x ./octavoctl; then
	expect 0 '' "${unprivileged[@]}" ./octavoctl gpus
	expect 4 'not allowed to this user.*group octavo' "${unprivileged[@]}" ./octavoctl create 1/4
fi

# killed and started again
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null
expect 3 'octavod does not run' ./octavoctl events
start
kill -TERM "$daemon"
wait "$daemon" || fail "octavod ended with $? on SIGTERM"
daemon=
echo "all of octavoctl's errors say what they should"
