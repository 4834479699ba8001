#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What octavoctl --json prints is what its schema says, of octavod without a module; the schema
# describes the properties of org.octavo1, no more and no fewer, and refuses what is wrong.
# limit: 60
set -euo pipefail
. "$OCTAVO_TREE/tests/native/daemon.sh"
cd "$OCTAVO_BUILD"
check=$OCTAVO_TREE/tests/json-check
dir=$(mktemp -d)
pids=()
cleanup() {
	[[ ${#pids[@]} -eq 0 ]] || kill "${pids[@]}" 2>/dev/null || true
	wait
	rm -rf "$dir"
}
trap cleanup EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
# good COMMAND [ARGUMENT...]: its output; what its status is, is others' business
good() {
	./octavoctl --json "$@" >"$dir/output" 2>"$dir/errors" || true
	[[ -s $dir/output ]] || fail "octavoctl --json $* prints nothing: $(cat "$dir/errors")"
	"$check" "$1" <"$dir/output" || fail "octavoctl --json $* is not what its schema says"
}
# bad COMMAND JSON: the schema refuses it
bad() {
	! "$check" "$1" <<<"$2" 2>/dev/null || fail "the schema of $1 allows $2"
}

export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$dir/bus
good doctor
bus_start "$dir" "$bus_open"
pids+=("$bus")
: >"$dir/octavo.conf"
./octavod --config "$dir/octavo.conf" --control "$dir/no-module" >"$dir/log" 2>&1 &
daemon=$!
pids+=("$daemon")
wait_until ./octavoctl gpus

good list
good types
good doctor
# GPUs of the machine may be there too: one that is configured certainly is
echo $'[gpu 0000:ff:1f.7]\nvram = 8 GiB' >"$dir/octavo.conf"
kill -HUP "$daemon"
wait_until sh -c './octavoctl gpus | grep -q 0000:ff:1f.7'
good gpus
grep -q '"0000:ff:1f.7"' "$dir/output" || fail "the configured GPU is not in gpus"
./octavoctl --json log >"$dir/output"
"$check" log <"$dir/output" || fail "log"
good top -n 1
good slices 0000:ff:1f.7

# what must not pass
event='{"time_us":1,"type":"gpu","uuid":"","gpu_address":"0000:01:00.0","message":"x"}'
"$check" events <<<"$event"
bad events "${event/gpu_address/gpu}"
bad events "${event/0000:01/01}"
bad list '[{"uuid":"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"}]'
bad types '{}'
bad doctor '[]'
bad slices '[[1,"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",1,2,3]]'
bad doctor '[{"level":"fine","subject":"kernel","found":"x","advice":""}]'
bad nova-conf '[{"type":"amdgpu-octavo_1_4","size":"1/4","device_addresses":[],"mdev_class":"VGPU"}]'

# every property of the interface, and every command that octavoctl has and that prints
python3 - "$OCTAVO_TREE" <(./octavoctl --help) <<'PYTHON'
import json, re, sys, xml.etree.ElementTree as tree
root = sys.argv[1]
schema = json.load(open(f"{root}/tools/schema/octavoctl.schema.json"))["$defs"]
for interface in tree.parse(f"{root}/daemon/org.octavo1.xml").getroot().iter("interface"):
    kind = interface.get("name").rsplit(".", 1)[1].lower()
    if kind == "manager":
        continue
    names = {re.sub("(?<!^)([A-Z])", r"_\1", prop.get("name")).lower() for prop in interface.findall("property")}
    for described in [schema[kind]] + ([schema["commands"]["show"]] if kind == "vgpu" else []):
        own = set(described["properties"]) - {"path", "counters"}
        assert own == names, f"{kind}: only in the schema {own - names}, only in the interface {names - own}"
        assert set(described["required"]) == set(described["properties"]), kind
silent = {"remove", "resize", "policy", "slice"}
listed = open(sys.argv[2]).read().split("Commands:")[1].split("Exit status")[0]
commands = set(re.findall(r"^  ([a-z][a-z-]+)", listed, re.M))
assert commands - silent == set(schema["commands"]), commands ^ set(schema["commands"])
PYTHON
echo "ok: octavoctl's JSON is what its schema says"
