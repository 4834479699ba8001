// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/folder.h"
#include "tests/unit/suite.h"

struct watch {
	GMainLoop *loop;
	char *how;
};

static void ended(struct worker *worker, const char *how, void *data)
{
	struct watch *watch = data;

	watch->how = g_strdup(how);
	worker_free(worker);
	g_main_loop_quit(watch->loop);
}

static void started(struct worker *worker, void *data)
{
	(void)data;
	CU_ASSERT_TRUE(worker_pid(worker) > 0);
}

static const struct worker_ops ops = { .started = started, .ended = ended };

/* Runs @script as a worker with @session_fd and returns how it ended. */
static char *run(const char *script, int session_fd, int signal)
{
	char *root = folder_new();
	g_autofree char *program = g_build_filename(root, "worker", NULL);
	struct worker_setup setup = {
		.program = program, .uuid = "u", .gpu = "g", .renderer = "2d",
	};
	struct watch watch = { .loop = g_main_loop_new(NULL, FALSE) };
	g_autoptr(GError) error = NULL;
	struct worker *worker;

	folder_write(root, "worker", script);
	CU_ASSERT_EQUAL(g_chmod(program, 0755), 0);
	worker = worker_start(&setup, session_fd, -1, &ops, &watch, &error);
	if (worker) {
		if (signal)
			worker_kill(worker, signal);
		g_main_loop_run(watch.loop);
	} else {
		watch.how = g_strdup(error->message);
	}
	g_main_loop_unref(watch.loop);
	folder_free(root);
	return watch.how;
}

static void arguments(void)
{
	const struct worker_setup setup = {
		.program = "/w", .uuid = "u", .gpu = "g", .renderer = "auto", .vulkan_device = "0123",
		.capsets = "virgl,virgl2", .busy_poll_us = 200,
	};
	g_auto(GStrv) argv = worker_arguments(&setup, true);
	g_autofree char *line = g_strjoinv(" ", argv);

	CU_ASSERT_STRING_EQUAL(line, "--uuid u --gpu g --renderer auto --busy-poll-us 200 --capsets virgl,virgl2 --vulkan-device 0123 "
				     "--gate-fd 4");
}

static void session_is_fd_3(void)
{
	int pipes[2];
	char text[64] = "";
	g_autofree char *how = NULL;

	CU_ASSERT_EQUAL_FATAL(pipe2(pipes, O_CLOEXEC), 0);
	how = run("#!/bin/sh\nset -- $(ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat) $$\n"
		  "test \"$1\" = \"$2\" || exit 9\necho hello >&3\n",
		  pipes[1], 0);
	CU_ASSERT_STRING_EQUAL(how, "exited with status 0");
	close(pipes[1]);
	CU_ASSERT_EQUAL(read(pipes[0], text, sizeof(text) - 1), 6);
	CU_ASSERT_STRING_EQUAL(text, "hello\n");
	/* nobody else has the write end, so the session is closed with the worker */
	CU_ASSERT_EQUAL(read(pipes[0], text, sizeof(text)), 0);
	close(pipes[0]);
}

static void how_it_ended(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char *how = run("#!/bin/sh\nexit 7\n", null, 0);

	CU_ASSERT_STRING_EQUAL(how, "exited with status 7");
	g_free(how);
	how = run("#!/bin/sh\nexec sleep 60\n", null, SIGKILL);
	CU_ASSERT_PTR_NOT_NULL(strstr(how, "was killed by signal 9"));
	g_free(how);
	how = run("#!/no/such/shell\n", null, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(how, "No such file"));
	g_free(how);
	close(null);
}

static void adopted(void)
{
	struct watch watch = { .loop = g_main_loop_new(NULL, FALSE) };
	char *argv[] = { (char *)"sleep", (char *)"60", NULL };
	struct worker *worker;
	GPid pid;

	CU_ASSERT_TRUE_FATAL(g_spawn_async(NULL, argv, NULL,
					   G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
					   &pid, NULL));
	worker = worker_adopt(pid, &ops, &watch);
	CU_ASSERT_PTR_NOT_NULL_FATAL(worker);
	CU_ASSERT_EQUAL(worker_pid(worker), pid);
	worker_kill(worker, SIGKILL);
	g_main_loop_run(watch.loop);
	CU_ASSERT_STRING_EQUAL(watch.how, "ended");
	g_free(watch.how);
	g_main_loop_unref(watch.loop);
	CU_ASSERT_PTR_NULL(worker_adopt(1 << 30, &ops, &watch));
}

SUITE_RUN("worker",
	  { "the command line says which vGPU it is", arguments },
	  { "the session is fd 3 of a process with its own session", session_is_fd_3 },
	  { "the way it ended is told", how_it_ended },
	  { "a running process is adopted by its pid", adopted })
