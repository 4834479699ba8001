// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/guard.h"

#include <string.h>

uint64_t guard_strike(struct guard *guard, uint64_t now_ns, unsigned int *in_window)
{
	uint64_t pause_ns = GUARD_PAUSE_NS;
	unsigned int old = 0;

	while (old < guard->count && now_ns - guard->at_ns[old] > GUARD_WINDOW_NS)
		old++;
	if (old == 0 && guard->count == GUARD_KEEP)
		old = 1;
	guard->count -= old;
	memmove(guard->at_ns, guard->at_ns + old, guard->count * sizeof(guard->at_ns[0]));
	guard->at_ns[guard->count++] = now_ns;
	*in_window = guard->count;
	if (guard->count <= GUARD_FREE)
		return 0;
	for (unsigned int i = GUARD_FREE + 1; i < guard->count && pause_ns < GUARD_PAUSE_MAX_NS; i++)
		pause_ns *= 2;
	return pause_ns < GUARD_PAUSE_MAX_NS ? pause_ns : GUARD_PAUSE_MAX_NS;
}
