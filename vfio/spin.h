/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * spin.h - how long it pays to look at a queue before asking its driver for a kick
 *
 * A kick costs the guest an exit, the worker a wake-up, and with a stock QEMU, QEMU and the module a
 * system call each (docs/doorbell.md).
 * Where the next request follows the last one soon, looking at the ring for that long costs less.
 * The window follows what happens, as KVM's halt polling does: a request that a window of up to
 * the limit would have caught doubles it, one that comes later than that ends it. So an idle queue
 * costs one window at most, and a queue that is always late none.
 *
 * Pure arithmetic; the caller has the clock. One thread.
 */
#ifndef OCTAVO_VFIO_SPIN_H
#define OCTAVO_VFIO_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_FIRST_NS	10000u		/* the window that a first early request opens */

struct spin {
	uint64_t limit_ns;	/* 0: never look, always wait */
	uint64_t window_ns;
};

/* ns to look for the next request, from now on; 0: wait for a kick. */
static inline uint64_t spin_window(const struct spin *spin)
{
	return spin->window_ns;
}

/* A request came @idle_ns after the queue had become empty, seen by looking or told by a kick. */
void spin_came(struct spin *spin, uint64_t idle_ns);

#endif
