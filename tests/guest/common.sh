# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by the guest-* tools, inside the host VM. Sourced, never run.
#
# /run/octavo-lab/NAME/ holds one guest: pid, qmp (for tests), qmp-lab (for these tools),
# lab0..lab3 (its agent), vnc (with --display), console.log, qemu.log.

guests=/run/octavo-lab
lab=/usr/lib/octavo-lab
. /etc/octavo-lab.conf

# Command line of a guest's kernel. Without lastbus it looks at every slot of 256 buses, at two exits each:
# seconds in an emulated host.
guest_words="lab.root=/dev/vda lab.overlay lab.init=/usr/lib/octavo-lab/init console=ttyS0 \
quiet mitigations=off panic=1 nowatchdog pci=lastbus=0 \
modprobe.blacklist=iTCO_wdt,lpc_ich,pcspkr,intel_rapl_msr,aesni_intel,ghash_clmulni_intel,sha512_ssse3,sha256_ssse3,sha1_ssse3,crct10dif_pclmul,crc32_pclmul \
rcupdate.rcu_cpu_stall_timeout=120"

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

guest_alive() {
	local pid
	pid=$(cat "$guests/$1/pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null
}

guest_need() {
	guest_alive "$1" ||
		die "there is no running guest '$1': running are: $(guest_names | tr '\n' ' ')"
}

guest_names() {
	local dir
	for dir in "$guests"/*/; do
		dir=${dir%/}
		guest_alive "${dir##*/}" && echo "${dir##*/}"
	done
	return 0
}
