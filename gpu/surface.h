/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * surface.h - pixels in host memory, and rectangles in them
 *
 * All formats of virtio-gpu's 2D part have four bytes a pixel. A surface is counted: the resource
 * that owns it, the scanout that shows it and the cursor that was made of it each hold a reference,
 * so a guest may destroy the resource at any moment.
 *
 * Threads: the count is atomic. Pixels have no lock: a guest that draws into what is being shown
 * sees what it drew, whole or in part, as on any display.
 */
#ifndef OCTAVO_GPU_SURFACE_H
#define OCTAVO_GPU_SURFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SURFACE_SIDE_MAX	16384	/* pixels */

struct rect {
	uint32_t x;
	uint32_t y;
	uint32_t width;
	uint32_t height;
};

struct surface {
	unsigned int references;
	uint32_t format;	/* enum virtio_gpu_formats */
	uint32_t width;		/* pixels */
	uint32_t height;
	uint32_t stride;	/* bytes */
	uint64_t bytes;
	uint8_t *pixels;	/* zero at first */
};

/* Whether @format is one of the eight 2D formats. */
bool format_is_known(uint32_t format);

/* NULL when memory is short. The caller has checked sizes and format. */
struct surface *surface_create(uint32_t format, uint32_t width, uint32_t height);
struct surface *surface_get(struct surface *surface);
void surface_put(struct surface *surface);

/*
 * Copies @area, which lies within the surface, to ARGB8888 at @to, whose lines are @stride bytes
 * apart. Alpha is the pixel's fourth byte also in formats without it: Linux draws its cursors, alpha
 * and all, into buffers that it announced as B8G8R8X8.
 */
void surface_convert(const struct surface *surface, const struct rect *area, uint32_t *to,
		     uint32_t stride);

/* Whether @inner lies within width x height; no sum overflows. */
bool rect_within(const struct rect *inner, uint32_t width, uint32_t height);
/* The common part, or false. */
bool rect_intersect(const struct rect *a, const struct rect *b, struct rect *common);

#endif
