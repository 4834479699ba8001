// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/vulkan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

static bool vulkan_has_pci(VkPhysicalDevice physical)
{
	VkExtensionProperties *extensions;
	uint32_t count = 0;
	bool has = false;

	if (vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL) || count == 0)
		return false;
	extensions = calloc(count, sizeof(*extensions));
	if (!extensions)
		return false;
	vkEnumerateDeviceExtensionProperties(physical, NULL, &count, extensions);
	for (uint32_t i = 0; i < count; i++)
		has |= !strcmp(extensions[i].extensionName, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
	free(extensions);
	return has;
}

static void vulkan_describe(VkPhysicalDevice physical, struct vulkan_device *device)
{
	VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT,
	};
	VkPhysicalDeviceIDProperties id = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
	};
	VkPhysicalDeviceProperties2 properties = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
		.pNext = &id,
	};
	VkPhysicalDeviceMemoryProperties memory;

	memset(device, 0, sizeof(*device));
	if (vulkan_has_pci(physical))
		id.pNext = &pci;
	vkGetPhysicalDeviceProperties2(physical, &properties);
	vkGetPhysicalDeviceMemoryProperties(physical, &memory);
	snprintf(device->name, sizeof(device->name), "%s", properties.properties.deviceName);
	memcpy(device->uuid, id.deviceUUID, sizeof(device->uuid));
	if (id.pNext)
		snprintf(device->pci, sizeof(device->pci), "%04x:%02x:%02x.%x",
			 pci.pciDomain & 0xffff, pci.pciBus & 0xff, pci.pciDevice & 0x1f,
			 pci.pciFunction & 7);
	device->vendor_id = properties.properties.vendorID;
	device->device_id = properties.properties.deviceID;
	device->software = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
	for (uint32_t i = 0; i < memory.memoryHeapCount; i++) {
		if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
			device->memory_bytes += memory.memoryHeaps[i].size;
	}
}

/* In the child: writes one struct vulkan_device for each device. */
static void vulkan_tell(int fd)
{
	VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.apiVersion = VK_API_VERSION_1_1,
	};
	VkInstanceCreateInfo create = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &application,
	};
	VkPhysicalDevice physical[VULKAN_DEVICES_MAX];
	uint32_t count = VULKAN_DEVICES_MAX;
	struct vulkan_device device;
	VkInstance instance;
	VkResult result;

	if (vkCreateInstance(&create, NULL, &instance))
		return;
	result = vkEnumeratePhysicalDevices(instance, &count, physical);
	if (result != VK_SUCCESS && result != VK_INCOMPLETE)
		return;
	for (uint32_t i = 0; i < count; i++) {
		vulkan_describe(physical[i], &device);
		if (write(fd, &device, sizeof(device)) != (ssize_t)sizeof(device))
			return;
	}
}

int vulkan_list(struct vulkan_device devices[VULKAN_DEVICES_MAX])
{
	size_t room = VULKAN_DEVICES_MAX * sizeof(devices[0]), got = 0;
	ssize_t bytes = 0;
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int error = errno;

		close(pipes[0]);
		close(pipes[1]);
		return -error;
	}
	if (pid == 0) {
		close(pipes[0]);
		vulkan_tell(pipes[1]);
		_exit(0);
	}
	close(pipes[1]);
	do {
		bytes = read(pipes[0], (uint8_t *)devices + got, room - got);
		if (bytes > 0)
			got += (size_t)bytes;
	} while (bytes > 0 || (bytes < 0 && errno == EINTR));
	close(pipes[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return (int)(got / sizeof(devices[0]));
}

void vulkan_uuid_format(const uint8_t uuid[16], char text[33])
{
	for (unsigned int i = 0; i < 16; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", uuid[i]);
}

const struct vulkan_device *vulkan_choose(const struct vulkan_device *devices, int count,
					  const char *wanted, const char *pci)
{
	char uuid[33];

	for (int i = 0; i < count; i++) {
		vulkan_uuid_format(devices[i].uuid, uuid);
		if (wanted ? !strcasecmp(uuid, wanted) || strcasestr(devices[i].name, wanted) :
			     pci && devices[i].pci[0] && !strcasecmp(devices[i].pci, pci))
			return &devices[i];
	}
	return NULL;
}
