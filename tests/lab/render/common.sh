# SPDX-License-Identifier: LGPL-2.1-or-later
# What the render tests share. Sourced after lib.sh, never run.

# GPUs of the lab are rendered by llvmpipe, which has no PCI address: it is named.
render_configure() {
	grep -qs '^vulkan-device = llvmpipe' /etc/octavo/octavo.conf.d/render.conf && return
	printf '[gpu any]\nrenderer = venus\nvulkan-device = llvmpipe\n' \
		>/etc/octavo/octavo.conf.d/render.conf
	systemctl restart octavod
	# the software renderer takes its time under an emulated CPU, and an open does not wait for it
	wait_for 300 "octavod knows what the GPU renders" render_is_known
}

render_is_known() {
	octavoctl --json gpus | grep -q 'virgl,virgl2,venus'
}

# guest_give NAME PROGRAM...: our guest programs, as files in the guest's /tmp
guest_give() {
	local name=$1 program
	shift
	for program in "$@"; do
		guest-exec -i "$name" -- sh -c "cat >/tmp/$program && chmod +x /tmp/$program" \
			<"$OCTAVO_BUILD/$program"
	done
}

# The render processes of a worker, one a line: its grandchildren.
render_processes() {
	local server
	for server in $(pgrep -P "$1" -f virgl_render_server); do
		pgrep -P "$server" || true
	done
}
