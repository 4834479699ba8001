// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/capsets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void test_copy(void)
{
	char data[300];
	struct capsets capsets = {
		.count = 2, .sets = { { 2, 1, sizeof(data), data }, { 4, 0, 0, NULL } },
	};
	struct capsets copy;
	int fd = capsets_save(&capsets);

	memset(data, 7, sizeof(data));
	close(fd);
	fd = capsets_save(&capsets);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	/* more than one reader */
	for (int i = 0; i < 2; i++) {
		memset(&copy, 0, sizeof(copy));
		CU_ASSERT_EQUAL_FATAL(capsets_load(&copy, fd), 0);
		CU_ASSERT_TRUE(capsets_known(&copy));
		CU_ASSERT_EQUAL(copy.count, 2);
		CU_ASSERT_EQUAL(copy.sets[0].id, 2);
		CU_ASSERT_EQUAL(copy.sets[0].version, 1);
		CU_ASSERT_EQUAL(copy.sets[0].bytes, sizeof(data));
		CU_ASSERT_EQUAL(memcmp(copy.sets[0].data, data, sizeof(data)), 0);
		CU_ASSERT_EQUAL(copy.sets[1].id, 4);
		for (unsigned int set = 0; set < copy.count; set++)
			free(copy.sets[set].data);
	}
	close(fd);
}

static void test_refuse(void)
{
	static const uint32_t words[][8] = {
		{ CAPSETS_MAX + 1 },
		{ 1, 2, 1, 1u << 20 },	/* longer than any */
		{ 1, 2, 1, 100 },	/* longer than the file */
		{ 2, 2, 1, 0 },		/* one is missing */
	};
	struct capsets capsets = { .known = false };
	int fd;

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		fd = memfd_create("test", MFD_CLOEXEC);
		CU_ASSERT_EQUAL(write(fd, words[i], i ? 16 : 4), i ? 16 : 4);
		CU_ASSERT_TRUE(capsets_load(&capsets, fd) < 0);
		CU_ASSERT_FALSE(capsets_known(&capsets));
		CU_ASSERT_EQUAL(capsets.count, 0);
		close(fd);
	}
	CU_ASSERT_TRUE(capsets_load(&capsets, -1) < 0);
}

SUITE_RUN("capsets",
	  { "a copy of the worker knows what the one before it knew", test_copy },
	  { "anything else is refused and changes nothing", test_refuse })
