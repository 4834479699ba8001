#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# octavod's metrics endpoint without a module, then the same server over a made-up host of 8 vGPUs:
# format, listener and limits, a real Prometheus with the alert rules and the dashboard's queries, the
# status page in a real browser, the journal's catalog.
# needs: quiet
# limit: 240
set -euo pipefail
. "$OCTAVO_TREE/tests/native/daemon.sh"
monitoring=$OCTAVO_TREE/monitoring
work=$(mktemp -d)
pids=()
daemon=
cleanup() {
	exec 3>&- || true
	[[ ! $daemon && ${#pids[@]} -eq 0 ]] || kill $daemon "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

fail() {
	printf 'FAIL line %s: %s\n' "${BASH_LINENO[0]}" "$*" >&2
	tail -n 20 "$work"/*.log >&2
	exit 1
}

free_ports() {
	python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))' "$1"
}

for tool in curl promtool prometheus chromium dbus-daemon journalctl python3; do
	command -v $tool >/dev/null || fail "$tool is missing in the build root"
done
read -r port_a port_b port_c port_d port_p port_other < <(free_ports 6)
get() { curl -sS --max-time 5 "$@"; }
code() { curl -s --max-time 5 -o /dev/null -w '%{http_code}' "$@" || true; }

# ---- octavod on a bus of its own ----

bus_start "$work" "$bus_open"
pids+=("$bus")

conf=$work/octavo.conf
configure() {
	printf '[octavod]\n%s\n[gpu 0000:ff:1f.7]\nvram = 8 GiB\n' "$1" >"$conf"
}
configure ''
"$OCTAVO_BUILD/octavod" --config "$conf" --control "$work/no-module" >"$work/octavod.log" 2>&1 &
daemon=$!
wait_until "$OCTAVO_BUILD/octavoctl" gpus
! grep -q ":$(printf '%04X' "$port_a") " /proc/net/tcp || fail "it listens although nobody asked for it"

configure "metrics-port = $port_a"
kill -HUP $daemon
wait_until get "http://127.0.0.1:$port_a/metrics"
get "http://127.0.0.1:$port_a/metrics" >"$work/metrics"
promtool check metrics <"$work/metrics" || fail "promtool finds fault with octavod's metrics"
grep -q '^octavo_module_state{state="absent"} 1$' "$work/metrics" || fail "the module is not told to be absent"
grep -q '^octavo_gpu_state{gpu="0000:ff:1f.7",state="waiting"} 1$' "$work/metrics" ||
	fail "the configured GPU is not there"
get "http://127.0.0.1:$port_a/status.json" | python3 -c '
import json, sys
status = json.load(sys.stdin)
assert status["module"] == "absent" and status["gpus"][0]["address"] == "0000:ff:1f.7", status'

# a reload moves it, whoever asks for the reload
configure "metrics-port = $port_b"
gdbus call --system -d org.octavo1 -o /org/octavo1 -m org.octavo1.Manager.Reload >/dev/null
[[ $(code "http://127.0.0.1:$port_b/metrics") == 200 ]] || fail "it did not move to another port"
[[ $(code "http://127.0.0.1:$port_a/metrics") == 000 ]] || fail "it still answers at the old port"
configure "metrics-port = $port_b"$'\nmetrics-address = ::1'
kill -HUP $daemon
wait_until get -g "http://[::1]:$port_b/metrics"
[[ $(code "http://127.0.0.1:$port_b/metrics") == 000 ]] || fail "it still answers at the old address"

# a port in use is told, and it goes on where it was
python3 -c '
import signal, socket, sys
s = socket.create_server(("::1", int(sys.argv[1])), family=socket.AF_INET6)
print("there", flush=True)
signal.pause()' "$port_other" >"$work/other.log" &
pids+=($!)
wait_until grep -q there "$work/other.log"
configure "metrics-port = $port_other"$'\nmetrics-address = ::1'
kill -HUP $daemon
wait_until grep -q "cannot listen on port $port_other of ::1.*in use.*choose another metrics-port" "$work/octavod.log"
[[ $(code -g "http://[::1]:$port_b/metrics") == 200 ]] || fail "it did not go on at the port it had"
"$OCTAVO_BUILD/octavoctl" gpus 2>&1 | grep 0000:ff:1f.7 >/dev/null || fail "octavod did not go on"
configure ''
kill -HUP $daemon
wait_until eval '[[ $(code -g "http://[::1]:$port_b/metrics") == 000 ]]'
kill -TERM $daemon
wait $daemon || fail "octavod ended with $?"
daemon=

# ---- the same server, 8 vGPUs ----

mkfifo "$work/input"
"$OCTAVO_BUILD/serve_status" 127.0.0.1 "$port_c" "$port_d" "$port_c" <"$work/input" >"$work/serve.log" 2>&1 &
pids+=($!)
exec 3>"$work/input"
wait_until grep -q listening "$work/serve.log"
site=http://127.0.0.1:$port_c
get "$site/metrics" >"$work/metrics"
promtool check metrics <"$work/metrics" || fail "promtool finds fault with the metrics of 8 vGPUs"
[[ $(grep -c '^octavo_vgpu_busy_seconds_total{' "$work/metrics") == 8 ]] || fail "not 8 vGPUs"

# The best of many, since others may use this machine at the same time; what a page that looks at no
# vGPU takes is the measure where even that is slow.
for path in '' metrics status.json; do
	for i in {1..20}; do
		get -o /dev/null -w '%{time_total}\n' "$site/$path"
	done | sort -n >"$work/times"
	best=$(head -n 1 "$work/times")
	echo "/$path: $best s at best, $(sed -n 10p "$work/times") s in the middle"
	[[ $path ]] || page=$best
	awk -v best="$best" -v page="$page" 'BEGIN { exit !(best < 0.010 || best < 10 * page) }' ||
		fail "/$path takes 10 ms or more, and ten times what the page takes"
done

# reading only, for those who ask by address
[[ $(code -I "$site/metrics") == 200 ]] || fail "no HEAD"
[[ $(code -X POST "$site/metrics") == 405 ]] || fail "POST is not refused"
[[ $(code -X POST -d x "$site/metrics") == 413 ]] || fail "a body of POST is not refused"
[[ $(code -X DELETE "$site/") == 405 ]] || fail "DELETE is not refused"
[[ $(code -X GET -d x "$site/metrics") == 413 ]] || fail "a request body is not refused"
[[ $(code -X GET -H 'Transfer-Encoding: chunked' -d x "$site/metrics") == @(413|000) ]] || fail "chunks are not refused"
[[ $(code "$site/etc/passwd") == 404 ]] || fail "a strange path is not 404"
[[ $(code -H 'Host: evil.example' "$site/status.json") == 403 ]] || fail "a stranger's name is not refused"
[[ $(code -H "Host: localhost:$port_c" "$site/status.json") == 200 ]] || fail "localhost is refused"
for header in "content-security-policy: default-src 'none'; script-src 'sha256-" 'x-content-type-options: nosniff'; do
	get -I "$site/" | tr A-Z a-z | grep -qF "$header" || fail "the page has no header '$header'"
done

python3 - "$port_c" <<'PYTHON' || fail "hostile clients are not bounded"
import select, socket, sys, time
port = int(sys.argv[1])
def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=20)
def send(s, text):
    try:
        s.sendall(text)
    except ConnectionError:
        pass
def receive(s):
    try:
        return s.recv(12)
    except ConnectionError:
        return b""
# of many connections that take their time 16 are kept, and there is room again when they end
crowd = [connect() for _ in range(40)]
for s in crowd:
    send(s, b"GET /metrics HTTP/1.1\r\n")
deadline = time.monotonic() + 8
closed = []
while len(closed) < 24 and time.monotonic() < deadline:
    closed = select.select(crowd, [], [], 0.1)[0]
for s in crowd:
    send(s, b"Host: 127.0.0.1\r\n\r\n")
served = [receive(s) for s in crowd].count(b"HTTP/1.1 200")
assert served == 16, f"{served} of 40 connections were served"
for attempt in range(100):
    s = connect()
    send(s, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    if receive(s) == b"HTTP/1.1 200":
        break
else:
    raise SystemExit("no room again after the crowd was served")
# who says nothing, or not all, is sent away
started = time.monotonic()
silent = connect()
slow = connect()
send(slow, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n")
assert receive(silent) == b"" and receive(slow) == b""
print(f"silent clients: sent away after {time.monotonic() - started:.1f} s")
# headers without end are not kept
s = connect()
sent = 0
try:
    s.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    while sent < 64 << 20:
        s.sendall(b"X-Long: " + b"a" * 65536 + b"\r\n")
        sent += 65546
except OSError:
    pass
print(f"endless headers: cut off after {sent} bytes")
assert sent < 64 << 20, "64 MiB of headers were taken"
# a body without end is not read
for kind in b"Content-Length: 100000000000", b"Transfer-Encoding: chunked":
    s = connect()
    sent = 0
    s.sendall(b"POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n" + kind + b"\r\n\r\n")
    try:
        while sent < 256 << 20:
            s.sendall(b"10000\r\n" + b"a" * 65536 + b"\r\n")
            sent += 65536
    except OSError:
        pass
    print(f"endless body: cut off after {sent} bytes")
    assert sent < 256 << 20, "256 MiB of a body were taken"
# nonsense
s = connect()
s.sendall(b"\0\xff\r\n\r\n" * 10)
receive(s)
PYTHON
[[ $(code "$site/metrics") == 200 ]] || fail "it does not answer after hostile clients"

# ---- Prometheus: rules, scrape, dashboard ----

promtool check rules "$monitoring/octavo.rules.yml" || fail "the alert rules are wrong"
promtool test rules "$monitoring/octavo.rules.test.yml" || fail "the alert rules do not what their tests say"
promtool check config --syntax-only "$monitoring/prometheus.yml" || fail "the example is wrong"
sed -e "s/127.0.0.1:9400/127.0.0.1:$port_c/; s/15s/1s/; s,/usr/share/octavo/monitoring,$monitoring," \
	"$monitoring/prometheus.yml" >"$work/prometheus.yml"
sed -i '1i global: { evaluation_interval: 1s }' "$work/prometheus.yml"
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
	--web.listen-address="127.0.0.1:$port_p" >"$work/prometheus.log" 2>&1 &
pids+=($!)
query() {
	get -G --data-urlencode "query=$1" "http://127.0.0.1:$port_p/api/v1/query" | jq -er '.data.result[0].value[1]'
}
wait_until eval '[[ $(query "count(rate(octavo_vgpu_busy_seconds_total[10s]) > 0)") == 5 ]]'
[[ $(query 'up{job="octavo"}') == 1 ]] || fail "the target is not up"
[[ $(query 'count(octavo_vgpu_share_ratio)') == 8 ]] || fail "Prometheus does not have 8 vGPUs"
[[ $(query 'count(octavo_vgpu_share_ratio{vm="desk \"Ö\""})') == 1 ]] || fail "a label's value was not kept"
[[ $(query 'scrape_samples_scraped{job="octavo"}') -gt 250 ]] || fail "few samples"
echo "Prometheus' own figure of a scrape: $(query 'min_over_time(scrape_duration_seconds[1m])') s"
[[ $(query 'min_over_time(scrape_duration_seconds[1m]) < bool 0.010') == 1 ]] || fail "a scrape takes 10 ms or more"
wait_until eval '[[ $(query "ALERTS{alertname=\"OctavoHeldOff\",vm=\"train-a\"}") == 1 ]]'
python3 - "$monitoring/octavo-dashboard.json" "http://127.0.0.1:$port_p" <<'PYTHON' || fail "the dashboard's queries"
import json, sys, urllib.parse, urllib.request
dashboard = json.load(open(sys.argv[1]))
empty_is_fine = {"Alerts"}
count = 0
for panel in dashboard["panels"]:
    for target in panel["targets"]:
        expression = target["expr"].replace("$__rate_interval", "10s")
        for name in ("instance", "gpu", "vm"):
            expression = expression.replace("$" + name, ".*")
        url = sys.argv[2] + "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            answer = json.load(urllib.request.urlopen(url, timeout=5))
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{panel['title']}: {expression}: {error.read().decode()}")
        if not answer["data"]["result"] and panel["title"] not in empty_is_fine:
            raise SystemExit(f"{panel['title']}: nothing for {expression}")
        count += 1
print(f"dashboard: {count} queries have answers")
PYTHON

# ---- the page in a browser ----

browse() {
	HOME=$work timeout 90 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
		--user-data-dir="$work/chromium" --enable-logging=stderr --virtual-time-budget=4000 "$@"
}
# what the console says reaches this test
browse --dump-dom 'data:text/html,<script>console.error("heard")</script>' 2>&1 >/dev/null | grep -q 'CONSOLE.*heard' ||
	fail "the browser's console is not heard"
browse --dump-dom "$site/" >"$work/dom" 2>"$work/browser.log"
! grep CONSOLE "$work/browser.log" || fail "the page has errors in the browser's console"
python3 - "$work/dom" <<'PYTHON' || fail "the page does not show what it should"
import html.parser, sys
page = open(sys.argv[1], encoding="utf-8").read()
for text in ("gpu-host-1", "AMD Radeon RX 7800 XT", "0000:41:00.0", "render-01", 'desk "Ö"', "held off",
             "needs-reset", "unserved", "50.2 % of 50 % promised", "less than promised", "3.8 GiB of 4.0 GiB",
             "4 hangs", "3 workers lost", "worker lost after 8122 ms", ">live<"):
    assert text in page, text
assert page.count('class="lane"') == 8, "lanes"
# every picture says in words what it shows
class Reader(html.parser.HTMLParser):
    pictures = 0
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if attributes.get("role") in ("img", "meter"):
            assert attributes.get("aria-label"), (tag, attributes)
            self.pictures += 1
reader = Reader()
reader.feed(page)
assert reader.pictures == 2 + 8 + 16, reader.pictures
PYTHON
mkdir -p "$OCTAVO_OUT/status"
for look in light dark; do
	scheme=()
	[[ $look == light ]] || scheme=(--blink-settings=preferredColorScheme=0)
	browse "${scheme[@]}" --window-size=1100,1560 --screenshot="$work/$look.png" "$site/" 2>"$work/browser.log"
	! grep CONSOLE "$work/browser.log" || fail "the page has errors in the browser's console ($look)"
	[[ $(stat -c %s "$work/$look.png") -gt 50000 ]] || fail "there is nothing on the picture ($look)"
done
! cmp -s "$work/light.png" "$work/dark.png" || fail "dark mode looks like light mode"
cp "$work"/{light,dark}.png "$OCTAVO_OUT/status/"
# moved away under the browser's eyes, the page says so
echo >&3
wait_until eval '[[ $(grep -c listening "$work/serve.log") == 2 ]]'
[[ $(code "$site/") == 000 && $(code "http://127.0.0.1:$port_d/") == 200 ]] || fail "the server did not move"

# ---- the journal ----

mkdir -p "$work/root"/{usr/lib,var/lib}/systemd/catalog
cp "$monitoring/octavo.catalog" "$work/root/usr/lib/systemd/catalog/"
journalctl --root="$work/root" --update-catalog || fail "the catalog is wrong"
journalctl --root="$work/root" --list-catalog | cut -d' ' -f1 | sort >"$work/ids"
grep -o '"5f1c7c9a5d9b4c6fa1a0a9e1c2d6[0-9a-f]*"' "$OCTAVO_TREE/daemon/manager.c" | tr -d '"' | sort |
	diff - "$work/ids" || fail "octavod's messages and the catalog's differ"
echo "metrics, page, rules, dashboard and catalog hold"
