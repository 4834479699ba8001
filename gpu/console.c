// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int console_create(struct console *console, uint32_t *pixels, const struct console_ops *ops,
		   void *context)
{
	memset(console, 0, sizeof(*console));
	console->cursor.pixels = calloc((size_t)CURSOR_SIDE_MAX * CURSOR_SIDE_MAX, 4);
	if (!console->cursor.pixels)
		return -ENOMEM;
	console->pixels = pixels;
	console->ops = ops;
	console->context = context;
	pthread_mutex_init(&console->lock, NULL);
	return 0;
}

void console_destroy(struct console *console)
{
	surface_put(console->surface);
	free(console->cursor.pixels);
	pthread_mutex_destroy(&console->lock);
}

/* The cursor's rectangle as far as it lies in the plane. */
static bool console_cursor_area(const struct console *console, struct rect *area)
{
	int64_t left = console->cursor.x, top = console->cursor.y;
	int64_t right = left + console->cursor.width, bottom = top + console->cursor.height;

	if (!console->cursor.visible)
		return false;
	if (left < 0)
		left = 0;
	if (top < 0)
		top = 0;
	if (right > console->width)
		right = console->width;
	if (bottom > console->height)
		bottom = console->height;
	if (left >= right || top >= bottom)
		return false;
	*area = (struct rect){ (uint32_t)left, (uint32_t)top, (uint32_t)(right - left),
			       (uint32_t)(bottom - top) };
	return true;
}

static uint32_t blend(uint32_t below, uint32_t above)
{
	uint32_t rest = 255 - (above >> 24), result = 0;

	/* premultiplied; a sum that exceeds a byte comes from pixels that are not, and is cut */
	for (unsigned int shift = 0; shift < 24; shift += 8) {
		uint32_t channel = (above >> shift & 0xff) +
				   ((below >> shift & 0xff) * rest + 127) / 255;

		result |= (channel > 255 ? 255 : channel) << shift;
	}
	return result;
}

static void console_blend(struct console *console, const struct rect *area)
{
	struct rect cursor, common;

	if (!console_cursor_area(console, &cursor) || !rect_intersect(&cursor, area, &common))
		return;
	for (uint32_t y = common.y; y < common.y + common.height; y++) {
		const uint32_t *above = console->cursor.pixels +
			(size_t)((int64_t)y - console->cursor.y) * CURSOR_SIDE_MAX;
		uint32_t *line = console->pixels + (size_t)y * console->width;

		for (uint32_t x = common.x; x < common.x + common.width; x++)
			line[x] = blend(line[x], above[(int64_t)x - console->cursor.x]);
	}
}

/* Brings @area of the plane, in the plane's coordinates, up to date. */
static void console_compose(struct console *console, const struct rect *area)
{
	struct rect plane = { 0, 0, console->width, console->height }, part, from;

	if (!console->watched || !console->pixels || !rect_intersect(area, &plane, &part))
		return;
	if (console->surface) {
		from = part;
		from.x += console->view.x;
		from.y += console->view.y;
		surface_convert(console->surface, &from,
				console->pixels + (size_t)part.y * console->width + part.x,
				4 * console->width);
	} else {
		for (uint32_t y = part.y; y < part.y + part.height; y++)
			memset(console->pixels + (size_t)y * console->width + part.x, 0,
			       (size_t)part.width * 4);
	}
	console_blend(console, &part);
}

static void console_compose_all(struct console *console)
{
	console_compose(console, &(struct rect){ 0, 0, console->width, console->height });
}

static void console_drop_cursor(struct console *console)
{
	console->cursor.visible = false;
	console->cursor.width = 0;
	console->cursor.height = 0;
}

void console_reset(struct console *console)
{
	pthread_mutex_lock(&console->lock);
	surface_put(console->surface);
	console->surface = NULL;
	console->width = 0;
	console->height = 0;
	console_drop_cursor(console);
	pthread_mutex_unlock(&console->lock);
}

void console_watch(struct console *console, bool watched)
{
	pthread_mutex_lock(&console->lock);
	if (watched && !console->watched) {
		console->watched = true;
		console_compose_all(console);
	}
	console->watched = watched;
	pthread_mutex_unlock(&console->lock);
}

bool console_is_watched(struct console *console)
{
	bool watched;

	pthread_mutex_lock(&console->lock);
	watched = console->watched;
	pthread_mutex_unlock(&console->lock);
	return watched;
}

void console_show(struct console *console, struct surface *surface, const struct rect *view)
{
	uint32_t width, height;

	pthread_mutex_lock(&console->lock);
	width = console->width;
	height = console->height;
	surface_get(surface);
	surface_put(console->surface);
	console->surface = surface;
	if (surface) {
		console->view = *view;
		width = view->width < CONSOLE_WIDTH_MAX ? view->width : CONSOLE_WIDTH_MAX;
		height = view->height < CONSOLE_HEIGHT_MAX ? view->height : CONSOLE_HEIGHT_MAX;
	}
	if (width != console->width || height != console->height) {
		console->width = width;
		console->height = height;
		/* pixels first: whoever learns of the new size finds them */
		console_compose_all(console);
		console->ops->resize(console->context, width, height, 4 * width);
	} else {
		console_compose_all(console);
	}
	pthread_mutex_unlock(&console->lock);
}

void console_damage(struct console *console, const struct rect *area)
{
	struct rect part;

	pthread_mutex_lock(&console->lock);
	if (console->surface && rect_intersect(area, &console->view, &part)) {
		part.x -= console->view.x;
		part.y -= console->view.y;
		console_compose(console, &part);
	}
	pthread_mutex_unlock(&console->lock);
}

void console_cursor(struct console *console, const struct surface *surface)
{
	struct rect before, after;
	bool visible;

	pthread_mutex_lock(&console->lock);
	visible = console_cursor_area(console, &before);
	if (surface) {
		struct rect whole = { 0, 0, surface->width, surface->height };

		if (whole.width > CURSOR_SIDE_MAX)
			whole.width = CURSOR_SIDE_MAX;
		if (whole.height > CURSOR_SIDE_MAX)
			whole.height = CURSOR_SIDE_MAX;
		surface_convert(surface, &whole, console->cursor.pixels, 4 * CURSOR_SIDE_MAX);
		console->cursor.visible = true;
		console->cursor.width = whole.width;
		console->cursor.height = whole.height;
	} else {
		console_drop_cursor(console);
	}
	if (visible)
		console_compose(console, &before);
	if (console_cursor_area(console, &after))
		console_compose(console, &after);
	pthread_mutex_unlock(&console->lock);
}

void console_move(struct console *console, int32_t x, int32_t y)
{
	struct rect before, after;
	bool visible;

	pthread_mutex_lock(&console->lock);
	visible = console_cursor_area(console, &before);
	console->cursor.x = x;
	console->cursor.y = y;
	if (visible)
		console_compose(console, &before);
	if (console_cursor_area(console, &after))
		console_compose(console, &after);
	pthread_mutex_unlock(&console->lock);
}
