#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 480
# Every command of octavoctl when there is no daemon, no permission, no GPU, no such vGPU, a vGPU in
# use, a dead worker and eight vGPUs: its status, its message, and JSON as the schema has it.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../../expect.sh"
export OCTAVO_TREE
nobody=83b8f4f2-509f-382f-3c1e-e6bfe0fa1001

# json COMMAND [ARGUMENT...]: succeeds, and prints what the schema says
json() {
	local output rc=0
	output=$(octavoctl --json "$@") || rc=$?
	[[ $rc -eq 0 || $1 == doctor ]] || fail "octavoctl --json $* ended with $rc"
	"$OCTAVO_TREE/tests/json-check" "$1" <<<"$output" || fail "octavoctl --json $*: not by the schema: $output"
}

# Those that need nothing but octavod, as JSON
json_all() {
	json gpus
	json types
	json list
	json top -n 1
	octavoctl --json log >"$tmp/log"
	"$OCTAVO_TREE/tests/json-check" log <"$tmp/log" || fail "the log is not by the schema"
	json doctor
}

gpu=$(gpu_parent)

note "no daemon"
systemctl stop octavod
for command in gpus types list "show $nobody" "create 1/8" "remove $nobody" "resize $nobody 800x600" \
	"policy $gpu elastic" "slice $gpu 4" "slices $gpu" "xml $nobody" "nova-conf 1/4" "top -n 1" log "events -n 1"; do
	# shellcheck disable=SC2086
	expect 3 'systemctl start octavod' octavoctl $command
	# shellcheck disable=SC2086
	expect 3 'systemctl start octavod' octavoctl --json $command
done
expect 1 'ERROR +octavod' octavoctl doctor
json doctor
systemctl start octavod
registered() { [[ $(gpu_parents | wc -l) -eq 2 ]]; }
wait_for 60 "the GPUs to be back" registered
json_all

note "no such vGPU, no such GPU"
for command in "show $nobody" "remove $nobody" "resize $nobody 800x600" "xml $nobody"; do
	# shellcheck disable=SC2086
	expect 5 "no vGPU .$nobody." octavoctl $command
done
expect 5 'no GPU .0000:ff:00.0.' octavoctl policy 0000:ff:00.0 elastic
expect 5 'no GPU .0000:ff:00.0.' octavoctl slice 0000:ff:00.0 4
expect 5 'no GPU .0000:ff:00.0.' octavoctl slices 0000:ff:00.0
expect 5 'no GPU .0000:ff:00.0.' octavoctl nova-conf 0000:ff:00.0=1/4
expect 1 'no GPU .0000:ff:00.0.' octavoctl create 1/8 --gpu 0000:ff:00.0
expect 2 "no type .1/3." octavoctl nova-conf 1/3
expect 1 "no type .1/3." octavoctl create 1/3

note "no permission: everybody looks, nobody changes"
uuid=$(octavoctl create 1/8 --gpu "$gpu")
stranger=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
for command in gpus types list "show $uuid" "xml $uuid" "nova-conf 1/4" "top -n 1" log; do
	# shellcheck disable=SC2086
	expect 0 '' "${stranger[@]}" octavoctl $command
done
for command in "create 1/8" "remove $uuid" "resize $uuid 800x600" "policy $gpu elastic" "slice $gpu 4"; do
	# shellcheck disable=SC2086
	expect 4 'not allowed' "${stranger[@]}" octavoctl $command
done

note "what it prints for other programs"
json show "$uuid"
json xml "$uuid"
json nova-conf 1/4
json slices "$gpu"
json nova-conf "$gpu=1/8"
expect 0 "<address uuid='$uuid'/>" octavoctl xml "$uuid"
expect 0 "display='on'" octavoctl xml --display "$uuid"
octavoctl xml --nodedev "$uuid" >"$tmp/nodedev.xml"
assert_ok virt-xml-validate "$tmp/nodedev.xml" nodedev
expect 0 "$(vgpu_type 1_8 "$gpu")" cat "$tmp/nodedev.xml"
expect 0 "\[mdev_$(vgpu_type 1_4 "$gpu")\]" octavoctl nova-conf 1/4
octavoctl --json events -n 1 >"$tmp/event" &
watcher=$!
# It may not listen yet: create until it has heard of one
heard() {
	octavoctl remove "$(octavoctl create 1/8)"
	! kill -0 "$watcher"
}
wait_for 30 "an event to be told" heard
wait "$watcher"
assert_ok sh -c "$OCTAVO_TREE/tests/json-check events <$tmp/event"

note "a vGPU in use"
guest-start --mem 512 busy "$uuid"
expect 1 'busy' octavoctl remove "$uuid"
expect 0 "$uuid.* open .* busy" octavoctl list
expect 0 '' octavoctl resize "$uuid" 800x600
json show "$uuid"
json_all

note "a dead worker"
kill -KILL "$(vgpu_worker "$uuid")"
json show "$uuid"
expect 0 "$uuid.*(unserved|needs-reset|open)" octavoctl list
wait_for 20 "a replacement" vgpu_is "$uuid" needs-reset
json show "$uuid"
json_all
expect 0 "worker-lost +$uuid" octavoctl log
guest-stop busy
wait_for 20 "the vGPU to be idle" vgpu_is "$uuid" idle
assert_ok octavoctl remove "$uuid"

note "eight vGPUs"
uuids=()
for n in {1..8}; do
	uuids+=("$(octavoctl create 1/8 --gpu "$gpu")")
done
expect 1 'eighth' octavoctl create 1/8 --gpu "$gpu"
assert_eq "vGPUs in list" "$(octavoctl --json list | jq length)" 8
octavoctl top -n 1 >"$tmp/top"
assert_eq "lines of top" "$(wc -l <"$tmp/top")" 9
assert_eq "lines of top that are wider than 80 columns" "$(grep -cE '^.{81,}$' "$tmp/top")" 0
json_all
for uuid in "${uuids[@]}"; do
	json show "$uuid"
	assert_ok octavoctl remove "$uuid"
done

note "no GPU"
for parent in $(gpu_parents); do
	echo 1 >"/sys/bus/pci/devices/$parent/remove"
done
unfolded() { [[ $(octavoctl --json types) == '[]' ]]; }
wait_for 20 "octavod to see that they are gone" unfolded
json_all
expect 0 'no GPU of this host is folded' octavoctl types
expect 0 'no vGPUs' octavoctl list
expect 1 '' octavoctl create 1/8
expect 1 'no GPU of this host is folded' octavoctl nova-conf 1/4
expect 1 'ERROR' octavoctl doctor
echo 1 >/sys/bus/pci/rescan
wait_for 60 "the GPUs to be back" registered
json_all
rm -f "$tmp"/{log,event,top,nodedev.xml}
