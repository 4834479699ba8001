/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * picture.h - what a guest shows of the renderer's resources
 *
 * The console cannot look into the GPU's memory, so head 0 has a shadow: a surface into which a
 * flush reads back what changed, when somebody looks. All on the renderer thread; requests return
 * their answer.
 */
#ifndef OCTAVO_GPU_PICTURE_H
#define OCTAVO_GPU_PICTURE_H

#include "gpu/render.h"

uint32_t picture_set_scanout(struct renderer *renderer, struct command *command);
uint32_t picture_set_scanout_blob(struct renderer *renderer, struct command *command);
uint32_t picture_flush(struct renderer *renderer, struct command *command);

/* Reads @area (NULL: all) of head 0's resource into what the console shows. */
void picture_refresh(struct renderer *renderer, const struct rect *area);
void picture_cursor(struct renderer *renderer, uint32_t resource_id);
/* Head 0 shows nothing of the renderer's any more. */
void picture_drop(struct renderer *renderer);

#endif
