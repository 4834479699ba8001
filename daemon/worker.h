/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker - one octavo-vgpu process
 *
 * A worker outlives octavod: it has a session of its own and needs nothing from octavod after its
 * start. So there are two ways to get one: start it, or adopt one that an earlier octavod started.
 * Both end in a pidfd, which never means another process.
 */
#ifndef OCTAVO_DAEMON_WORKER_H
#define OCTAVO_DAEMON_WORKER_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

struct worker;

/* Told once when the process has ended; @how is "exited with status 1" or the like. */
typedef void (*worker_ended_fn)(struct worker *worker, const char *how, void *data);

/* What a worker is started with. */
struct worker_setup {
	const char *program;		/* absolute path */
	const char *uuid;
	const char *gpu;		/* PCI address */
	const char *renderer;
	unsigned int busy_poll_us;
	/* what a probe found, each or NULL */
	const char *capsets;
	const char *render_node;
	const char *vulkan_device;
	const char *vulkan_ids;
};

/*
 * The session is the child's fd 3, the gate (-1: none) its fd 4; the caller closes its own copy of
 * the session afterwards.
 */
struct worker *worker_start(const struct worker_setup *setup, int session_fd, int gate_fd,
			    worker_ended_fn fn, void *data, GError **error);

/* @pid: from the module. NULL if there is no such process. */
struct worker *worker_adopt(pid_t pid, worker_ended_fn fn, void *data);

pid_t worker_pid(const struct worker *worker);
int worker_pidfd(const struct worker *worker);	/* the worker's own */
void worker_kill(struct worker *worker, int signal);

/*
 * The worker's session is over: it has @grace_ms to end, then it is killed. Frees @worker when the
 * process has ended; the worker_ended_fn is not called any more.
 */
void worker_retire(struct worker *worker, unsigned int grace_ms);

/* Forgets the process; it lives on. */
void worker_free(struct worker *worker);

/* The argument vector for @setup; g_strfreev() it. */
char **worker_arguments(const struct worker_setup *setup, bool gate);

#endif /* OCTAVO_DAEMON_WORKER_H */
