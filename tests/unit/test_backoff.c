// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/backoff.h"

#include "tests/unit/suite.h"

#define SHORT_US	1000
#define LONG_US		BACKOFF_HEALTHY_US

static void first_at_once(void)
{
	struct backoff backoff = { 0 };

	CU_ASSERT_EQUAL(backoff_next(&backoff, LONG_US), 0);
}

static void pauses_grow_to_limit(void)
{
	struct backoff backoff = { 0 };
	unsigned int last = 0, total = 0;

	CU_ASSERT_EQUAL(backoff_next(&backoff, SHORT_US), 0);
	CU_ASSERT_EQUAL(backoff_next(&backoff, SHORT_US), BACKOFF_FIRST_MS);
	CU_ASSERT_EQUAL(backoff_next(&backoff, SHORT_US), 2 * BACKOFF_FIRST_MS);
	for (int i = 0; i < 100; i++) {
		unsigned int pause = backoff_next(&backoff, SHORT_US);

		CU_ASSERT_TRUE(pause >= last);
		CU_ASSERT_TRUE(pause <= BACKOFF_LIMIT_MS);
		last = pause;
		total++;
	}
	CU_ASSERT_EQUAL(last, BACKOFF_LIMIT_MS);
	CU_ASSERT_EQUAL(total, 100);
}

static void long_life_forgives(void)
{
	struct backoff backoff = { 0 };

	for (int i = 0; i < 8; i++)
		backoff_next(&backoff, SHORT_US);
	CU_ASSERT_EQUAL(backoff_next(&backoff, LONG_US), 0);
	CU_ASSERT_EQUAL(backoff_next(&backoff, SHORT_US), BACKOFF_FIRST_MS);
}

SUITE_RUN("backoff",
	  { "the first death is answered at once", first_at_once },
	  { "deaths in a row get pauses that grow to a limit", pauses_grow_to_limit },
	  { "a long life clears the count", long_life_forgives })
