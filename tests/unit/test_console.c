// SPDX-License-Identifier: LGPL-2.1-or-later
#include <linux/virtio_gpu.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/console.h"
#include "tests/unit/suite.h"

#define RGB	0xffffffu

static struct console console;
static uint32_t *plane;
static uint32_t told_width, told_height;
static unsigned int told;

static void resize(void *context, uint32_t width, uint32_t height, uint32_t stride)
{
	(void)context;
	CU_ASSERT_EQUAL(stride, 4 * width);
	told_width = width;
	told_height = height;
	told++;
}

static void start(void)
{
	static const struct console_ops ops = { .resize = resize };

	plane = calloc((size_t)CONSOLE_WIDTH_MAX * CONSOLE_HEIGHT_MAX, 4);
	CU_ASSERT_EQUAL(console_create(&console, plane, &ops, NULL), 0);
	told = 0;
}

static void stop(void)
{
	console_destroy(&console);
	free(plane);
}

static struct surface *numbered(uint32_t width, uint32_t height)
{
	struct surface *surface = surface_create(VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, width, height);
	uint32_t *pixels = (uint32_t *)surface->pixels;

	for (uint32_t i = 0; i < width * height; i++)
		pixels[i] = i;
	return surface;
}

static uint32_t at(uint32_t x, uint32_t y)
{
	return plane[y * console.width + x] & RGB;
}

static void test_formats(void)
{
	/* the bytes of a pixel with red 1, green 2, blue 3, alpha 4 in each format */
	static const struct {
		uint32_t format;
		uint8_t bytes[4];
	} cases[] = {
		{ VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, { 3, 2, 1, 4 } },
		{ VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, { 3, 2, 1, 4 } },
		{ VIRTIO_GPU_FORMAT_A8R8G8B8_UNORM, { 4, 1, 2, 3 } },
		{ VIRTIO_GPU_FORMAT_X8R8G8B8_UNORM, { 4, 1, 2, 3 } },
		{ VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM, { 1, 2, 3, 4 } },
		{ VIRTIO_GPU_FORMAT_X8B8G8R8_UNORM, { 4, 3, 2, 1 } },
		{ VIRTIO_GPU_FORMAT_A8B8G8R8_UNORM, { 4, 3, 2, 1 } },
		{ VIRTIO_GPU_FORMAT_R8G8B8X8_UNORM, { 1, 2, 3, 4 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct surface *surface = surface_create(cases[i].format, 1, 1);
		struct rect all = { 0, 0, 1, 1 };
		uint32_t pixel;

		memcpy(surface->pixels, cases[i].bytes, 4);
		surface_convert(surface, &all, &pixel, 4);
		CU_ASSERT_EQUAL(pixel, 0x04010203);
		surface_put(surface);
	}
	CU_ASSERT_FALSE(format_is_known(0));
	CU_ASSERT_FALSE(format_is_known(5));
}

static void test_life(void)
{
	struct surface *surface = numbered(100, 50);
	struct rect view = { 10, 20, 80, 30 };

	start();
	console_watch(&console, true);
	/* a driver that begins by disabling its scanouts gets no plane by it */
	console_show(&console, NULL, NULL);
	CU_ASSERT_EQUAL(told, 0);
	console_show(&console, surface, &view);
	CU_ASSERT_EQUAL(told, 1);
	CU_ASSERT_EQUAL(told_width, 80);
	CU_ASSERT_EQUAL(told_height, 30);
	CU_ASSERT_EQUAL(at(0, 0), 20 * 100 + 10);
	CU_ASSERT_EQUAL(at(79, 29), 49 * 100 + 89);
	console_show(&console, NULL, NULL);
	CU_ASSERT_EQUAL(told, 1);
	CU_ASSERT_EQUAL(at(0, 0), 0);
	CU_ASSERT_EQUAL(at(79, 29), 0);
	console_reset(&console);
	CU_ASSERT_EQUAL(console.width, 0);
	surface_put(surface);
	stop();
}

static void test_damage(void)
{
	struct surface *surface = numbered(64, 64);
	uint32_t *pixels = (uint32_t *)surface->pixels;

	start();
	console_show(&console, surface, &(struct rect){ 0, 0, 64, 64 });
	CU_ASSERT_EQUAL(at(1, 1), 0);
	console_watch(&console, true);
	CU_ASSERT_EQUAL(at(1, 1), 65);
	for (uint32_t i = 0; i < 64 * 64; i++)
		pixels[i] = 0x1234;
	console_damage(&console, &(struct rect){ 8, 8, 4, 4 });
	CU_ASSERT_EQUAL(at(8, 8), 0x1234);
	CU_ASSERT_EQUAL(at(11, 11), 0x1234);
	CU_ASSERT_EQUAL(at(12, 11), 11 * 64 + 12);
	CU_ASSERT_EQUAL(at(7, 8), 8 * 64 + 7);
	console_watch(&console, false);
	console_damage(&console, &(struct rect){ 0, 0, 64, 64 });
	CU_ASSERT_EQUAL(at(0, 0), 0);
	console_watch(&console, true);
	CU_ASSERT_EQUAL(at(0, 0), 0x1234);
	surface_put(surface);
	stop();
}

static void test_large(void)
{
	struct surface *surface = surface_create(VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 8192, 4096);
	struct rect all = { 0, 0, 8192, 4096 };

	start();
	console_watch(&console, true);
	console_show(&console, surface, &all);
	CU_ASSERT_EQUAL(told_width, CONSOLE_WIDTH_MAX);
	CU_ASSERT_EQUAL(told_height, CONSOLE_HEIGHT_MAX);
	console_damage(&console, &all);
	surface_put(surface);
	stop();
}

static void test_cursor(void)
{
	struct surface *surface = numbered(64, 64);
	struct surface *cursor = surface_create(VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, 16, 16);
	uint32_t *pixels = (uint32_t *)cursor->pixels;

	start();
	console_watch(&console, true);
	console_show(&console, surface, &(struct rect){ 0, 0, 64, 64 });
	pixels[0] = 0xff123456;
	pixels[1] = 0x00000000;
	pixels[2] = 0x80000080;		/* half, premultiplied */
	console_cursor(&console, cursor);
	console_move(&console, 20, 10);
	CU_ASSERT_EQUAL(at(20, 10), 0x123456);
	CU_ASSERT_EQUAL(at(21, 10), 10 * 64 + 21);
	CU_ASSERT_EQUAL(at(22, 10), 0x80 + 0x100 + ((0x96u * 127 + 127) / 255) -
				    (0x100 - ((2u * 127 + 127) / 255 << 8)));
	/* gone from where it was; the picture is whole again */
	console_move(&console, 40, 40);
	CU_ASSERT_EQUAL(at(20, 10), 10 * 64 + 20);
	CU_ASSERT_EQUAL(at(40, 40), 0x123456);
	/* damage below it does not erase it */
	console_damage(&console, &(struct rect){ 0, 0, 64, 64 });
	CU_ASSERT_EQUAL(at(40, 40), 0x123456);
	/* half outside, and far outside */
	pixels[8 * 16 + 8] = 0xff654321;
	console_cursor(&console, cursor);
	console_move(&console, -8, -8);
	CU_ASSERT_EQUAL(at(0, 0), 0x654321);
	console_move(&console, INT32_MIN, INT32_MAX);
	console_move(&console, INT32_MAX, INT32_MIN);
	console_move(&console, 63, 63);
	CU_ASSERT_EQUAL(at(63, 63), 0x123456);
	console_cursor(&console, NULL);
	for (uint32_t i = 0; i < 64 * 64; i++)
		CU_ASSERT_EQUAL(plane[i] & RGB, i);
	surface_put(cursor);
	surface_put(surface);
	stop();
}

SUITE_RUN("console",
	  { "every format is shown in its right colours", test_formats },
	  { "no plane before the first scanout, black after the last", test_life },
	  { "only damage is copied, and only while somebody looks", test_damage },
	  { "a scanout larger than the region is cut", test_large },
	  { "the cursor lies above the picture and leaves no trace", test_cursor })
