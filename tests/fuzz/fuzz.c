// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void fuzz_resize(void *context, uint32_t width, uint32_t height, uint32_t stride)
{
	(void)context;
	if (width > CONSOLE_WIDTH_MAX || height > CONSOLE_HEIGHT_MAX || stride != 4 * width)
		abort();
}

struct fuzz_device *fuzz_device(void)
{
	static const struct console_ops ops = { .resize = fuzz_resize };
	static struct fuzz_device device;
	static uint32_t *plane;
	struct gpu_setup setup = { .heads = 2, .width = 1280, .height = 800 };

	if (!plane) {
		plane = calloc((size_t)CONSOLE_WIDTH_MAX * CONSOLE_HEIGHT_MAX, 4);
		fake_guest_create(&device.fake);
	}
	memset(device.fake.guest.base, 0, 0x40000);
	fake_driver_create(&device.driver, &device.fake, &device.queue, 0, 64, true);
	gpu_default_limits(&setup.limits, 8 << 20);
	setup.limits.resources = 64;
	if (!plane || console_create(&device.console, plane, &ops, NULL))
		abort();
	console_watch(&device.console, true);
	gpu_create(&device.gpu, &device.fake.guest, &device.console, &setup);
	return &device;
}

void fuzz_device_end(struct fuzz_device *device)
{
	gpu_reset(&device->gpu);
	/* whatever happened, nothing may be left charged */
	if (device->gpu.resources.bytes || device->gpu.resources.count ||
	    device->gpu.resources.entries)
		abort();
	gpu_destroy(&device->gpu);
	console_destroy(&device->console);
	queue_destroy(&device->queue);
}

bool fuzz_record(const uint8_t **data, size_t *size, const uint8_t **record, size_t *length)
{
	uint16_t wanted;

	if (*size < sizeof(wanted))
		return false;
	memcpy(&wanted, *data, sizeof(wanted));
	*data += sizeof(wanted);
	*size -= sizeof(wanted);
	*length = wanted < *size ? wanted : *size;
	*record = *data;
	*data += *length;
	*size -= *length;
	return true;
}
