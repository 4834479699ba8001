/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * console.h - what the host sees of head 0
 *
 *   surface of the scanout --view--> plane (XRGB8888 in the console region) <--blended-- cursor
 *
 * The plane has the size of the scanout's view, cut to what the region holds. Nothing is copied
 * unless somebody looks (console_watch()); when that begins everything is. Then only damage is.
 * Before the first scanout after a reset there is no plane; a scanout that is taken away leaves a
 * black one of its size.
 *
 * Threads: every function may be called from any thread; a lock inside orders them.
 */
#ifndef OCTAVO_GPU_CONSOLE_H
#define OCTAVO_GPU_CONSOLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/surface.h"

#define CONSOLE_WIDTH_MAX	3840	/* pixels */
#define CONSOLE_HEIGHT_MAX	2160
#define CURSOR_SIDE_MAX		256	/* pixels; larger ones are cut */

struct console_ops {
	/* The plane has another size now; 0 x 0 for none. */
	void (*resize)(void *context, uint32_t width, uint32_t height, uint32_t stride);
};

struct console {
	pthread_mutex_t lock;
	const struct console_ops *ops;
	void *context;
	uint32_t *pixels;		/* the region, or NULL where there is none */
	bool watched;
	uint32_t width;			/* of the plane; 0 for none */
	uint32_t height;
	struct surface *surface;	/* a reference, NULL for black */
	struct rect view;		/* the part of @surface that is shown */
	struct {
		bool visible;
		int32_t x, y;		/* of its upper left corner, in the plane */
		uint32_t width, height;
		uint32_t *pixels;	/* premultiplied ARGB8888, CURSOR_SIDE_MAX a line */
	} cursor;
};

/* 0 or -ENOMEM. @pixels stays the caller's. */
int console_create(struct console *console, uint32_t *pixels, const struct console_ops *ops,
		   void *context);
void console_destroy(struct console *console);

/* No plane, no cursor. The owner of the region has cleared it. */
void console_reset(struct console *console);
void console_watch(struct console *console, bool watched);
bool console_is_watched(struct console *console);

/* Shows @view of @surface, which takes a reference of its own; NULL for black of the same size. */
void console_show(struct console *console, struct surface *surface, const struct rect *view);
/* @area of what is shown, in coordinates of the surface, has new pixels. */
void console_damage(struct console *console, const struct rect *area);

/* @surface is copied; NULL hides the cursor. */
void console_cursor(struct console *console, const struct surface *surface);
void console_move(struct console *console, int32_t x, int32_t y);

#endif
