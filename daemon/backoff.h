/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * backoff - how long to wait before a dead worker is replaced
 *
 * The first death after a long life is answered at once: a guest waits for it. A worker that dies
 * again and again soon after its start gets pauses that double up to a limit, so that a broken
 * installation costs a log line now and then and not a processor.
 */
#ifndef OCTAVO_DAEMON_BACKOFF_H
#define OCTAVO_DAEMON_BACKOFF_H

#include <stdint.h>

#define BACKOFF_FIRST_MS	100u
#define BACKOFF_LIMIT_MS	30000u
#define BACKOFF_HEALTHY_US	(10 * 1000000LL)	/* a life this long clears the count */

struct backoff {
	unsigned int failures;	/* deaths in a row, each after a short life */
};

/* @lived_us: from start to death. Returns the pause in milliseconds; 0 for the first death. */
unsigned int backoff_next(struct backoff *backoff, int64_t lived_us);

#endif /* OCTAVO_DAEMON_BACKOFF_H */
