#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: proof
# Time slices hold, from work that clients completed: the cases of ./lab bench shares, shorter and
# with a wide margin, since others may use this machine at the same time; without slices that hold
# 1 ms against 20 ms would still give 5 % in place of 50, and 10/90 50.
# needs: quiet
# limit: 600
set -euo pipefail
. "$OCTAVO_TREE/tests/native/layer.sh"
exec flock "${OCTAVO_VM_LOCK:-/tmp/octavo-vm.lock}" \
	"$OCTAVO_BUILD/shares" "$OCTAVO_BUILD" --seconds=3 --margin=8
