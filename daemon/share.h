/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * share - one open's share of its GPU: the gate of its worker and the place at the arbiter
 *
 * The gate lives as long as the open: a new VM starts with a page that nobody has written to. When
 * octavod dies the workers keep their gates, whose lease lapses; the next octavod has the
 * descriptors from systemd (keep.h), or else takes them back out of the workers.
 */
#ifndef OCTAVO_DAEMON_SHARE_H
#define OCTAVO_DAEMON_SHARE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "scheduler/arbiter.h"

#define SHARE_WORKER_FD 4	/* where a worker has its gate */

struct share {
	struct arbiter *arbiter;	/* NULL: no share; not owned */
	int fd;
	int id;				/* at the arbiter */
	char *kept;			/* its name for keep.h */
};

/* @name: for the arbiter's log, and the next octavod. A share of @eighths of the time and @vram_bytes. */
bool share_open(struct share *share, struct arbiter *arbiter, unsigned int eighths,
		uint64_t vram_bytes, const char *name, GError **error);
/* The same with the gate that the running worker behind @pidfd has. */
bool share_adopt(struct share *share, struct arbiter *arbiter, int pidfd, unsigned int eighths,
		 uint64_t vram_bytes, const char *name, GError **error);
/* Gives it up; whoever still uses the gate runs ungoverned. */
void share_close(struct share *share);
/* Leaves it to the next octavod. */
void share_leave(struct share *share);

#endif /* OCTAVO_DAEMON_SHARE_H */
