#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# kernels: all
# limit: 400
# needs: proof
# Whatever ends while a guest kicks through a bound doorbell, nothing hangs and nothing is left: the
# worker, the guest's use of the device, the mdev.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../doorbell/common.sh"
. "$(dirname "$0")/common.sh"

trap polling_back EXIT
polling_off
uuid=$(vgpu_create 1_4)
guest-start --qemu patched lives "$uuid"
ping_prepare lives
lives_while_kicking lives "$uuid"
assert_ok guest-stop lives
