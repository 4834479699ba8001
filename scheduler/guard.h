/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A sliding-window guard against a vGPU that hangs the GPU again and again: its first two
 * overruns within GUARD_WINDOW_NS only cost it their process, each further one a pause, twice as
 * long each time. Pure; time is the caller's.
 */
#ifndef OCTAVO_SCHEDULER_GUARD_H
#define OCTAVO_SCHEDULER_GUARD_H

#include <stdint.h>

#define GUARD_WINDOW_NS	   600000000000ull
#define GUARD_FREE	   2u
#define GUARD_PAUSE_NS	   5000000000ull
#define GUARD_PAUSE_MAX_NS 300000000000ull
#define GUARD_KEEP	   16u

struct guard {
	uint64_t at_ns[GUARD_KEEP]; /* the last overruns, newest last */
	unsigned int count;
};

/* One more overrun. Returns the pause, 0: none; *in_window is how many there are in the window. */
uint64_t guard_strike(struct guard *guard, uint64_t now_ns, unsigned int *in_window);

#endif
