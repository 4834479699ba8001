// SPDX-License-Identifier: LGPL-2.1-or-later
/* Device memory: charged before it is allocated, in heaps as large as the share. */
#include <assert.h>
#include <stdlib.h>

#include "scheduler/layer/layer.h"

/* What a device holds, a hash table with open addressing; memory 0: free, 1: was taken. */
struct layer_memory {
	uint64_t handle;
	uint64_t bytes;
};

#define MEMORY_FREE 0
#define MEMORY_GONE 1

static uint64_t memory_number(VkDeviceMemory memory)
{
	return (uint64_t)memory;
}

static size_t memory_hash(uint64_t handle, size_t size)
{
	return (size_t)((handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (size - 1);
}

static void memory_place(struct layer_memory *table, size_t size, struct layer_memory memory)
{
	size_t at = memory_hash(memory.handle, size);

	assert(table);
	while (table[at].handle != MEMORY_FREE && table[at].handle != MEMORY_GONE)
		at = (at + 1) & (size - 1);
	table[at] = memory;
}

/* device->mutex is held. n_memories counts gone entries too, until the table is made anew. */
static bool memory_room(struct layer_device *device)
{
	size_t old = device->memories ? device->memories_size : 0, size = old ? old : 64, live = 0;
	struct layer_memory *table;

	if (device->n_memories * 2 < old)
		return true;
	for (size_t i = 0; i < old; i++)
		live += device->memories[i].handle > MEMORY_GONE;
	if (live * 4 >= size)
		size *= 2;
	table = calloc(size, sizeof(*table));
	if (!table)
		return false;
	for (size_t i = 0; i < old; i++)
		if (device->memories[i].handle > MEMORY_GONE)
			memory_place(table, size, device->memories[i]);
	free(device->memories);
	device->memories = table;
	device->memories_size = size;
	device->n_memories = live;
	return true;
}

static bool memory_remember(struct layer_device *device, VkDeviceMemory memory, uint64_t bytes)
{
	bool room;

	pthread_mutex_lock(&device->mutex);
	room = memory_room(device) && device->memories;
	if (room) {
		memory_place(device->memories, device->memories_size,
			     (struct layer_memory){ memory_number(memory), bytes });
		device->n_memories++;
	}
	pthread_mutex_unlock(&device->mutex);
	return room;
}

static uint64_t memory_forget(struct layer_device *device, VkDeviceMemory memory)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&device->mutex);
	if (device->memories) {
		size_t at = memory_hash(memory_number(memory), device->memories_size);

		while (device->memories[at].handle != MEMORY_FREE &&
		       device->memories[at].handle != memory_number(memory))
			at = (at + 1) & (device->memories_size - 1);
		if (device->memories[at].handle != MEMORY_FREE) {
			bytes = device->memories[at].bytes;
			device->memories[at].handle = MEMORY_GONE;
		}
	}
	pthread_mutex_unlock(&device->mutex);
	return bytes;
}

/* Bytes of the device's own memory that the allocation takes. */
static uint64_t memory_cost(const struct layer_device *device, const VkMemoryAllocateInfo *info)
{
	const VkPhysicalDeviceMemoryProperties *memory = &device->memory;
	const VkBaseInStructure *at = info->pNext;
	uint32_t heap;

	if (info->memoryTypeIndex >= memory->memoryTypeCount)
		return 0;
	/* the application's own pages; other imports count, or an exporter could free its charge */
	for (; at; at = at->pNext)
		if (at->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT)
			return 0;
	heap = memory->memoryTypes[info->memoryTypeIndex].heapIndex;
	return memory->memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT ?
		       info->allocationSize :
		       0;
}

VkResult VKAPI_CALL layer_allocate(VkDevice handle, const VkMemoryAllocateInfo *info,
				   const VkAllocationCallbacks *allocator, VkDeviceMemory *memory)
{
	struct layer_device *device = layer_device_of(handle);
	uint64_t bytes = memory_cost(device, info);
	VkResult result;

	if (bytes == 0)
		return device->AllocateMemory(handle, info, allocator, memory);
	if (gate_charge(device->gate, bytes))
		return VK_ERROR_OUT_OF_DEVICE_MEMORY;
	result = device->AllocateMemory(handle, info, allocator, memory);
	if (result == VK_SUCCESS && !memory_remember(device, *memory, bytes)) {
		device->FreeMemory(handle, *memory, allocator);
		*memory = VK_NULL_HANDLE;
		result = VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	if (result != VK_SUCCESS)
		gate_uncharge(device->gate, bytes);
	return result;
}

void VKAPI_CALL layer_free(VkDevice handle, VkDeviceMemory memory,
			   const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = layer_device_of(handle);
	uint64_t bytes = memory ? memory_forget(device, memory) : 0;

	device->FreeMemory(handle, memory, allocator);
	/* the charge goes last: at no time is more allocated than charged */
	if (bytes)
		gate_uncharge(device->gate, bytes);
}

void memory_finish(struct layer_device *device)
{
	for (size_t i = 0; i < device->memories_size; i++)
		if (device->memories[i].handle > MEMORY_GONE)
			gate_uncharge(device->gate, device->memories[i].bytes);
	free(device->memories);
}

static void scale_heaps(VkPhysicalDeviceMemoryProperties *properties, uint64_t share_bytes)
{
	if (share_bytes == 0)
		return;
	for (uint32_t i = 0; i < properties->memoryHeapCount; i++)
		if ((properties->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
		    properties->memoryHeaps[i].size > share_bytes)
			properties->memoryHeaps[i].size = share_bytes;
}

void VKAPI_CALL layer_memory_properties(VkPhysicalDevice physical,
					VkPhysicalDeviceMemoryProperties *properties)
{
	struct layer_instance *instance = layer_instance_of(physical);
	struct gate_account account;

	instance->GetPhysicalDeviceMemoryProperties(physical, properties);
	gate_account(instance->gate, &account);
	scale_heaps(properties, account.share_bytes);
}

void VKAPI_CALL layer_memory_properties2(VkPhysicalDevice physical,
					 VkPhysicalDeviceMemoryProperties2 *properties)
{
	struct layer_instance *instance = layer_instance_of(physical);
	VkPhysicalDeviceMemoryProperties *memory = &properties->memoryProperties;
	VkBaseOutStructure *at = properties->pNext;
	struct gate_account account;

	instance->GetPhysicalDeviceMemoryProperties2(physical, properties);
	gate_account(instance->gate, &account);
	scale_heaps(memory, account.share_bytes);
	for (; at && account.share_bytes; at = at->pNext) {
		VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = (void *)at;
		uint64_t left = account.used_bytes < account.share_bytes ?
					account.share_bytes - account.used_bytes :
					0;

		if (at->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)
			continue;
		/* budget: what this process may hold in all; usage: what it holds */
		for (uint32_t i = 0; i < memory->memoryHeapCount; i++) {
			if (!(memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT))
				continue;
			budget->heapUsage[i] = account.own_bytes;
			if (budget->heapBudget[i] > account.own_bytes + left)
				budget->heapBudget[i] = account.own_bytes + left;
		}
	}
}
