// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfio/spin.h"

#include "tests/unit/suite.h"

#define LIMIT_NS	200000u

static void test_opens(void)
{
	struct spin spin = { .limit_ns = LIMIT_NS };

	CU_ASSERT_EQUAL(spin_window(&spin), 0);
	/* early, but nobody looked: the next one may be seen */
	spin_came(&spin, 50000);
	CU_ASSERT_EQUAL(spin_window(&spin), SPIN_FIRST_NS);
	for (int i = 0; i < 3; i++)
		spin_came(&spin, 50000);
	CU_ASSERT_EQUAL(spin_window(&spin), 8 * SPIN_FIRST_NS);
	/* seen: it is long enough */
	spin_came(&spin, 50000);
	CU_ASSERT_EQUAL(spin_window(&spin), 8 * SPIN_FIRST_NS);
}

static void test_closes(void)
{
	struct spin spin = { .limit_ns = LIMIT_NS };

	for (int i = 0; i < 20; i++)
		spin_came(&spin, LIMIT_NS);
	CU_ASSERT_EQUAL(spin_window(&spin), LIMIT_NS);
	spin_came(&spin, LIMIT_NS + 1);
	CU_ASSERT_EQUAL(spin_window(&spin), 0);
}

/* One that is always late costs nothing. */
static void test_late(void)
{
	struct spin spin = { .limit_ns = LIMIT_NS };

	for (int i = 0; i < 100; i++) {
		spin_came(&spin, UINT64_MAX);
		CU_ASSERT_EQUAL(spin_window(&spin), 0);
	}
}

static void test_off(void)
{
	struct spin spin = { .limit_ns = 0 };

	spin_came(&spin, 0);
	spin_came(&spin, 1);
	CU_ASSERT_EQUAL(spin_window(&spin), 0);
}

SUITE_RUN("spin",
	  { "requests that come soon open a window and widen it", test_opens },
	  { "one that comes late closes it", test_closes },
	  { "requests that are always late open none", test_late },
	  { "a limit of 0 looks never", test_off })
