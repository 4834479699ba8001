/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * collect - a snapshot of the running octavod
 */
#ifndef OCTAVO_DAEMON_COLLECT_H
#define OCTAVO_DAEMON_COLLECT_H

#include "daemon/snapshot.h"

/*
 * Asks the module for fresh counters and copies; some tens of microseconds, no file is read. The
 * slices and events of the time line only if @detailed.
 */
struct snapshot *collect(struct manager *manager, bool detailed);

#endif /* OCTAVO_DAEMON_COLLECT_H */
