// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/gpu.h"

#include <string.h>

void gpu_default_limits(struct resource_limits *limits, uint64_t vram_bytes)
{
	*limits = (struct resource_limits){
		.resources = 65536,
		/* the largest surface, or all there is */
		.resource_bytes = 4ULL * SURFACE_SIDE_MAX * SURFACE_SIDE_MAX,
		.total_bytes = vram_bytes,
		/* 1 GiB in single pages; 32 bytes of host memory an entry */
		.backing_entries = 1u << 18,
		.total_entries = 1u << 21,
	};
}

void gpu_create(struct gpu *gpu, struct guest *guest, struct console *console,
		const struct gpu_setup *setup)
{
	memset(gpu, 0, sizeof(*gpu));
	gpu->guest = guest;
	gpu->console = console;
	gpu->heads = setup->heads;
	gpu_set_mode(gpu, setup->width, setup->height);
	resource_table_create(&gpu->resources, &setup->limits);
}

void gpu_destroy(struct gpu *gpu)
{
	resource_table_destroy(&gpu->resources);
}

void gpu_reset(struct gpu *gpu)
{
	memset(gpu->scanouts, 0, sizeof(gpu->scanouts));
	console_reset(gpu->console);
	resource_table_clear(&gpu->resources);
}

void gpu_mode(const struct gpu *gpu, uint32_t *width, uint32_t *height)
{
	/* one load, so that the two belong together */
	uint64_t mode = __atomic_load_n(&gpu->mode, __ATOMIC_RELAXED);

	*width = (uint32_t)(mode >> 32);
	*height = (uint32_t)mode;
}

void gpu_set_mode(struct gpu *gpu, uint32_t width, uint32_t height)
{
	__atomic_store_n(&gpu->mode, (uint64_t)width << 32 | height, __ATOMIC_RELAXED);
}
