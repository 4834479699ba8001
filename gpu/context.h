/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * context.h - requests about the guest's 3D contexts (virtio 1.3, 5.7.6.8: CTX_*, SUBMIT_3D)
 *
 * A virgl context lives in this process, a Venus context is a process of its own. All on the
 * renderer thread; each returns the answer.
 */
#ifndef OCTAVO_GPU_CONTEXT_H
#define OCTAVO_GPU_CONTEXT_H

#include "gpu/render.h"

uint32_t context_create(struct renderer *renderer, struct command *command);
uint32_t context_destroy(struct renderer *renderer, struct command *command);
uint32_t context_resource(struct renderer *renderer, struct command *command);
uint32_t context_submit(struct renderer *renderer, struct command *command);

#endif
