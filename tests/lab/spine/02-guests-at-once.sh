#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 600
# Two guests boot and run at the same time, each on its own kernel.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

guest-start --mem 512 --kernel 6.12 one &
one=$!
guest-start --mem 512 --kernel 7.3 two &
two=$!
wait "$one" && wait "$two" || fail "a guest did not come up"
assert_match "kernel of one" "$(guest one uname -r)" '^6\.12\.'
assert_match "kernel of two" "$(guest two uname -r)" '^7\.3\.'
assert_fails "runs already" guest-start one
assert_fails "no running guest" guest-exec three -- true
assert_ok guest-stop --all
