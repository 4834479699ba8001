/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker.h - serves one VFIO open of a vGPU, from the session fd to its end
 *
 * One loop over the session's events and the queues' kicks. A guest's reset is answered by the
 * kernel module at once; here it means: forget everything, acknowledge, serve the next generation.
 * Where the renderer was in use the worker forgets by replacing itself with a fresh copy.
 */
#ifndef OCTAVO_GPU_WORKER_H
#define OCTAVO_GPU_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/renderer.h"

struct worker_options {
	int session_fd;
	int gate_fd;		/* -1: none */
	const char *uuid;	/* for log lines */
	uint64_t spin_ns;	/* longest look at empty queues before waiting for a kick, see spin.h */
	struct renderer_options renderer;	/* capsets 0: 2D only */
	char *const *arguments;	/* of a copy that takes over, NULL at the end */
	const char *capsets_variable;	/* of the environment: tells it the descriptor of capsets */
};

/* Until the VM has closed the device (0), or something is wrong that a new worker may not meet. */
int worker_run(const struct worker_options *options);

#endif
