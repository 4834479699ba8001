// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/worker.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/unit.h"

#define WORKER_SESSION_FD	3
#define WORKER_GATE_FD		4	/* share.h says it too */

#define WORKER_MEMORY_BYTES	(1ULL << 30)	/* beside the profile's share, twice */
#define WORKER_TASKS		256u		/* per eighth */

struct worker {
	struct unit *unit;	/* being started, or NULL */
	pid_t pid;
	int pidfd;
	bool child;		/* ours to reap */
	guint source;
	guint retire_timer;
	const struct worker_ops *ops;
	void *data;
};

static int worker_open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static char *worker_how(struct worker *worker)
{
	siginfo_t info = { 0 };

	if (!worker->child)
		return g_strdup("ended");
	if (waitid(P_PIDFD, (id_t)worker->pidfd, &info, WEXITED | WNOHANG) < 0 || !info.si_pid)
		return g_strdup_printf("ended (%s)", g_strerror(errno));
	if (info.si_code == CLD_EXITED)
		return g_strdup_printf("exited with status %d", info.si_status);
	return g_strdup_printf("was killed by signal %d (%s)", info.si_status,
			       g_strsignal(info.si_status));
}

static gboolean worker_ended(int fd, GIOCondition condition, void *data)
{
	struct worker *worker = data;
	g_autofree char *how = worker_how(worker);

	(void)fd;
	(void)condition;
	worker->source = 0;
	worker->child = false;
	worker->ops->ended(worker, how, worker->data);
	return G_SOURCE_REMOVE;
}

static void worker_take(struct worker *worker, pid_t pid, int pidfd)
{
	worker->pid = pid;
	worker->pidfd = pidfd;
	worker->source = g_unix_fd_add(pidfd, G_IO_IN, worker_ended, worker);
}

static struct worker *worker_new(const struct worker_ops *ops, void *data)
{
	struct worker *worker = g_new0(struct worker, 1);

	worker->pidfd = -1;
	worker->ops = ops;
	worker->data = data;
	return worker;
}

uint64_t worker_memory_limit(uint64_t vram_bytes)
{
	return 2 * vram_bytes + WORKER_MEMORY_BYTES;
}

unsigned int worker_tasks_limit(unsigned int eighths)
{
	return eighths * WORKER_TASKS;
}

char **worker_arguments(const struct worker_setup *setup, bool gate)
{
	const char *const optional[][2] = {
		{ "--capsets", setup->capsets },
		{ "--render-node", setup->render_node },
		{ "--vulkan-device", setup->vulkan_device },
		{ "--vulkan-ids", setup->vulkan_ids },
		{ "--gate-fd", gate ? G_STRINGIFY(WORKER_GATE_FD) : NULL },
	};
	g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
	g_autofree char *busy_poll = g_strdup_printf("%u", setup->busy_poll_us);

	g_strv_builder_add_many(builder, "--uuid", setup->uuid, "--gpu", setup->gpu, "--renderer",
				setup->renderer, "--busy-poll-us", busy_poll, NULL);
	for (unsigned int i = 0; i < G_N_ELEMENTS(optional); i++)
		if (optional[i][1])
			g_strv_builder_add_many(builder, optional[i][0], optional[i][1], NULL);
	return g_strv_builder_end(builder);
}

/* Between fork and exec: a session of its own, so that no signal for octavod's group reaches it. */
static void worker_child_setup(void *data)
{
	(void)data;
	setsid();
}

static struct worker *worker_fork(const struct worker_setup *setup, int session_fd, int gate_fd,
				  const struct worker_ops *ops, void *data, GError **error)
{
	g_auto(GStrv) arguments = worker_arguments(setup, gate_fd >= 0);
	g_auto(GStrv) environment = g_get_environ();
	g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
	g_auto(GStrv) argv = NULL;
	const int sources[] = { session_fd, gate_fd };
	const int targets[] = { WORKER_SESSION_FD, WORKER_GATE_FD };
	struct worker *worker;
	int pidfd;
	GPid pid;

	g_strv_builder_add(builder, setup->program);
	g_strv_builder_addv(builder, (const char **)arguments);
	argv = g_strv_builder_end(builder);
	/* They belong to octavod: a worker that answered for it would confuse systemd */
	environment = g_environ_unsetenv(environment, "NOTIFY_SOCKET");
	environment = g_environ_unsetenv(environment, "WATCHDOG_USEC");
	environment = g_environ_unsetenv(environment, "WATCHDOG_PID");

	if (!g_spawn_async_with_pipes_and_fds("/", (const char *const *)argv,
					      (const char *const *)environment,
					      G_SPAWN_DO_NOT_REAP_CHILD, worker_child_setup, NULL,
					      -1, STDERR_FILENO, STDERR_FILENO, sources, targets,
					      gate_fd >= 0 ? 2 : 1, &pid, NULL, NULL, NULL, error))
		return NULL;
	pidfd = worker_open_pidfd(pid);
	if (pidfd < 0) {
		g_set_error(error, G_SPAWN_ERROR, G_SPAWN_ERROR_FAILED, "pidfd_open: %s",
			    g_strerror(errno));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return NULL;
	}
	worker = worker_new(ops, data);
	worker->child = true;
	worker_take(worker, pid, pidfd);
	worker->ops->started(worker, data);
	return worker;
}

static void worker_unit_started(pid_t pid, int pidfd, const GError *error, void *data)
{
	struct worker *worker = data;

	g_clear_pointer(&worker->unit, unit_free);
	if (error) {
		worker->ops->ended(worker, error->message, worker->data);
		return;
	}
	worker_take(worker, pid, pidfd);
	worker->ops->started(worker, worker->data);
}

struct worker *worker_start(const struct worker_setup *setup, int session_fd, int gate_fd,
			    const struct worker_ops *ops, void *data, GError **error)
{
	g_auto(GStrv) arguments = NULL;
	struct unit_setup unit;
	struct worker *worker;

	if (!setup->units)
		return worker_fork(setup, session_fd, gate_fd, ops, data, error);
	arguments = worker_arguments(setup, gate_fd >= 0);
	unit = (struct unit_setup){
		.instance = setup->uuid,
		.arguments = (const char *const *)arguments,
		.fds = { session_fd, gate_fd },
		.fds_count = gate_fd >= 0 ? 2 : 1,
		.memory_bytes = worker_memory_limit(setup->vram_bytes),
		.tasks = worker_tasks_limit(setup->eighths),
		.devices = setup->devices,
	};
	worker = worker_new(ops, data);
	worker->unit = unit_start(setup->units, &unit, worker_unit_started, worker, error);
	if (!worker->unit)
		g_clear_pointer(&worker, worker_free);
	return worker;
}

struct worker *worker_adopt(pid_t pid, const struct worker_ops *ops, void *data)
{
	int pidfd = worker_open_pidfd(pid);
	struct worker *worker;

	if (pidfd < 0)
		return NULL;
	worker = worker_new(ops, data);
	worker_take(worker, pid, pidfd);
	return worker;
}

pid_t worker_pid(const struct worker *worker)
{
	return worker->pid;
}

int worker_pidfd(const struct worker *worker)
{
	return worker->pidfd;
}

void worker_kill(struct worker *worker, int signal)
{
	if (worker->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, worker->pidfd, signal, NULL, 0);
}

static void worker_retired(struct worker *worker, const char *how, void *data)
{
	(void)data;
	g_message("worker %d %s", (int)worker->pid, how);
	worker_free(worker);
}

static const struct worker_ops worker_retired_ops = { .ended = worker_retired };

static gboolean worker_overdue(void *data)
{
	struct worker *worker = data;

	g_warning("worker %d did not end with its session: killing it", (int)worker->pid);
	worker->retire_timer = 0;
	worker_kill(worker, SIGKILL);
	return G_SOURCE_REMOVE;
}

void worker_retire(struct worker *worker, unsigned int grace_ms)
{
	if (worker->unit) {
		worker_free(worker);
		return;
	}
	worker->ops = &worker_retired_ops;
	worker->retire_timer = g_timeout_add(grace_ms, worker_overdue, worker);
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	if (worker->retire_timer)
		g_source_remove(worker->retire_timer);
	if (worker->source)
		g_source_remove(worker->source);
	unit_free(worker->unit);
	if (worker->pidfd >= 0)
		close(worker->pidfd);
	g_free(worker);
}
