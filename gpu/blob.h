/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * blob.h - requests about blob resources (virtio 1.3, 5.7.6.8: RESOURCE_*_BLOB) and BAR2
 *
 * All on the renderer thread; each returns the answer.
 */
#ifndef OCTAVO_GPU_BLOB_H
#define OCTAVO_GPU_BLOB_H

#include "gpu/render.h"

uint32_t blob_create(struct renderer *renderer, struct command *command);
uint32_t blob_map(struct renderer *renderer, struct command *command);
uint32_t blob_unmap(struct renderer *renderer, struct command *command);

/* Maps a host blob into this process, once; -errno. */
int blob_open(struct resource *resource);

/* The module lost a range of the window and wants it again. */
void blob_window_lost(struct renderer *renderer, uint64_t offset, uint64_t length);

#endif
