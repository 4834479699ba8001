// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kms WIDTH HEIGHT: shows a picture whose pixel at x, y is 0x10000 * (x & 255) + 0x100 * (y & 255)
 * + 0x40 on the first connected head, and obeys lines on standard input, each answered by "ok":
 *   cursor X Y HOTX HOTY   a cursor of 64x64, opaque 0xff00ff but for its left half, which is
 *                          half transparent white (premultiplied 0x80808080), hot spot at HOTX HOTY
 *   move X Y               of the hot spot
 *   hide
 */
#include <drm.h>
#include <drm_mode.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static int fd;
static uint32_t crtc;

static void try(unsigned long request, void *argument, const char *what)
{
	if (ioctl(fd, request, argument)) {
		perror(what);
		exit(1);
	}
}

static uint32_t *buffer(uint32_t width, uint32_t height, struct drm_mode_create_dumb *dumb)
{
	struct drm_mode_map_dumb map = { 0 };
	void *at;

	*dumb = (struct drm_mode_create_dumb){ .width = width, .height = height, .bpp = 32 };
	try(DRM_IOCTL_MODE_CREATE_DUMB, dumb, "create dumb");
	map.handle = dumb->handle;
	try(DRM_IOCTL_MODE_MAP_DUMB, &map, "map dumb");
	at = mmap(NULL, dumb->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)map.offset);
	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return at;
}

static void show(uint32_t width, uint32_t height)
{
	uint32_t crtcs[8], connectors[8], encoders[8], connector = 0;
	struct drm_mode_card_res resources = {
		.crtc_id_ptr = (uintptr_t)crtcs, .count_crtcs = 8,
		.connector_id_ptr = (uintptr_t)connectors, .count_connectors = 8,
		.encoder_id_ptr = (uintptr_t)encoders, .count_encoders = 8,
	};
	static struct drm_mode_modeinfo modes[256];
	struct drm_mode_modeinfo *mode = NULL;
	struct drm_mode_create_dumb dumb;
	struct drm_mode_fb_cmd frame = { .width = width, .height = height, .bpp = 32, .depth = 24 };
	struct drm_mode_crtc set = { .count_connectors = 1, .mode_valid = 1 };
	uint32_t *pixels;

	try(DRM_IOCTL_MODE_GETRESOURCES, &resources, "get resources");
	for (uint32_t i = 0; i < resources.count_connectors && !mode; i++) {
		struct drm_mode_get_connector get = {
			.connector_id = connectors[i], .modes_ptr = (uintptr_t)modes,
			.count_modes = 256,
		};

		try(DRM_IOCTL_MODE_GETCONNECTOR, &get, "get connector");
		for (uint32_t m = 0; get.connection == 1 && m < get.count_modes && !mode; m++) {
			if (modes[m].hdisplay == width && modes[m].vdisplay == height)
				mode = &modes[m];
		}
		connector = connectors[i];
	}
	if (!mode) {
		fprintf(stderr, "no connected head has the mode %ux%u\n", width, height);
		exit(1);
	}
	crtc = crtcs[0];
	pixels = buffer(width, height, &dumb);
	for (uint32_t y = 0; y < height; y++) {
		for (uint32_t x = 0; x < width; x++)
			pixels[y * dumb.pitch / 4 + x] = (x & 255) << 16 | (y & 255) << 8 | 0x40;
	}
	frame.pitch = dumb.pitch;
	frame.handle = dumb.handle;
	try(DRM_IOCTL_MODE_ADDFB, &frame, "add fb");
	set.crtc_id = crtc;
	set.fb_id = frame.fb_id;
	set.mode = *mode;
	set.set_connectors_ptr = (uintptr_t)&connector;
	try(DRM_IOCTL_MODE_SETCRTC, &set, "set crtc");
}

static void cursor(int x, int y, int hot_x, int hot_y)
{
	struct drm_mode_create_dumb dumb;
	struct drm_mode_cursor2 set = {
		.flags = DRM_MODE_CURSOR_BO | DRM_MODE_CURSOR_MOVE, .crtc_id = crtc,
		.x = x - hot_x, .y = y - hot_y, .width = 64, .height = 64, .hot_x = hot_x,
		.hot_y = hot_y,
	};
	uint32_t *pixels = buffer(64, 64, &dumb);

	for (uint32_t i = 0; i < 64 * 64; i++)
		pixels[i / 64 * (dumb.pitch / 4) + i % 64] = i % 64 < 32 ? 0x80808080 : 0xffff00ff;
	set.handle = dumb.handle;
	try(DRM_IOCTL_MODE_CURSOR2, &set, "cursor");
}

int main(int argc, char **argv)
{
	char line[128];
	int x, y, hot_x = 0, hot_y = 0;

	if (argc != 3)
		return 2;
	fd = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror("/dev/dri/card0");
		return 1;
	}
	show((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]));
	puts("ok");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct drm_mode_cursor move = { .flags = DRM_MODE_CURSOR_MOVE, .crtc_id = crtc };
		struct drm_mode_cursor hide = { .flags = DRM_MODE_CURSOR_BO, .crtc_id = crtc };

		if (sscanf(line, "cursor %d %d %d %d", &x, &y, &hot_x, &hot_y) == 4) {
			cursor(x, y, hot_x, hot_y);
		} else if (sscanf(line, "move %d %d", &x, &y) == 2) {
			move.x = x - hot_x;
			move.y = y - hot_y;
			try(DRM_IOCTL_MODE_CURSOR, &move, "move");
		} else if (!strncmp(line, "hide", 4)) {
			try(DRM_IOCTL_MODE_CURSOR, &hide, "hide");
		} else {
			puts("what?");
		}
		puts("ok");
		fflush(stdout);
	}
	return 0;
}
