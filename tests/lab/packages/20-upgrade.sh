#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: own-vm
# needs: bare
# needs: named
# limit: 1500
# The next release's packages are installed while one guest draws and another sends requests without
# a pause: neither notices, their workers stay with the old program, and what is new serves the next open.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/../spine/screen.sh"
. "$(dirname "$0")/../doorbell/common.sh"

# next_release NAME: the package with the next version, everywhere that its version is written
next_release() {
	local name=$1 dir=$tmp/release/$1
	mkdir -p "$tmp/release"
	dpkg-deb -R "$packages/${name}_${old}"_*.deb "$dir"
	sed -i "/^Version:/s/$old/$new/; s/(\(>\?=\) $old)/(\1 $new)/g" "$dir/DEBIAN/control"
	if [[ -d $dir/usr/src/octavo-$old ]]; then
		mv "$dir/usr/src/octavo-$old" "$dir/usr/src/octavo-$new"
		sed -i "s/\\b${old//./\\.}\\b/$new/g" "$dir"/DEBIAN/{postinst,prerm} "$dir/usr/src/octavo-$new/dkms.conf"
	fi
	(cd "$dir" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum >DEBIAN/md5sums)
	dpkg-deb --root-owner-group -Znone -b "$dir" "$tmp/release/" >/dev/null
	rm -r "$dir"
}

old=$(dpkg-deb -f "$packages"/octavo-tools_*.deb Version)
new=$old.1
lab_figures
kernels_hide
octavo_install "$packages"
gpus_wait
for name in octavo octavo-layer octavo-tools octavo-dkms; do
	next_release "$name"
done

note "one guest draws, one sends requests"
painter=$(octavoctl create 1/4)
caller=$(octavoctl create 1/4)
guest-start --no-wait --display --mem 512 painter "$painter"
guest-start --mem 512 caller "$caller"
assert_ok guest-exec -w 120 painter -- true
guest_paints painter
guest painter sh -c 'pkill -x modetest
	id=$(modetest -M virtio_gpu -c | awk "\$3 == \"connected\" { print \$1; exit }")
	setsid sh -c "n=0
		while modetest -M virtio_gpu -s $id:#0 </dev/null >/tmp/modetest.log 2>&1; do
			n=\$((n + 1)); echo \$n >/tmp/painted
		done" >/dev/null 2>&1 </dev/null &'
ping_prepare caller
guest caller /tmp/vq_ping "$address" 1000000 5000 >"$tmp/ping" 2>&1 &
ping=$!
painted() { guest painter cat /tmp/painted; }
kicks() { vgpu_counter "$caller" kicks; }
# more_than NUMBER CMD: CMD prints a larger one
more_than() { [[ $("$2") -gt $1 ]]; }
wait_for 60 "pictures" more_than 0 painted
wait_for 60 "kicks" more_than 10 kicks
workers="$(vgpu_worker "$painter") $(vgpu_worker "$caller")"
assert_match "a worker each" "$workers" '^[0-9]+ [0-9]+$'

note "the upgrade"
daemon=$(systemctl show -p MainPID --value octavod)
resets=$(vgpu_counter "$caller" resets)
octavo_install "$tmp/release"
assert_eq "version of octavo" "$(dpkg-query -W -f '${Version}' octavo)" "$new"
replaced() { [[ $(systemctl show -p MainPID --value octavod) != "$daemon" ]] && octavoctl list; }
wait_for 60 "the new octavod" replaced
assert_eq "octavod" "$(systemctl is-active octavod)" active
assert_eq "what failed" "$(systemctl list-units --failed --plain --no-legend 'octavo*')" ""
assert_eq "modules that DKMS has" "$(dkms status octavo | cut -d, -f1 | sort -u)" "octavo/$new"
assert_eq "the module that is loaded" "$(cat /sys/module/octavo/version)" "$old"

note "nobody noticed"
assert_eq "the workers" "$(vgpu_worker "$painter") $(vgpu_worker "$caller")" "$workers"
for pid in $workers; do
	assert_match "program of worker $pid" "$(readlink "/proc/$pid/exe")" '/octavo-vgpu \(deleted\)$'
done
for uuid in "$painter" "$caller"; do
	assert_eq "vGPU $uuid" "$(octavoctl --json show "$uuid" | jq -r .state)" open
done
wait_for 60 "more pictures" more_than "$(painted)" painted
wait_for 60 "more kicks" more_than "$(kicks)" kicks
kill -0 "$ping" || fail "requests went unanswered: $(cat "$tmp/ping")"
assert_eq "resets of its vGPU" "$(vgpu_counter "$caller" resets)" "$resets"
assert_eq "errors of the painter's driver" "$(guest painter dmesg | grep -E 'drm.*(ERROR|response|timed out)' || true)" ""

note "the next open is served by the new program"
guest caller pkill -x vq_ping
wait "$ping" || true
guest-stop caller
wait_for 20 "the vGPU to be idle" vgpu_is "$caller" idle
guest-start --no-wait --mem 512 caller "$caller"
opened() { vgpu_is "$caller" open && [[ $(vgpu_worker "$caller") ]]; }
wait_for 20 "it to be open again" opened
assert_match "its worker's program" "$(readlink "/proc/$(vgpu_worker "$caller")/exe")" '/octavo-vgpu$'
guest-stop caller painter
for uuid in "$painter" "$caller"; do
	assert_ok octavoctl remove "$uuid"
done

note "the module is exchanged as docs/operations.md says"
systemctl stop octavod
assert_ok modprobe -r octavo
assert_ok modprobe octavo
systemctl start octavod
assert_eq "the module that is loaded" "$(cat /sys/module/octavo/version)" "$new"
gpus_wait
uuid=$(octavoctl create 1/2)
assert_ok octavoctl remove "$uuid"
kernels_unhide
rm -rf "$tmp/release" "$tmp/ping"
# as the host was found
systemctl stop octavod
assert_ok modprobe -r octavo
