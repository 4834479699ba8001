// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the loader asks for: tables of objects, names to functions. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/layer/layer.h"

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct layer_instance *instances;
static struct layer_device *devices;

void layer_log(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, LAYER_NAME "[%d]: %s\n", (int)getpid(), text);
}

struct layer_instance *layer_instance_of(const void *handle)
{
	void *key = layer_key(handle);
	struct layer_instance *instance;

	pthread_rwlock_rdlock(&table_lock);
	for (instance = instances; instance && instance->key != key; instance = instance->next)
		;
	pthread_rwlock_unlock(&table_lock);
	return instance;
}

struct layer_device *layer_device_of(const void *handle)
{
	void *key = layer_key(handle);
	struct layer_device *device;

	pthread_rwlock_rdlock(&table_lock);
	for (device = devices; device && device->key != key; device = device->next)
		;
	pthread_rwlock_unlock(&table_lock);
	return device;
}

static struct layer_queue *queue_find(struct layer_device *device, VkQueue handle)
{
	struct layer_queue *queue = device->queues;

	while (queue && queue->handle != handle)
		queue = queue->next;
	return queue;
}

struct layer_queue *layer_queue_of(VkQueue handle)
{
	struct layer_device *device = layer_device_of(handle);
	struct layer_queue *queue;

	pthread_rwlock_rdlock(&table_lock);
	queue = queue_find(device, handle);
	pthread_rwlock_unlock(&table_lock);
	return queue;
}

struct layer_queue *layer_add_queue(struct layer_device *device, VkQueue handle)
{
	struct layer_queue *queue;

	pthread_rwlock_wrlock(&table_lock);
	queue = queue_find(device, handle);
	if (!queue) {
		queue = calloc(1, sizeof(*queue));
		if (queue) {
			queue->handle = handle;
			queue->device = device;
			if (watcher_init(queue) != VK_SUCCESS) {
				free(queue);
				queue = NULL;
			} else {
				queue->next = device->queues;
				device->queues = queue;
			}
		}
	}
	pthread_rwlock_unlock(&table_lock);
	return queue;
}

void layer_add_instance(struct layer_instance *instance)
{
	pthread_rwlock_wrlock(&table_lock);
	instance->next = instances;
	instances = instance;
	pthread_rwlock_unlock(&table_lock);
}

void layer_remove_instance(struct layer_instance *instance)
{
	struct layer_instance **at = &instances;

	pthread_rwlock_wrlock(&table_lock);
	while (*at != instance)
		at = &(*at)->next;
	*at = instance->next;
	pthread_rwlock_unlock(&table_lock);
}

void layer_add_device(struct layer_device *device)
{
	pthread_rwlock_wrlock(&table_lock);
	device->next = devices;
	devices = device;
	pthread_rwlock_unlock(&table_lock);
}

void layer_remove_device(struct layer_device *device)
{
	struct layer_device **at = &devices;

	pthread_rwlock_wrlock(&table_lock);
	while (*at != device)
		at = &(*at)->next;
	*at = device->next;
	pthread_rwlock_unlock(&table_lock);
}

struct entry {
	const char *name;
	PFN_vkVoidFunction function;
};

#define ENTRY(name, function) { name, (PFN_vkVoidFunction)(function) }

static const struct entry instance_entries[] = {
	ENTRY("vkGetInstanceProcAddr", layer_gipa),
	ENTRY("vkCreateInstance", layer_create_instance),
	ENTRY("vkDestroyInstance", layer_destroy_instance),
	ENTRY("vkCreateDevice", layer_create_device),
	ENTRY("vkGetPhysicalDeviceMemoryProperties", layer_memory_properties),
	ENTRY("vkGetPhysicalDeviceMemoryProperties2", layer_memory_properties2),
	ENTRY("vkGetPhysicalDeviceMemoryProperties2KHR", layer_memory_properties2),
};

static const struct entry device_entries[] = {
	ENTRY("vkGetDeviceProcAddr", layer_gdpa),
	ENTRY("vkDestroyDevice", layer_destroy_device),
	ENTRY("vkGetDeviceQueue", layer_get_queue),
	ENTRY("vkGetDeviceQueue2", layer_get_queue2),
	ENTRY("vkQueueSubmit", layer_submit),
	ENTRY("vkQueueSubmit2", layer_submit2),
	ENTRY("vkQueueSubmit2KHR", layer_submit2_khr),
	ENTRY("vkQueueBindSparse", layer_bind_sparse),
	ENTRY("vkQueuePresentKHR", layer_present),
	ENTRY("vkAllocateMemory", layer_allocate),
	ENTRY("vkFreeMemory", layer_free),
	ENTRY("vkCreateSemaphore", layer_create_semaphore),
	ENTRY("vkDestroySemaphore", layer_destroy_semaphore),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static PFN_vkVoidFunction entry_find(const struct entry *entries, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(entries[i].name, name) == 0)
			return entries[i].function;
	return NULL;
}

/* A function of ours only stands for one that is there further down. */
PFN_vkVoidFunction VKAPI_CALL layer_gdpa(VkDevice handle, const char *name)
{
	struct layer_device *device = layer_device_of(handle);
	PFN_vkVoidFunction own = entry_find(device_entries, COUNT(device_entries), name);
	PFN_vkVoidFunction next = device ? device->next_gdpa(handle, name) : NULL;

	return next && own ? own : next;
}

PFN_vkVoidFunction VKAPI_CALL layer_gipa(VkInstance handle, const char *name)
{
	PFN_vkVoidFunction own = entry_find(instance_entries, COUNT(instance_entries), name);
	PFN_vkVoidFunction next;
	struct layer_instance *instance;

	/* the loader asks for these with an instance that is still being made */
	if (strcmp(name, "vkCreateInstance") == 0 || strcmp(name, "vkGetInstanceProcAddr") == 0)
		return own;
	if (!handle)
		return NULL;
	if (!own)
		own = entry_find(device_entries, COUNT(device_entries), name);
	instance = layer_instance_of(handle);
	next = instance ? instance->next_gipa(handle, name) : NULL;
	return next && own ? own : next;
}

__attribute__((visibility("default"))) VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface)
{
	if (interface->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
	    interface->loaderLayerInterfaceVersion < 2)
		return VK_ERROR_INITIALIZATION_FAILED;
	interface->loaderLayerInterfaceVersion = 2;
	interface->pfnGetInstanceProcAddr = layer_gipa;
	interface->pfnGetDeviceProcAddr = layer_gdpa;
	interface->pfnGetPhysicalDeviceProcAddr = NULL;
	return VK_SUCCESS;
}
