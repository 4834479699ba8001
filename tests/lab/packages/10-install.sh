#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: own-vm
# needs: bare
# needs: named
# limit: 1500
# The Debian packages on a host that never saw octavo: apt installs them, DKMS builds the module (for
# the running kernel; with --soak for both), a guest gets a vGPU, an upgrade under it goes unnoticed,
# removal stops what runs, purge leaves nothing.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

[[ ! -e /usr/sbin/octavod && ! -e /dev/octavo ]] || fail "octavo is on this host already"

# Names of what is on the disk, but for what package managers and depmod keep for themselves
files() {
	find /etc /usr /var /opt /root -xdev \
		\( -path /var/cache -o -path /var/log -o -path /var/tmp -o -path /var/lib/dpkg \
		-o -path /var/lib/apt -o -path /var/lib/systemd/timers -o -path /usr/lib/octavo-lab \) -prune -o \
		! -path '/usr/lib/modules/*/modules.*' ! -path '/etc/*-' ! -path '/var/lib/dkms/mok.*' \
		! \( -path '/usr/lib/modules/*/updates*' -type d \) -print | LC_ALL=C sort
}
accounts() {
	getent passwd | cut -d: -f1
	getent group | cut -d: -f1
}
files >"$tmp/files.before"
accounts >"$tmp/accounts.before"

lab_figures
kernels_hide

note "install"
octavo_install "$packages"
status=$(dkms status octavo)
note "dkms: $status"
[[ $status == *"$kernel, "*": installed"* ]] || fail "dkms has no module for $kernel: $status"
if [[ ${OCTAVO_SOAK:-} ]]; then
	assert_eq "kernels with a module" "$(grep -c ': installed' <<<"$status")" 2
fi
[[ -d /sys/module/octavo ]] || fail "the module is not loaded"
assert_match "the module is DKMS's" "$(modinfo -F filename octavo)" '/updates/dkms/octavo\.ko'
assert_eq "octavod" "$(systemctl is-active octavod)" active
assert_eq "octavod at boot" "$(systemctl is-enabled octavod)" enabled
assert_eq "/dev/octavo" "$(stat -c %a:%U /dev/octavo)" 600:root
gpus_wait
getent group octavo >/dev/null || fail "there is no group octavo"
broken=$(dpkg --verify octavo octavo-layer octavo-tools octavo-dkms | grep -v ' /usr/share/\(doc\|man\)/') || true
assert_eq "files that are not as packed" "$broken" ""

note "a vGPU in a guest"
uuid=$(octavoctl create 1/4)
guest-start steady "$uuid"
assert_ok guest steady sh -c 'lspci -k -d 1af4:1050 | grep -q "Kernel driver in use: virtio-pci"'
worker=$(vgpu_worker "$uuid")
[[ $worker ]] || fail "no worker serves $uuid"

note "an upgrade under it"
daemon=$(systemctl show -p MainPID --value octavod)
assert_ok "${apt[@]}" install --reinstall "$packages"/octavo_*.deb "$packages"/octavo-{layer,tools}_*.deb
replaced() { [[ $(systemctl show -p MainPID --value octavod) != "$daemon" ]] && octavoctl list; }
wait_for 30 "the new octavod" replaced
assert_eq "the worker" "$(vgpu_worker "$uuid")" "$worker"
assert_eq "the vGPU" "$(octavoctl --json show "$uuid" | jq -r .state)" open
assert_ok guest steady true

note "removal of the module's package under it: nothing is taken from the guest"
assert_ok "${apt[@]}" remove octavo-dkms
assert_ok guest steady true
assert_eq "the worker" "$(vgpu_worker "$uuid")" "$worker"
guest-stop steady
assert_ok octavoctl remove "$uuid"

note "purge"
kernels_unhide
rm -r /etc/octavo/octavo.conf.d
assert_ok dpkg --purge octavo octavo-tools octavo-layer octavo-dkms
rmmod octavo
[[ ! -e /run/octavo ]] || fail "/run/octavo is left: $(ls /run/octavo)"
! pgrep -x octavod >/dev/null || fail "octavod still runs"
files >"$tmp/files.after"
accounts >"$tmp/accounts.after"
assert_eq "files left or lost" "$(diff "$tmp/files.before" "$tmp/files.after" | grep '^[<>]' || true)" ""
assert_eq "accounts left or lost" "$(diff "$tmp/accounts.before" "$tmp/accounts.after" | grep '^[<>]' || true)" ""
rm "$tmp"/files.* "$tmp"/accounts.*
