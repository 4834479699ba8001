# SPDX-License-Identifier: LGPL-2.1-or-later
# What the tests of the packages share. Sourced after lib.sh, never run.

packages=$OCTAVO_BUILD/../packages
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o APT::Sandbox::User=root -y --no-install-recommends)
kernel=$(uname -r)
hidden=()

# Only the running kernel's headers are there, so that DKMS builds once; with --soak for both.
kernels_hide() {
	local path
	[[ ${OCTAVO_SOAK:-} ]] && return
	trap kernels_unhide EXIT
	for path in /usr/lib/modules/*; do
		[[ ${path##*/} != "$kernel" && -e $path/build ]] || continue
		mv "$path/build" "$path/build.hidden"
		hidden+=("$path")
	done
}

kernels_unhide() {
	local path
	for path in "${hidden[@]}"; do
		mv "$path/build.hidden" "$path/build"
	done
	hidden=()
}

# The lab's figures for an emulated display adapter; not the packages'
lab_figures() {
	install -D -m 644 -t /etc/octavo/octavo.conf.d "$OCTAVO_TREE/lab.d/host-files/etc/octavo/octavo.conf.d/lab.conf"
}

# octavo_install DIR: all of its packages, with apt
octavo_install() {
	local started=$SECONDS
	assert_ok "${apt[@]}" install "$1"/octavo_*.deb "$1"/octavo-{layer,tools,dkms}_*.deb
	note "installed $(dpkg-query -W -f '${Version}' octavo) after $((SECONDS - started)) s"
}
