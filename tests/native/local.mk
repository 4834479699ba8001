# SPDX-License-Identifier: LGPL-2.1-or-later

# octavod and octavoctl on a bus of their own
TESTS += tests/native/bus.sh
EXTRA_DIST += tests/native/bus.sh
