#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: restart
# limit: 700
# The host restarts with two guests running: libvirt shuts down the one that obeys and gives up on
# the one that does not; workers and octavod serve both until then, and nothing is waited for in vain.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/domains.sh"

state=/var/lib/octavo-lab-shutdown
conf=/etc/systemd/journald.conf.d/zz-lab-shutdown.conf
patience_s=25

if [[ $OCTAVO_PHASE == before ]]; then
	mkdir -p "$state" /var/log/journal
	printf '[Journal]\nStorage=persistent\n' >"$conf"
	systemctl restart systemd-journald
	journalctl --flush
	tr -d - </proc/sys/kernel/random/boot_id >"$state/boot"

	printf 'PARALLEL_SHUTDOWN=2\nSHUTDOWN_TIMEOUT=%s\n' "$patience_s" >/etc/default/libvirt-guests
	rm /etc/systemd/system/libvirt-guests.service
	systemctl daemon-reload
	systemctl start libvirt-guests

	domains_prepare
	for name in obeys sulks; do
		uuid=$(vgpu_create 1_4)
		echo "$uuid" >"$state/$name"
		domain domain-headless "$name" "$uuid"
		assert_ok virsh start "$name"
	done
	for name in obeys sulks; do
		assert_ok agent "$name" -w 300 -- sh -c "$has_vgpu"
	done
	# The lab's guest has nobody who listens to its power button
	assert_ok agent obeys -w 20 -- sh -c 'modprobe -a button evdev
		button=/dev/input/$(grep -A 5 "Power Button" /proc/bus/input/devices | sed -n "s/.*\(event[0-9]*\).*/\1/p" | head -n 1)
		[ -c "$button" ] || { echo "no power button"; exit 1; }
		setsid sh -c "dd if=$button of=/dev/null bs=24 count=1 && /usr/lib/octavo-lab/labexec poweroff" >/dev/null 2>&1 </dev/null &'
	exit
fi

journalctl -D /var/log/journal --merge _BOOT_ID="$(cat "$state/boot")" --no-pager -o json >"$tmp/journal"
python3 - "$tmp/journal" "$patience_s" "$(cat "$state/obeys")" "$(cat "$state/sulks")" <<'PYTHON' ||
import json
import sys

journal, patience_s, obeys, sulks = sys.argv[1:]
# systemd's catalog of messages
STOPPING = "de5b426a63be47a7b6ac3eaac82e2f6f"
STOPPED = "9d1aaa27d60140bd96365438aad20286"
ENDED_WELL = "7ad2d189f7e94e70a38c781354912448"
ENDED_BADLY = "d9b373ed55a64feb8242e02dbe79a49c"
SHOWN = ("octavo", "libvirt", "machine-qemu")
PENDING = "libvirt-guests.service"

records = [json.loads(line) for line in open(journal, encoding="utf-8", errors="replace")]
begin = max(i for i, r in enumerate(records) if r.get("UNIT") == PENDING and r.get("MESSAGE_ID") == STOPPING)
records = records[begin:]
start = int(records[0]["__REALTIME_TIMESTAMP"])
seen = {}
for record in records:
    unit, message = record.get("UNIT", ""), str(record.get("MESSAGE"))
    at = (int(record["__REALTIME_TIMESTAMP"]) - start) / 1e6
    if unit.startswith(SHOWN) or "libvirt-guests" in record.get("SYSLOG_IDENTIFIER", ""):
        print(f"# {at:6.1f} s {message}")
    if unit.startswith(SHOWN):
        seen.setdefault((unit, record.get("MESSAGE_ID")), at)
        assert "timed out" not in message, f"systemd had to wait in vain: {message}"

guests = seen[PENDING, STOPPED]
worker = f"octavo-vgpu@{obeys}.service"
assert 0 < seen.get((worker, ENDED_WELL), 0) <= guests, "the worker of the guest that obeyed did not end with it"
worker = f"octavo-vgpu@{sulks}.service"
ends = [at for (unit, what), at in seen.items() if unit == worker]
assert ends, "nothing ended the worker of the guest that did not obey"
assert min(ends) >= guests, "the worker of the guest that did not obey was taken from it too early"
assert seen["octavod.service", STOPPING] >= guests, "octavod was stopped before the guests"
assert ("octavod.service", ENDED_BADLY) not in seen, "octavod did not end well"
assert guests <= float(patience_s) + 20, f"libvirt-guests took {guests:.1f} s"
last = max(at for (unit, _), at in seen.items() if not unit.startswith("libvirt"))
assert last - guests <= 15, f"after the guests the rest took {last - guests:.1f} s"
PYTHON
	fail "the shutdown was not in order"

[[ $(systemctl is-active octavod) == active ]] || fail "octavod does not run after the restart"
for name in obeys sulks; do
	assert_ok virsh undefine "$name"
done
rm -rf "$state" "$conf" "$tmp/journal" /etc/default/libvirt-guests /var/log/journal
systemctl restart systemd-journald
