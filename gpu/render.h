/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * render.h - requests of the control queue's 3D part (virtio 1.3, 5.7.6.8: contexts, 3D resources,
 * blobs), and of its 2D part where they touch what the 3D part made
 *
 * All of it runs on the renderer thread.
 */
#ifndef OCTAVO_GPU_RENDER_H
#define OCTAVO_GPU_RENDER_H

#include "gpu/renderer.h"

/* Runs the request and sets its answer; true if it made work for the GPU that a fence follows. */
bool render_run(struct renderer *renderer, struct command *command);

/* Reads @area (NULL: all) of head 0's resource into what the console shows. */
void render_refresh(struct renderer *renderer, const struct rect *area);
void render_cursor(struct renderer *renderer, uint32_t resource_id, uint32_t hot_x, uint32_t hot_y);
void render_window_lost(struct renderer *renderer, uint64_t offset, uint64_t length);

#endif
