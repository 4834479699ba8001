/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gpu.h - the virtio-gpu device (virtio 1.3, 5.7) between its queues and its screen
 *
 * What a guest has made here: resources and scanouts. Requests of the control queue run one after
 * the other on one thread, those of the cursor queue on another or the same (control.h, cursor.h).
 */
#ifndef OCTAVO_GPU_GPU_H
#define OCTAVO_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/console.h"
#include "gpu/resource.h"
#include "vfio/guest.h"

#define GPU_HEADS_MAX	4

/* A head's picture; scanout 0 is also the console's. */
struct scanout {
	uint32_t resource_id;	/* 0: disabled */
	struct rect view;
};

/* What the cursor's thread hands to the renderer; NULL where there is none. */
struct gpu_cursor_3d {
	void (*show)(void *context, uint32_t resource_id);
	void *context;
};

struct gpu {
	struct guest *guest;
	struct console *console;
	unsigned int heads;
	uint64_t mode;		/* preferred, of every head: width << 32 | height; gpu_mode() */
	struct resource_table resources;
	struct scanout scanouts[GPU_HEADS_MAX];
	const struct gpu_cursor_3d *cursor_3d;
};

struct gpu_setup {
	unsigned int heads;
	uint32_t width;		/* preferred mode, pixels */
	uint32_t height;
	struct resource_limits limits;
};

/* Limits that suit a vGPU whose share of memory is @vram_bytes. */
void gpu_default_limits(struct resource_limits *limits, uint64_t vram_bytes);

void gpu_create(struct gpu *gpu, struct guest *guest, struct console *console,
		const struct gpu_setup *setup);
void gpu_destroy(struct gpu *gpu);

/* As after power-on. Nothing may be running in it. */
void gpu_reset(struct gpu *gpu);

/* From any thread. */
void gpu_mode(const struct gpu *gpu, uint32_t *width, uint32_t *height);
void gpu_set_mode(struct gpu *gpu, uint32_t width, uint32_t height);

#endif
