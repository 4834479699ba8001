# SPDX-License-Identifier: LGPL-2.1-or-later
# Whether a guest drives its vGPU, seen from both sides. Sourced after lib.sh.

# guest_pattern NAME: the guest's modetest shows its colour bars until it is killed.
guest_pattern() {
	guest "$1" sh -c '
		pkill -x modetest
		id=$(modetest -M virtio_gpu -c | awk "\$3 == \"connected\" { print \$1; exit }")
		[ -n "$id" ] || { echo "no connected head"; exit 1; }
		setsid sh -c "sleep 3600 | modetest -M virtio_gpu -s $id:#0" >/tmp/modetest.log 2>&1 </dev/null &
	'
}

# Colour bars begin with light grey; a console, or black, does not.
screen_has_pattern() {
	local file=$tmp/pattern.ppm offset
	screendump "$1" "$file" || return
	offset=$(head -n 3 "$file" | wc -c)
	[[ $(tail -c "+$((offset + 1))" "$file" | head -c 24 | xxd -p -c 24) == "$(printf 'c0%.0s' {1..24})" ]]
}

# guest_paints NAME: what the guest draws now is what the host sees now.
guest_paints() {
	local name=$1
	guest_blank "$name"
	assert_ok guest_pattern "$name"
	wait_for 60 "colour bars on the screen of $name" screen_has_pattern "$name"
}

# Take the pattern away, so that an old picture cannot pass for a new one.
guest_blank() {
	guest "$1" sh -c 'pkill -x modetest && while pgrep -x modetest; do :; done' >/dev/null || true
	wait_for 30 "no colour bars on the screen of $1" screen_lacks_pattern "$1"
}

screen_lacks_pattern() {
	! screen_has_pattern "$1"
}

# virtio device name of the guest's vGPU with that index
guest_virtio() {
	guest "$1" sh -c 'for path in /sys/bus/virtio/devices/*; do
		[ "$(cat $path/device)" = 0x0010 ] && echo "${path##*/}"; done; true' | sed -n "$((${2:-0} + 1))p"
}

# guest_driver NAME unbind|bind VIRTIO
guest_driver() {
	guest "$1" sh -c "echo $3 >/sys/bus/virtio/drivers/virtio_gpu/$2"
}
