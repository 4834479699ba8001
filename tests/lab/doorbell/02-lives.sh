#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# limit: 400
# Whatever ends while a guest kicks, nothing hangs and nothing is left: the worker, the guest's use of
# the device, the mdev.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/common.sh"

uuid=$(vgpu_create 1_4)
guest-start lives "$uuid"
ping_prepare lives
lives_while_kicking lives "$uuid"
assert_ok guest-stop lives
