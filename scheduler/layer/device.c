// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices and their queues. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/layer/layer.h"

static VkLayerDeviceCreateInfo *device_link(const VkDeviceCreateInfo *info)
{
	/* the loader's own structure, made to be written by layers */
	VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)(uintptr_t)info->pNext;

	while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO ||
			link->function != VK_LAYER_LINK_INFO))
		link = (VkLayerDeviceCreateInfo *)(uintptr_t)link->pNext;
	return link;
}

#define LOAD(device, name)                                                                         \
	((device)->name = (PFN_vk##name)(device)->next_gdpa((device)->handle, "vk" #name))

static void device_load(struct layer_device *device)
{
	LOAD(device, DestroyDevice);
	LOAD(device, GetDeviceQueue);
	LOAD(device, GetDeviceQueue2);
	LOAD(device, QueueSubmit);
	LOAD(device, QueueSubmit2);
	device->QueueSubmit2KHR = (PFN_vkQueueSubmit2)device->next_gdpa(device->handle,
									"vkQueueSubmit2KHR");
	LOAD(device, QueueBindSparse);
	LOAD(device, QueuePresentKHR);
	LOAD(device, AllocateMemory);
	LOAD(device, FreeMemory);
	LOAD(device, CreateSemaphore);
	LOAD(device, DestroySemaphore);
	LOAD(device, WaitSemaphores);
	LOAD(device, GetSemaphoreCounterValue);
}

/*
 * The features that the application asks for, timeline semaphores added. Where it has named
 * them with "false" its structure is changed for the time of the call; put() restores it.
 */
struct timeline_request {
	VkPhysicalDeviceTimelineSemaphoreFeatures own;
	VkBool32 *theirs;
	VkBool32 theirs_was;
};

static void timeline_ask(struct timeline_request *request, VkDeviceCreateInfo *info)
{
	VkBaseOutStructure *at = (VkBaseOutStructure *)(uintptr_t)info->pNext;

	*request = (struct timeline_request){ 0 };
	for (; at && !request->theirs; at = at->pNext) {
		if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
			request->theirs =
				&((VkPhysicalDeviceVulkan12Features *)at)->timelineSemaphore;
		else if (at->sType ==
			 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES)
			request->theirs =
				&((VkPhysicalDeviceTimelineSemaphoreFeatures *)at)->timelineSemaphore;
	}
	if (request->theirs) {
		request->theirs_was = *request->theirs;
		if (!request->theirs_was)
			*request->theirs = VK_TRUE;
		return;
	}
	request->own = (VkPhysicalDeviceTimelineSemaphoreFeatures){
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
		.pNext = (void *)(uintptr_t)info->pNext,
		.timelineSemaphore = VK_TRUE,
	};
	info->pNext = &request->own;
}

static void timeline_put(struct timeline_request *request)
{
	if (request->theirs && !request->theirs_was)
		*request->theirs = request->theirs_was;
}

VkResult VKAPI_CALL layer_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
					const VkAllocationCallbacks *allocator, VkDevice *handle)
{
	struct layer_instance *instance = layer_instance_of(physical);
	VkLayerDeviceCreateInfo *link = device_link(info);
	VkPhysicalDeviceProperties properties;
	VkDeviceCreateInfo ours = *info;
	struct timeline_request timeline;
	struct layer_device *device;
	PFN_vkCreateDevice create;
	VkResult result;

	if (!link || !link->u.pLayerInfo)
		return VK_ERROR_INITIALIZATION_FAILED;
	instance->GetPhysicalDeviceProperties(physical, &properties);
	if (properties.apiVersion < VK_API_VERSION_1_2) {
		layer_log("asked for a device on '%s', which has Vulkan %u.%u, but slices need 1.2 (timeline semaphores): use a newer driver",
			  properties.deviceName, VK_API_VERSION_MAJOR(properties.apiVersion),
			  VK_API_VERSION_MINOR(properties.apiVersion));
		return VK_ERROR_FEATURE_NOT_PRESENT;
	}
	device = calloc(1, sizeof(*device));
	if (!device)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	device->instance = instance;
	device->gate = instance->gate;
	pthread_mutex_init(&device->mutex, NULL);
	device->next_gdpa = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
	create = (PFN_vkCreateDevice)link->u.pLayerInfo->pfnNextGetInstanceProcAddr(
		instance->handle, "vkCreateDevice");
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	timeline_ask(&timeline, &ours);
	result = create ? create(physical, &ours, allocator, handle) :
			  VK_ERROR_INITIALIZATION_FAILED;
	timeline_put(&timeline);
	if (result != VK_SUCCESS) {
		pthread_mutex_destroy(&device->mutex);
		free(device);
		return result;
	}
	device->handle = *handle;
	device->key = layer_key(*handle);
	device_load(device);
	instance->GetPhysicalDeviceMemoryProperties(physical, &device->memory);
	layer_add_device(device);
	return VK_SUCCESS;
}

void VKAPI_CALL layer_destroy_device(VkDevice handle, const VkAllocationCallbacks *allocator)
{
	struct layer_device *device;

	if (!handle)
		return;
	device = layer_device_of(handle);
	while (device->queues) {
		struct layer_queue *queue = device->queues;

		device->queues = queue->next;
		watcher_finish(queue);
		free(queue);
	}
	layer_remove_device(device);
	device->DestroyDevice(handle, allocator);
	memory_finish(device);
	semaphore_finish(device);
	pthread_mutex_destroy(&device->mutex);
	free(device);
}

/* A queue without an object would be one without a gate, so the application does not get it. */
static void queue_meet(struct layer_device *device, VkQueue *queue)
{
	if (*queue && !layer_add_queue(device, *queue)) {
		layer_log("no memory for a queue: the process ends");
		abort();
	}
}

void VKAPI_CALL layer_get_queue(VkDevice handle, uint32_t family, uint32_t index, VkQueue *queue)
{
	struct layer_device *device = layer_device_of(handle);

	device->GetDeviceQueue(handle, family, index, queue);
	queue_meet(device, queue);
}

void VKAPI_CALL layer_get_queue2(VkDevice handle, const VkDeviceQueueInfo2 *info, VkQueue *queue)
{
	struct layer_device *device = layer_device_of(handle);

	device->GetDeviceQueue2(handle, info, queue);
	queue_meet(device, queue);
}
