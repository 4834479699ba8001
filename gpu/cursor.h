/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cursor.h - requests of the cursor queue (virtio 1.3, 5.7.6.10) */
#ifndef OCTAVO_GPU_CURSOR_H
#define OCTAVO_GPU_CURSOR_H

#include "gpu/command.h"
#include "gpu/gpu.h"

/* Runs the request and sets its answer. Never waits for the control queue's thread. */
void cursor_run(struct gpu *gpu, struct command *command);

#endif
