// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/unit.h"

#include <string.h>

#include "daemon/keep.h"
#include "daemon/worker.h"
#include "tests/unit/suite.h"

#define UUID "6f7ec1e2-3e7b-4a4e-9a62-0d5b5e8f3a10"

static void cgroups(void)
{
	CU_ASSERT_TRUE(unit_is_cgroup("0::/octavo.slice/octavo-vgpu@" UUID ".service\n", UUID));
	CU_ASSERT_TRUE(unit_is_cgroup("4:memory:/x\n0::/octavo.slice/octavo-vgpu@probe-0000:01:00.0.service\n",
				      "probe-0000:01:00.0"));
	CU_ASSERT_FALSE(unit_is_cgroup("", UUID));
	CU_ASSERT_FALSE(unit_is_cgroup("0::/octavo.slice/octavo-vgpu@other.service\n", UUID));
	/* not in the unit, but in a group that it made or in one that is named like it */
	CU_ASSERT_FALSE(unit_is_cgroup("0::/octavo.slice/octavo-vgpu@" UUID ".service/x\n", UUID));
	CU_ASSERT_FALSE(unit_is_cgroup("0::/user.slice/my-octavo-vgpu@" UUID ".service\n", UUID));
}

static void limits(void)
{
	CU_ASSERT_EQUAL(worker_memory_limit(1ULL << 30), 3ULL << 30);
	CU_ASSERT_EQUAL(worker_tasks_limit(1), 256);
	CU_ASSERT_EQUAL(worker_tasks_limit(4), 1024);
}

static void never(pid_t pid, int pidfd, const GError *error, void *data)
{
	(void)pid;
	(void)pidfd;
	(void)error;
	(void)data;
	CU_FAIL("told of a unit that is not asked for");
}

/* The name of a socket has its limits, and so have paths that are not there. */
static void refused(void)
{
	const char *const none[] = { NULL };
	g_autofree char *name = g_strnfill(200, 'x');
	const struct unit_setup setup = { .instance = name, .arguments = none };
	g_autoptr(GError) error = NULL;

	CU_ASSERT_PTR_NULL(unit_start(&setup, never, NULL, &error));
	g_assert_nonnull(error);
	CU_ASSERT_PTR_NOT_NULL(strstr(error->message, "cannot listen on /run/octavo/vgpu-xxx"));
}

static void nothing_kept(void)
{
	CU_ASSERT_EQUAL(keep_take("gate"), -1);
	keep_init();
	CU_ASSERT_EQUAL(keep_take("gate"), -1);
	keep_drop_rest();
}

SUITE_RUN("unit",
	  { "a process is told by its cgroup", cgroups },
	  { "limits follow the profile", limits },
	  { "an instance that cannot be listened for is refused", refused },
	  { "without systemd nothing is kept", nothing_kept })
