// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/unit.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/keep.h"
#include "daemon/worker.h"
#include "tests/unit/folder.h"
#include "tests/unit/suite.h"

#define UUID "6f7ec1e2-3e7b-4a4e-9a62-0d5b5e8f3a10"

static void expect_instance(const char *cgroup, const char *wanted)
{
	g_autofree char *found = unit_instance(cgroup);

	CU_ASSERT_EQUAL(g_strcmp0(found, wanted), 0);
}

static void cgroups(void)
{
	expect_instance("0::/octavo.slice/octavo-vgpu@" UUID ".service\n", UUID);
	expect_instance("4:memory:/x\n0::/octavo.slice/octavo-vgpu@probe-0000:01:00.0.service\n",
			"probe-0000:01:00.0");
	expect_instance("", NULL);
	expect_instance("0::/\n", NULL);
	expect_instance("0::/octavo.slice/octavo-vgpu@" UUID ".scope\n", NULL);
	/* not in the unit, but in a group that it made or in one that is named like it */
	expect_instance("0::/octavo.slice/octavo-vgpu@" UUID ".service/x\n", NULL);
	expect_instance("0::/user.slice/my-octavo-vgpu@" UUID ".service\n", NULL);
}

/* What systemd takes for a dynamic user, and no two of them alike. */
static void users(void)
{
	g_autofree char *one = unit_user(UUID), *again = unit_user(UUID);
	g_autofree char *other = unit_user("6f7ec1e2-3e7b-4a4e-9a62-0d5b5e8f3a11");

	CU_ASSERT_EQUAL(strlen(one), 31);
	CU_ASSERT_EQUAL(strspn(one, "abcdefghijklmnopqrstuvwxyz0123456789-"), 31);
	CU_ASSERT_STRING_EQUAL(one, again);
	CU_ASSERT_STRING_NOT_EQUAL(one, other);
}

static void limits(void)
{
	CU_ASSERT_EQUAL(worker_memory_limit(1ULL << 30), 3ULL << 30);
	CU_ASSERT_EQUAL(worker_tasks_limit(1), 256);
	CU_ASSERT_EQUAL(worker_tasks_limit(4), 1024);
}

/* One listens; a path that cannot be one is refused. */
static void listens(void)
{
	char *root = folder_new();
	g_autofree char *path = g_build_filename(root, "run", "worker", NULL), *name = g_strnfill(200, 'x');
	g_autoptr(GError) error = NULL;
	struct unit_socket *socket = unit_socket_new(path, NULL);
	struct stat status;

	CU_ASSERT_PTR_NOT_NULL(socket);
	CU_ASSERT_EQUAL(g_lstat(path, &status), 0);
	CU_ASSERT_EQUAL(status.st_mode & 0777, 0600);
	CU_ASSERT_PTR_NULL(unit_socket_new(path, &error));
	CU_ASSERT_TRUE(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_EXISTS));
	g_clear_error(&error);
	CU_ASSERT_EQUAL(g_lstat(path, &status), 0);
	unit_socket_free(socket);
	CU_ASSERT_NOT_EQUAL(g_lstat(path, &status), 0);
	CU_ASSERT_PTR_NULL(unit_socket_new(name, &error));
	g_assert_nonnull(error);
	CU_ASSERT_PTR_NOT_NULL(strstr(error->message, "cannot listen on xxx"));
	folder_free(root);
}

/* A process that is of no unit gets nothing, and the next one is heard. */
static void strangers(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *root = folder_new(), text[16];
	g_autofree char *path = g_build_filename(root, "worker", NULL);
	struct unit_socket *units = unit_socket_new(path, NULL);

	g_assert_nonnull(units);
	g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
	for (int i = 0; i < 2; i++) {
		int stranger = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		g_assert_cmpint(stranger, >=, 0);
		CU_ASSERT_EQUAL(connect(stranger, (struct sockaddr *)&address, sizeof(address)), 0);
		while (recv(stranger, text, sizeof(text), MSG_DONTWAIT) < 0 && errno == EAGAIN)
			g_main_context_iteration(NULL, TRUE);
		CU_ASSERT_EQUAL(recv(stranger, text, sizeof(text), 0), 0);
		close(stranger);
	}
	unit_socket_free(units);
	folder_free(root);
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
	  { "each instance has its own user", users },
	  { "limits follow the profile", limits },
	  { "one octavod listens, where root alone may connect", listens },
	  { "a process of no unit gets nothing", strangers },
	  { "without systemd nothing is kept", nothing_kept })
