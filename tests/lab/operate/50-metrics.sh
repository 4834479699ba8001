#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The metrics endpoint of the running service: off, on by a reload, with what a guest does, a lost
# worker, and eight vGPUs; and the unit lets only this host reach it.
# limit: 600
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

conf=/etc/octavo/octavo.conf.d/zz-metrics.conf
trap 'rm -f "$conf"; ip addr del 192.0.2.1/32 dev lo 2>/dev/null; systemctl reload octavod' EXIT
configure() {
	mkdir -p "${conf%/*}"
	printf '[octavod]\nmetrics-port = 9400\nmetrics-address = %s\n' "$1" >"$conf"
	systemctl reload octavod
}
# get PATH [ADDRESS]
get() {
	python3 -c '
import sys, urllib.request
sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], timeout=3).read())' "http://${2:-127.0.0.1}:9400$1"
}
# metric NAME: its value for the vGPU, whatever other labels there are
metric() { get /metrics | sed -n "s/^octavo_vgpu_$1{uuid=\"$uuid\"[^}]*} //p"; }
metric_is() { [[ $(metric "$1") == "$2" ]]; }
state_is() { get /metrics | grep -q "^octavo_vgpu_state{uuid=\"$uuid\".*state=\"$1\"} 1$"; }

assert_fails 'refused' get /metrics
configure 127.0.0.1
wait_for 10 "the endpoint" get /metrics
assert_match "the module" "$(get /metrics)" 'octavo_module_state\{state="loaded"\} 1'
assert_match "the GPU" "$(get /metrics)" "octavo_gpu_capacity_eighths\\{gpu=\"$(gpu_parent)\"\\} 8"

uuid=$(vgpu_create 1_4)
wait_for 10 "the vGPU to be idle" state_is idle
assert_eq "its share" "$(metric share_ratio)" 0.250
assert_match "what is left" "$(get /metrics)" "octavo_gpu_available_vgpus\\{gpu=\"$(gpu_parent)\",type=\"1/8\"\\} 6"
guest-start --mem 512 one "$uuid"
wait_for 30 "the guest's driver" guest one test -e /sys/class/drm/card0-Virtual-1
state_is open || fail "the vGPU is not open"
for name in kicks_total interrupts_total resets_total register_accesses_total; do
	[[ $(metric $name) -gt 0 ]] || fail "$name is $(metric $name)"
done
python3 - <<PYTHON || fail "the status page's data"
import json, urllib.request
status = json.load(urllib.request.urlopen("http://127.0.0.1:9400/status.json"))
vgpu = [v for v in status["vgpus"] if v["uuid"] == "$uuid"][0]
assert vgpu["state"] == "open" and vgpu["vm"], vgpu
assert any(e["event"] == "opened" and e["uuid"] == "$uuid" for e in status["events"]), status["events"]
PYTHON

kill -KILL "$(vgpu_worker "$uuid")"
wait_for 10 "the lost worker to be counted" metric_is worker_restarts_total 1
wait_for 10 "the vGPU to need a reset" state_is needs-reset
guest-stop one
wait_for 10 "it to be idle" state_is idle
vgpu_remove "$uuid"

note "eight vGPUs"
for i in {1..8}; do
	vgpu_create 1_8 >/dev/null
done
eight() { [[ $(get /metrics | grep -c '^octavo_vgpu_share_ratio{') == 8 ]]; }
wait_for 10 "eight vGPUs" eight
python3 -c '
import time, urllib.request
def scrape():
    begin = time.monotonic()
    urllib.request.urlopen("http://127.0.0.1:9400/metrics").read()
    return time.monotonic() - begin
times = sorted(scrape() for _ in range(20))
print(f"# a scrape takes {times[0] * 1000:.1f} ms at best, {times[10] * 1000:.1f} ms in the middle")'
for uuid in $(vgpus); do
	vgpu_remove "$uuid"
done

note "the unit lets only this host reach it"
ip addr add 192.0.2.1/32 dev lo
configure 192.0.2.1
wait_for 10 "it to move" eval '! get /metrics'
assert_match "where it listens" "$(ss -ltnH 'sport = :9400')" '192\.0\.2\.1:9400'
assert_fails 'timed out' get /metrics 192.0.2.1
