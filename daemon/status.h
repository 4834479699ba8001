/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * status - a snapshot as the JSON that the status page reads
 *
 * {
 *   host, version, module,
 *   time_us, started_us (since the epoch), now_us (a clock that only goes forward),
 *   gpus: [{ address, name, driver, policy, renderer, state, reason, memory_bytes, slice_us,
 *            eighths, eighths_used,
 *            slices: [[index into vgpus or -1, us ago it began, us used, us overrun], ...]
 *            of the last STATUS_SPAN_MS }],
 *   vgpus: [{ uuid, gpu, type, vm, state, eighths, share, busy_us, wait_us, overrun_us,
 *             memory_used_bytes, memory_limit_bytes, turns, hangs, waiting, held_off,
 *             worker_restarts, last_error }],
 *   events: [{ time_us, event, uuid, gpu, message }], newest first, STATUS_EVENTS at most
 * }
 * Pure; any thread.
 */
#ifndef OCTAVO_DAEMON_STATUS_H
#define OCTAVO_DAEMON_STATUS_H

#include "daemon/snapshot.h"

#define STATUS_EVENTS	20u
#define STATUS_SPAN_MS	1000u

/* Compact JSON; g_free() it. */
char *status_render(const struct snapshot *snapshot);

#endif /* OCTAVO_DAEMON_STATUS_H */
