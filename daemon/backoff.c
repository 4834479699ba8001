// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/backoff.h"

unsigned int backoff_next(struct backoff *backoff, int64_t lived_us)
{
	unsigned int pause_ms = BACKOFF_FIRST_MS;

	if (lived_us >= BACKOFF_HEALTHY_US)
		backoff->failures = 0;
	backoff->failures++;
	if (backoff->failures == 1)
		return 0;
	for (unsigned int i = 2; i < backoff->failures && pause_ms < BACKOFF_LIMIT_MS; i++)
		pause_ms *= 2;
	return pause_ms < BACKOFF_LIMIT_MS ? pause_ms : BACKOFF_LIMIT_MS;
}
