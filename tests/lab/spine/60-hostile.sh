#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# A client that keeps no rule gets errors only: every request, region and event of the module.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

parent=$(gpu_parent)
systemctl stop octavod
rc=0
"$OCTAVO_BUILD/hostile" --parent "$parent" >"$OCTAVO_OUT/hostile.txt" 2>&1 || rc=$?
grep -a '^FAIL' "$OCTAVO_OUT/hostile.txt" || true
tail -n 1 "$OCTAVO_OUT/hostile.txt"
systemctl start octavod
wait_for 20 "octavod to register its GPU again" gpu_parent
assert_eq "exit status of hostile" "$rc" 0
