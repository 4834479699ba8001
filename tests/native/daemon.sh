# SPDX-License-Identifier: LGPL-2.1-or-later
# What native tests of octavod share. Sourced by them; they have fail() and end what they start.
. "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"

# wait_until CMD...: 30 s at most; the pause is a read that nobody answers
wait_until() {
	local end=$((SECONDS + 30))
	until "$@" >/dev/null 2>&1; do
		[[ $SECONDS -lt $end ]] || fail "not within 30 s: $*"
		read -rt 0.05 <> <(:) || true
	done
}

# bus_start DIR POLICY: a system bus of one's own, which programs find from now on. Sets bus, its pid.
bus_start() {
	cat >"$1/bus.conf" <<CONF
<busconfig>
  <type>system</type>
  <listen>unix:path=$1/bus</listen>
  <auth>EXTERNAL</auth>
  $2
</busconfig>
CONF
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$1/bus
	dbus-daemon --config-file="$1/bus.conf" --nofork 2>"$1/bus.log" &
	bus=$!
	wait_until test -S "$1/bus"
}

# Everybody may do everything.
bus_open='<policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow eavesdrop="false"/>
  </policy>'
