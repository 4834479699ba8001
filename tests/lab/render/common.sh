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

# rounds_of MS [ELEMENTS]: rounds of vk_check that make a dispatch of about that long on this host
rounds_of() {
	local wanted=$1 elements=${2:-65536} few many
	few=$("$OCTAVO_BUILD/vk_check" --device llvmpipe --elements "$elements" --rounds 200 --dispatches 5 | sed -n 's/^dispatch: \([0-9.]*\).*/\1/p')
	many=$("$OCTAVO_BUILD/vk_check" --device llvmpipe --elements "$elements" --rounds 2200 --dispatches 5 | sed -n 's/^dispatch: \([0-9.]*\).*/\1/p')
	awk -v few="$few" -v many="$many" -v wanted="$wanted" \
		'BEGIN { each = (many - few) / 2000; r = int((wanted - few) / each + 200); print r < 1 ? 1 : r }'
}

# The render processes of a worker, one a line: its grandchildren.
render_processes() {
	local server
	for server in $(pgrep -P "$1" -f virgl_render_server); do
		pgrep -P "$server" || true
	done
}
