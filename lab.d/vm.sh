# SPDX-License-Identifier: LGPL-2.1-or-later
# The host VM: one QEMU that plays the GPU host. Sourced, never run.
#
# vm_start sets vm_pid, vm_dir (sockets), vm_log (folder of this boot's logs); vm_exec runs a
# command in it; vm_stop powers it off and saves its logs. Whatever ends ./lab ends the VM too.

vm_pid=
vm_dir=
vm_log=
# What is laid over the image: "stage" has octavo, "bare" has not.
vm_stage=stage
vm_series=(6.12 7.3)

# Software emulation always works; KVM only counts when a stock kernel runs on it with AMD-V or
# VT-x to give on: a /dev/kvm may exist and still not do that.
vm_accel() {
	local image nested
	if [[ ${OCTAVO_ACCEL:-} ]]; then
		echo "$OCTAVO_ACCEL"
		return
	fi
	nested=$(cat /sys/module/kvm_{amd,intel}/parameters/nested 2>/dev/null | head -n 1)
	if [[ -w /dev/kvm && $nested == [1Y] ]]; then
		image=$(image_path host)
		if (root_run host timeout 20 qemu-system-x86_64 -M q35 -accel kvm -cpu host -m 512M \
			-nodefaults -no-reboot -display none -serial stdio -kernel "$image/vmlinux-6.12" \
			-initrd "$image/initrd-6.12.cpio" -append 'console=ttyS0 quiet lab.probe') \
			</dev/null 2>/dev/null | grep -q 'accelerator works'; then
			echo kvm
			return
		fi
		say "/dev/kvm is there but runs no stock kernel: emulating the CPU instead"
	fi
	echo tcg
}

# vm_start SERIES NAME: boot the host VM; returns when its agent answers, with 1 if it does not.
vm_start() {
	local series=$1 name=$2 image guest accel cpu started i ports=() args=()
	image=$(image_path host)
	guest=$(image_path guest)
	[[ -f $image/vmlinux-$series ]] ||
		die "there is no kernel '$series' in the lab: its kernels are ${vm_series[*]}"
	accel=$(vm_accel)
	case $accel in
	kvm) args=(-accel kvm -cpu host) ;;
	tcg) args=(-accel tcg,thread=multi,tb-size=1024 -cpu 'EPYC-v4,+svm') ;;
	*) die "OCTAVO_ACCEL is '$accel': it may be kvm or tcg" ;;
	esac

	vm_dir=$(mktemp -d /tmp/octavo-lab.XXXXXX)
	vm_log=$out/logs/$(date +%Y%m%d-%H%M%S)-$name-$series
	mkdir -p "$vm_log"
	ln -sfn "${vm_log##*/}" "$out/logs/latest"
	cat "$image/initrd-$series.cpio" "$build/$vm_stage.cpio" >"$vm_dir/initrd"
	: >"$vm_log/console.log"
	for i in 0 1 2 3; do
		ports+=(-chardev "socket,id=lab$i,path=$vm_dir/lab$i,server=on,wait=off"
			-device "virtserialport,chardev=lab$i,name=lab$i")
	done

	started=$EPOCHREALTIME
	say "host VM: starting kernel $series ($accel; console: $vm_log/console.log)"
	# The process namespace ends with its first process, and that with this script.
	(
		cd "$vm_dir"
		export TMPDIR=$vm_dir
		exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private -- \
			bash "$tree/lab.d/root-enter" "$(root_path host)" "$tree" "$cache" "$vm_dir" \
			qemu-system-x86_64 -name "octavo-host-$series" -M q35,sata=off,smbus=off,i8042=off "${args[@]}" -smp 2 -m 6G \
			-nodefaults -display none -no-user-config \
			-kernel "$image/vmlinux-$series" -initrd "$vm_dir/initrd" \
			-append "lab.root=/dev/vda console=ttyS0 quiet mitigations=off panic=1 nowatchdog modprobe.blacklist=iTCO_wdt,lpc_ich,pcspkr audit=0 apparmor=0 rcupdate.rcu_cpu_stall_timeout=120 systemd.show_status=no lab.log=$vm_log" \
			-drive "file=$image/root.img,if=none,id=root,format=raw,snapshot=on" \
			-device virtio-blk-pci,drive=root \
			-drive "file=$guest/root.img,if=none,id=guest,format=raw,readonly=on" \
			-device virtio-blk-pci,drive=guest,serial=guest \
			-fsdev "local,id=tree,path=$tree,security_model=none,readonly=on,multidevs=remap" \
			-device virtio-9p-pci,fsdev=tree,mount_tag=tree \
			-fsdev "local,id=out,path=$out,security_model=none,multidevs=remap" \
			-device virtio-9p-pci,fsdev=out,mount_tag=out \
			-fsdev "local,id=build,path=$build,security_model=none,readonly=on,multidevs=remap" \
			-device virtio-9p-pci,fsdev=build,mount_tag=build \
			-fsdev "local,id=guest,path=$guest,security_model=none,readonly=on,multidevs=remap" \
			-device virtio-9p-pci,fsdev=guest,mount_tag=guest \
			-device bochs-display,id=gpu0 \
			-device pcie-root-port,id=gpu1port,chassis=9 -device bochs-display,id=gpu1,bus=gpu1port \
			-device virtio-rng-pci -d cpu_reset,guest_errors -D "$vm_log/qemu-cpu.log" \
			-serial "file:$vm_log/console.log" \
			-qmp "unix:$vm_dir/qmp,server=on,wait=off" \
			-device virtio-serial-pci,max_ports=8 "${ports[@]}"
	) </dev/null >"$vm_log/qemu.log" 2>&1 &
	vm_pid=$!
	vm_console_follow &
	for ((i = 0; i < 100; i++)); do
		[[ -S $vm_dir/lab3 ]] && break
		kill -0 "$vm_pid" 2>/dev/null || break
		sleep 0.1
	done
	if ! vm_exec -w 240 -- true </dev/null; then
		say "host VM: not up after $(elapsed "$started") s"
		tail -n 5 "$vm_log/qemu.log" "$vm_log/console.log" >&2
		say "the host VM did not come up: see $vm_log"
		return 1
	fi
	say "host VM: up in $(elapsed "$started") s"
}

# Stages that the VM tells on its console.
vm_console_follow() {
	tail -n +1 -f --pid="$vm_pid" "$vm_log/console.log" 2>/dev/null |
		while IFS= read -r line; do
			line=${line%$'\r'}
			case $line in
			*'lab: '*) say "host VM: ${line#*lab: }" ;;
			*'Kernel panic'*) say "host VM: ${line}" ;;
			esac
		done
}

# vm_exec [-i|-t|-r|-w S] -- CMD...
vm_exec() {
	local options=()
	while [[ $1 != -- ]]; do
		options+=("$1")
		shift
	done
	"$build/labexec" run "${options[@]}" "$vm_dir"/lab{0,1,2,3} "$@"
}

vm_alive() {
	[[ -n $vm_pid ]] && kill -0 "$vm_pid" 2>/dev/null
}

# vm_died: its QEMU has ended; how, as the status
vm_died() {
	wait "$vm_pid"
}

# Power the VM off; what it logged is in $vm_log afterwards, also when it had died before.
vm_stop() {
	local started=$EPOCHREALTIME i
	[[ -n $vm_pid ]] || return 0
	if vm_alive; then
		vm_exec -w 10 -- sh -c "dmesg >$vm_log/kernel.log; journalctl -b --no-pager -o short-monotonic >$vm_log/journal.log; systemctl --no-block poweroff" \
			</dev/null >/dev/null 2>&1 || true
		for ((i = 0; i < 200; i++)); do
			vm_alive || break
			sleep 0.1
		done
		if vm_alive; then
			say "host VM: does not power off: ending it"
		else
			say "host VM: off after $(elapsed "$started") s"
		fi
	fi
	vm_kill
}

vm_kill() {
	[[ -n $vm_pid ]] || return 0
	kill -KILL "$vm_pid" 2>/dev/null || true
	wait "$vm_pid" 2>/dev/null || true
	rm -rf "$vm_dir"
	vm_pid=
}

# ./lab host [--kernel V] [--no-build] [-- CMD...]
host_main() {
	local series=6.12 no_build=${OCTAVO_NO_BUILD:+--no-build} rc=0
	while [[ $# -gt 0 ]]; do
		case $1 in
		--kernel) series=${2:?--kernel needs 6.12 or 7.3}; shift 2 ;;
		--kernel=*) series=${1#*=}; shift ;;
		--no-build) no_build=--no-build; shift ;;
		--) shift; break ;;
		-*) die "host: unknown option $1: see ./lab help" ;;
		*) break ;;
		esac
	done
	lab_ensure $no_build
	trap vm_kill EXIT
	trap 'vm_kill; exit 130' INT
	trap 'vm_kill; exit 143' TERM HUP
	vm_start "$series" host || exit 1
	if [[ $# -gt 0 ]]; then
		vm_exec -i -- "$@" || rc=$?
	else
		say "host VM: a shell; leave it with exit"
		vm_exec -t -- bash -l || rc=$?
	fi
	vm_stop
	if [[ -f $vm_log/kernel.log ]] && kernel_complaints "$vm_log/kernel.log" >&2; then
		say "host VM: the kernel complained: see $vm_log/kernel.log"
	fi
	exit "$rc"
}
