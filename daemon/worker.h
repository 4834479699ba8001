/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker - one octavo-vgpu process
 *
 * A worker outlives octavod: it needs nothing from octavod after its start. So there are two ways to
 * get one: start it, or adopt one that an earlier octavod started. Both end in a pidfd, which never
 * means another process.
 *
 * It is started as octavo-vgpu@UUID.service with that unit's sandbox (unit.h), or as octavod's own
 * child where there is no systemd.
 */
#ifndef OCTAVO_DAEMON_WORKER_H
#define OCTAVO_DAEMON_WORKER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct unit_socket;
struct worker;

struct worker_ops {
	/* The process is there and has its session: worker_pid() is it. Not for an adopted one. */
	void (*started)(struct worker *worker, void *data);
	/* Told once when it has ended, or cannot be started; @how is "exited with status 1" or the like. */
	void (*ended)(struct worker *worker, const char *how, void *data);
};

/* What a worker is started with. */
struct worker_setup {
	struct unit_socket *units;	/* NULL: octavod's own child */
	const char *program;		/* of a child: absolute path */
	const char *uuid;
	const char *gpu;		/* PCI address */
	const char *renderer;
	unsigned int busy_poll_us;
	/* what a probe found, each or NULL */
	const char *capsets;
	const char *render_node;
	const char *vulkan_device;
	const char *vulkan_ids;
	/* of the unit, which is to hold a tenant that has taken over its worker */
	unsigned int eighths;
	uint64_t vram_bytes;
	const char *const *devices;	/* nodes it may open, NULL at the end */
};

/*
 * The session is the worker's fd 3, the gate (-1: none) its fd 4; the caller closes its own copy of
 * the session afterwards. A worker that becomes a unit is started later, from the main loop; until
 * then or its failure the session stays open.
 */
struct worker *worker_start(const struct worker_setup *setup, int session_fd, int gate_fd,
			    const struct worker_ops *ops, void *data, GError **error);

/* @pid: from the module. NULL if there is no such process. */
struct worker *worker_adopt(pid_t pid, const struct worker_ops *ops, void *data);

pid_t worker_pid(const struct worker *worker);	/* 0: not yet started */
int worker_pidfd(const struct worker *worker);	/* the worker's own; -1: not yet started */
void worker_kill(struct worker *worker, int signal);

/*
 * The worker's session is over: it has @grace_ms to end, then it is killed. Frees @worker when the
 * process has ended; the worker_ops are not called any more.
 */
void worker_retire(struct worker *worker, unsigned int grace_ms);

/* Forgets the process; it lives on. */
void worker_free(struct worker *worker);

/* The argument vector for @setup, without the program; g_strfreev() it. */
char **worker_arguments(const struct worker_setup *setup, bool gate);

/*
 * What a unit of that profile may use. Memory: what the guest makes on the GPU may lie in host
 * memory, once as Vulkan's and once as the device's own resources, and a driver's compiler takes
 * some hundred MiB. Tasks: a render process per guest context with the threads of its driver.
 */
uint64_t worker_memory_limit(uint64_t vram_bytes);
unsigned int worker_tasks_limit(unsigned int eighths);

#endif /* OCTAVO_DAEMON_WORKER_H */
