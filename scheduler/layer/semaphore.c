// SPDX-License-Identifier: LGPL-2.1-or-later
/* Timeline semaphores: only they can be waited for before they are signalled. */
#include <stdlib.h>

#include "scheduler/layer/layer.h"

struct layer_semaphore {
	struct layer_semaphore *next;
	VkSemaphore handle;
};

static bool creates_timeline(const VkSemaphoreCreateInfo *info)
{
	const VkBaseInStructure *at = info->pNext;

	for (; at; at = at->pNext)
		if (at->sType == VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO)
			return ((const VkSemaphoreTypeCreateInfo *)at)->semaphoreType ==
			       VK_SEMAPHORE_TYPE_TIMELINE;
	return false;
}

VkResult VKAPI_CALL layer_create_semaphore(VkDevice handle, const VkSemaphoreCreateInfo *info,
					   const VkAllocationCallbacks *allocator,
					   VkSemaphore *semaphore)
{
	struct layer_device *device = layer_device_of(handle);
	struct layer_semaphore *known;
	VkResult result;

	if (!creates_timeline(info))
		return device->CreateSemaphore(handle, info, allocator, semaphore);
	known = calloc(1, sizeof(*known));
	if (!known)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	result = device->CreateSemaphore(handle, info, allocator, semaphore);
	if (result != VK_SUCCESS) {
		free(known);
		return result;
	}
	known->handle = *semaphore;
	pthread_mutex_lock(&device->mutex);
	known->next = device->semaphores;
	device->semaphores = known;
	pthread_mutex_unlock(&device->mutex);
	return result;
}

/* Unlinks semaphore; false: it is no timeline. */
static bool semaphore_remove(struct layer_device *device, VkSemaphore semaphore)
{
	struct layer_semaphore **at, *known;

	pthread_mutex_lock(&device->mutex);
	for (at = &device->semaphores; *at && (*at)->handle != semaphore; at = &(*at)->next)
		;
	known = *at;
	if (known)
		*at = known->next;
	pthread_mutex_unlock(&device->mutex);
	free(known);
	return known != NULL;
}

void VKAPI_CALL layer_destroy_semaphore(VkDevice handle, VkSemaphore semaphore,
					const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = layer_device_of(handle);

	if (semaphore && semaphore_remove(device, semaphore))
		for (struct layer_queue *queue = device->queues; queue; queue = queue->next)
			watcher_forget(queue, semaphore);
	device->DestroySemaphore(handle, semaphore, allocator);
}

bool semaphore_unreached(struct layer_device *device, VkSemaphore semaphore, uint64_t value)
{
	const struct layer_semaphore *known;
	uint64_t reached;

	pthread_mutex_lock(&device->mutex);
	for (known = device->semaphores; known && known->handle != semaphore; known = known->next)
		;
	pthread_mutex_unlock(&device->mutex);
	return known && device->GetSemaphoreCounterValue(device->handle, semaphore, &reached) ==
				VK_SUCCESS &&
	       reached < value;
}

void semaphore_finish(struct layer_device *device)
{
	while (device->semaphores) {
		struct layer_semaphore *known = device->semaphores;

		device->semaphores = known->next;
		free(known);
	}
}
