// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/surface.h"

#include <linux/virtio_gpu.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Byte positions of the channels in a pixel in memory. */
struct format {
	uint32_t format;
	uint8_t blue, green, red, alpha;
};

static const struct format formats[] = {
	{ VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, 0, 1, 2, 3 },
	{ VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 0, 1, 2, 3 },
	{ VIRTIO_GPU_FORMAT_A8R8G8B8_UNORM, 3, 2, 1, 0 },
	{ VIRTIO_GPU_FORMAT_X8R8G8B8_UNORM, 3, 2, 1, 0 },
	{ VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM, 2, 1, 0, 3 },
	{ VIRTIO_GPU_FORMAT_X8B8G8R8_UNORM, 1, 2, 3, 0 },
	{ VIRTIO_GPU_FORMAT_A8B8G8R8_UNORM, 1, 2, 3, 0 },
	{ VIRTIO_GPU_FORMAT_R8G8B8X8_UNORM, 2, 1, 0, 3 },
};

static const struct format *format_find(uint32_t number)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (formats[i].format == number)
			return &formats[i];
	}
	return NULL;
}

bool format_is_known(uint32_t format)
{
	return format_find(format);
}

struct surface *surface_create(uint32_t format, uint32_t width, uint32_t height)
{
	struct surface *surface = malloc(sizeof(*surface));

	if (!surface)
		return NULL;
	*surface = (struct surface){
		.references = 1,
		.format = format,
		.width = width,
		.height = height,
		.stride = 4 * width,
		.bytes = 4 * (uint64_t)width * height,
	};
	/* pages that the guest never fills cost nothing */
	surface->pixels = mmap(NULL, surface->bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (surface->pixels == MAP_FAILED) {
		free(surface);
		return NULL;
	}
	return surface;
}

struct surface *surface_get(struct surface *surface)
{
	if (surface)
		__atomic_add_fetch(&surface->references, 1, __ATOMIC_RELAXED);
	return surface;
}

void surface_put(struct surface *surface)
{
	if (!surface || __atomic_sub_fetch(&surface->references, 1, __ATOMIC_ACQ_REL))
		return;
	munmap(surface->pixels, surface->bytes);
	free(surface);
}

void surface_convert(const struct surface *surface, const struct rect *area, uint32_t *to,
		     uint32_t stride)
{
	const struct format *format = format_find(surface->format);
	bool same = format->blue == 0;

	for (uint32_t y = 0; y < area->height; y++) {
		const uint8_t *from = surface->pixels +
			(uint64_t)(area->y + y) * surface->stride + (uint64_t)area->x * 4;
		uint32_t *line = (uint32_t *)((uint8_t *)to + (uint64_t)y * stride);

		if (same) {
			memcpy(line, from, (size_t)area->width * 4);
			continue;
		}
		for (uint32_t x = 0; x < area->width; x++, from += 4) {
			line[x] = (uint32_t)from[format->alpha] << 24 | (uint32_t)from[format->red] << 16 |
				  (uint32_t)from[format->green] << 8 | from[format->blue];
		}
	}
}

bool rect_within(const struct rect *inner, uint32_t width, uint32_t height)
{
	return inner->width <= width && inner->x <= width - inner->width &&
	       inner->height <= height && inner->y <= height - inner->height;
}

bool rect_intersect(const struct rect *a, const struct rect *b, struct rect *common)
{
	uint64_t left = a->x > b->x ? a->x : b->x, top = a->y > b->y ? a->y : b->y;
	uint64_t a_right = (uint64_t)a->x + a->width, b_right = (uint64_t)b->x + b->width;
	uint64_t a_bottom = (uint64_t)a->y + a->height, b_bottom = (uint64_t)b->y + b->height;
	uint64_t right = a_right < b_right ? a_right : b_right;
	uint64_t bottom = a_bottom < b_bottom ? a_bottom : b_bottom;

	if (left >= right || top >= bottom)
		return false;
	*common = (struct rect){
		.x = (uint32_t)left,
		.y = (uint32_t)top,
		.width = (uint32_t)(right - left),
		.height = (uint32_t)(bottom - top),
	};
	return true;
}
