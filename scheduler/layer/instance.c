// SPDX-License-Identifier: LGPL-2.1-or-later
/* Instances: here the process takes its slot at the gate. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/layer/layer.h"

static VkLayerInstanceCreateInfo *instance_link(const VkInstanceCreateInfo *info)
{
	/* the loader's own structure, made to be written by layers */
	VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)(uintptr_t)info->pNext;

	while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
			link->function != VK_LAYER_LINK_INFO))
		link = (VkLayerInstanceCreateInfo *)(uintptr_t)link->pNext;
	return link;
}

#define LOAD(instance, name)                                                                       \
	((instance)->name = (PFN_vk##name)(instance)->next_gipa((instance)->handle, "vk" #name))

VkResult VKAPI_CALL layer_create_instance(const VkInstanceCreateInfo *info,
					  const VkAllocationCallbacks *allocator,
					  VkInstance *handle)
{
	VkLayerInstanceCreateInfo *link = instance_link(info);
	struct layer_instance *instance;
	PFN_vkCreateInstance create;
	VkInstanceCreateInfo ours = *info;
	VkApplicationInfo application = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO };
	VkResult result;
	int err;

	if (!link || !link->u.pLayerInfo)
		return VK_ERROR_INITIALIZATION_FAILED;
	instance = calloc(1, sizeof(*instance));
	if (!instance)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	instance->gate = gate_open(NULL, &err);
	if (!instance->gate) {
		layer_log("no gate (%s): without one this process may not use the GPU; OCTAVO_GATE_FD or OCTAVO_GATE must name it, as octavod and octavo-run see to",
			  strerror(-err));
		free(instance);
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	instance->next_gipa = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	create = (PFN_vkCreateInstance)instance->next_gipa(NULL, "vkCreateInstance");
	/* timeline semaphores are Vulkan 1.2's */
	if (info->pApplicationInfo)
		application = *info->pApplicationInfo;
	if (application.apiVersion < VK_API_VERSION_1_2)
		application.apiVersion = VK_API_VERSION_1_2;
	ours.pApplicationInfo = &application;
	result = create ? create(&ours, allocator, handle) : VK_ERROR_INITIALIZATION_FAILED;
	if (result != VK_SUCCESS) {
		gate_close(instance->gate);
		free(instance);
		return result;
	}
	instance->handle = *handle;
	instance->key = layer_key(*handle);
	LOAD(instance, DestroyInstance);
	LOAD(instance, GetPhysicalDeviceProperties);
	LOAD(instance, GetPhysicalDeviceMemoryProperties);
	LOAD(instance, GetPhysicalDeviceMemoryProperties2);
	LOAD(instance, EnumerateDeviceExtensionProperties);
	layer_add_instance(instance);
	return VK_SUCCESS;
}

void VKAPI_CALL layer_destroy_instance(VkInstance handle, const VkAllocationCallbacks *allocator)
{
	struct layer_instance *instance;

	if (!handle)
		return;
	instance = layer_instance_of(handle);
	layer_remove_instance(instance);
	instance->DestroyInstance(handle, allocator);
	/* the gate stays: to leave and come back would free the slot, and its charge, for others */
	free(instance);
}
