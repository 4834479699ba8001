/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker.h - serves one VFIO open of a vGPU, from the session fd to its end
 *
 * One loop over the session's events and the queues' kicks. A guest's reset is answered by the
 * kernel module at once; here it means: forget everything, acknowledge, serve the next generation.
 */
#ifndef OCTAVO_GPU_WORKER_H
#define OCTAVO_GPU_WORKER_H

#include <stdbool.h>

enum worker_renderer {
	WORKER_2D = 0,
};

struct worker_options {
	int session_fd;
	int gate_fd;		/* -1: none */
	const char *uuid;	/* for log lines */
	enum worker_renderer renderer;
};

/* Until the VM has closed the device (0), or something is wrong that a new worker may not meet. */
int worker_run(const struct worker_options *options);

#endif
