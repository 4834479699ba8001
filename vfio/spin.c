// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfio/spin.h"

void spin_came(struct spin *spin, uint64_t idle_ns)
{
	if (idle_ns > spin->limit_ns) {
		spin->window_ns = 0;
		return;
	}
	if (idle_ns <= spin->window_ns)
		return;
	spin->window_ns = spin->window_ns ? 2 * spin->window_ns : SPIN_FIRST_NS;
	if (spin->window_ns > spin->limit_ns)
		spin->window_ns = spin->limit_ns;
}
