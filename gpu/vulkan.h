/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vulkan.h - the Vulkan devices of this host, and which of them is the vGPU's
 *
 * Drivers are loaded in a child process: they leave threads, files and sometimes a crash behind,
 * and a worker must have none of that.
 */
#ifndef OCTAVO_GPU_VULKAN_H
#define OCTAVO_GPU_VULKAN_H

#include <stdbool.h>
#include <stdint.h>

#define VULKAN_DEVICES_MAX	16

struct vulkan_device {
	char name[256];
	uint8_t uuid[16];		/* deviceUUID */
	char pci[16];			/* "0000:01:00.0", "" where the driver does not tell */
	uint32_t vendor_id;
	uint32_t device_id;
	uint64_t memory_bytes;		/* of its device-local heaps */
	bool software;			/* a CPU plays the GPU */
};

/* Number of devices, up to VULKAN_DEVICES_MAX, or -errno. Call it before there are threads. */
int vulkan_list(struct vulkan_device devices[VULKAN_DEVICES_MAX]);

/*
 * The device that @wanted names (deviceUUID in 32 hexadecimal digits, or a part of the name), or
 * with @wanted NULL the one at PCI address @pci. NULL: none.
 */
const struct vulkan_device *vulkan_choose(const struct vulkan_device *devices, int count,
					  const char *wanted, const char *pci);

/* deviceUUID as text, 33 bytes. */
void vulkan_uuid_format(const uint8_t uuid[16], char text[33]);

#endif
