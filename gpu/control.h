/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * control.h - requests of the control queue (virtio 1.3, 5.7.6.7 and 5.7.6.8)
 *
 * Answers, where the specification leaves a choice: INVALID_PARAMETER for a request that is too
 * short or a number out of range, INVALID_RESOURCE_ID for one that does not exist, or exists and
 * should not, INVALID_SCANOUT_ID, OUT_OF_MEMORY for every limit, UNSPEC for an unknown request and
 * for a resource without backing, or with, where the other is needed.
 */
#ifndef OCTAVO_GPU_CONTROL_H
#define OCTAVO_GPU_CONTROL_H

#include "gpu/command.h"
#include "gpu/gpu.h"

/* Runs the request and sets its answer. The caller finishes it. */
void control_run(struct gpu *gpu, struct command *command);

#endif
