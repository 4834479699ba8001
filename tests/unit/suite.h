/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* suite.h - main() of a CUnit program: SUITE_RUN("name", { "what must hold", function }, ...) */
#ifndef OCTAVO_TESTS_SUITE_H
#define OCTAVO_TESTS_SUITE_H

#include <CUnit/Basic.h>
#include <stddef.h>

struct suite_test {
	const char *sentence;
	void (*run)(void);
};

static inline int suite_run(const char *name, const struct suite_test *tests, size_t count)
{
	CU_pSuite suite;
	unsigned int failures;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite(name, NULL, NULL);
	for (size_t i = 0; suite && i < count; i++) {
		if (!CU_add_test(suite, tests[i].sentence, tests[i].run))
			suite = NULL;
	}
	if (!suite) {
		CU_cleanup_registry();
		return 2;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures ? 1 : 0;
}

#define SUITE_RUN(name, ...)                                                                       \
	int main(void)                                                                             \
	{                                                                                          \
		static const struct suite_test tests[] = { __VA_ARGS__ };                          \
												   \
		return suite_run(name, tests, sizeof(tests) / sizeof(tests[0]));                   \
	}

#endif
