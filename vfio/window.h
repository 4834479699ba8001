/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * window.h - memory of the host that a guest sees in BAR2
 *
 * A blob is mapped into this process at an address that is aligned as its place in the window is,
 * so that the module can use huge pages, and then shown to the guest. The file that it came from is
 * not needed afterwards.
 *
 * Threads: calls about one mapping must not overlap.
 */
#ifndef OCTAVO_VFIO_WINDOW_H
#define OCTAVO_VFIO_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "vfio/session.h"

#define WINDOW_ALIGNMENT	(2ULL << 20)

struct window_mapping {
	void *addr;
	uint64_t length;	/* bytes, whole pages; 0: not mapped */
	uint64_t offset;	/* in BAR2; meaningful while @shown */
	uint32_t caching;	/* OCTAVO_CACHED or OCTAVO_WRITE_COMBINED */
	bool shown;
};

/* Maps @bytes of @fd for this process; -errno. The fd stays the caller's. */
int window_open(struct window_mapping *mapping, int fd, uint64_t bytes);
void window_close(struct window_mapping *mapping);

/*
 * Shows it to the guest at @offset of BAR2. -EINVAL: @offset is not page aligned, or it is shown
 * already; else the errors of OCTAVO_WINDOW_MAP.
 */
int window_show(struct session *session, struct window_mapping *mapping, uint64_t offset,
		uint32_t caching);
/* The guest sees scratch there when it returns. */
int window_hide(struct session *session, struct window_mapping *mapping);

/* The module lost it (device memory moved) and wants it again. */
int window_show_again(struct session *session, struct window_mapping *mapping);

#endif
