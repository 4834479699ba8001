#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Time slices hold, from work that clients completed: the cases of ./lab bench shares, shorter and
# with a margin, since others may use this machine at the same time.
# limit: 600
set -euo pipefail
. "$OCTAVO_TREE/tests/native/layer.sh"
exec flock "${OCTAVO_VM_LOCK:-/tmp/octavo-vm.lock}" \
	"$OCTAVO_BUILD/shares" "$OCTAVO_BUILD" --seconds=3 --margin=5
