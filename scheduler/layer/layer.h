/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * VK_LAYER_OCTAVO_slice: lets a process use Vulkan in its vGPU's turns only, and within its share
 * of memory. The parts of the layer and what they know of each other; one file each:
 *
 *	entry.c		what the loader asks for: names to functions
 *	instance.c	vkCreateInstance: here the process registers with its gate
 *	device.c	vkCreateDevice, queues
 *	submit.c	work: each submission passes the gate, and is followed by a signal of the
 *			queue's own timeline semaphore
 *	watcher.c	a thread per queue that waits for those signals and leaves the gate
 *	semaphore.c	which semaphores are timelines, and what a submission waits for
 *	memory.c	allocations, heaps, budget
 *
 * Objects are found by the loader's dispatch pointer, which all dispatchable handles of an
 * instance or device share. Lookups take a read lock; the objects live until the application
 * destroys them, which it may not do while it uses them.
 */
#ifndef OCTAVO_LAYER_LAYER_H
#define OCTAVO_LAYER_LAYER_H

#include <pthread.h>
#include <stdbool.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "scheduler/gate.h"

#define LAYER_NAME "VK_LAYER_OCTAVO_slice"

struct layer_instance {
	struct layer_instance *next;
	void *key;
	VkInstance handle;
	struct gate *gate;
	PFN_vkGetInstanceProcAddr next_gipa;
	PFN_vkDestroyInstance DestroyInstance;
	PFN_vkGetPhysicalDeviceProperties GetPhysicalDeviceProperties;
	PFN_vkGetPhysicalDeviceMemoryProperties GetPhysicalDeviceMemoryProperties;
	PFN_vkGetPhysicalDeviceMemoryProperties2 GetPhysicalDeviceMemoryProperties2;
	PFN_vkEnumerateDeviceExtensionProperties EnumerateDeviceExtensionProperties;
};

/* What a submission waits for before it can run. */
struct layer_wait {
	VkSemaphore semaphore;
	uint64_t value;
};

/* A submission that has not finished. */
struct layer_pending {
	struct layer_pending *next;
	uint64_t value; /* of the queue's timeline when it has */
	uint64_t begin_ns;
	bool blocked;	/* entered with GATE_PASS */
	uint32_t n_waits;
	struct layer_wait waits[];
};

struct layer_queue {
	struct layer_queue *next;
	VkQueue handle;
	struct layer_device *device;
	VkSemaphore timeline;
	uint64_t value;		 /* last one given to a submission */
	pthread_mutex_t mutex;	 /* all below */
	pthread_cond_t changed;
	struct layer_pending *first, **last;
	uint32_t n_blocked;
	uint64_t finished_ns; /* when the last submission did */
	bool stop;
	bool started;
	pthread_t watcher;
	pthread_mutex_t waits_mutex; /* held while the watcher uses a pending's waits */
};

struct layer_memory;
struct layer_semaphore;

struct layer_device {
	struct layer_device *next;
	void *key;
	VkDevice handle;
	struct layer_instance *instance;
	struct gate *gate;
	VkPhysicalDeviceMemoryProperties memory;
	struct layer_queue *queues; /* only grows, under the table's lock */
	pthread_mutex_t mutex;	    /* memories, semaphores */
	struct layer_memory *memories;
	size_t n_memories, memories_size;
	struct layer_semaphore *semaphores;
	PFN_vkGetDeviceProcAddr next_gdpa;
	PFN_vkDestroyDevice DestroyDevice;
	PFN_vkGetDeviceQueue GetDeviceQueue;
	PFN_vkGetDeviceQueue2 GetDeviceQueue2;
	PFN_vkQueueSubmit QueueSubmit;
	PFN_vkQueueSubmit2 QueueSubmit2;
	PFN_vkQueueSubmit2 QueueSubmit2KHR;
	PFN_vkQueueBindSparse QueueBindSparse;
	PFN_vkQueuePresentKHR QueuePresentKHR;
	PFN_vkAllocateMemory AllocateMemory;
	PFN_vkFreeMemory FreeMemory;
	PFN_vkCreateSemaphore CreateSemaphore;
	PFN_vkDestroySemaphore DestroySemaphore;
	PFN_vkWaitSemaphores WaitSemaphores;
	PFN_vkGetSemaphoreCounterValue GetSemaphoreCounterValue;
};

/* The loader's dispatch pointer is the first word of every dispatchable object. */
static inline void *layer_key(const void *handle)
{
	return *(void *const *)handle;
}

/* entry.c */
struct layer_instance *layer_instance_of(const void *handle);
struct layer_device *layer_device_of(const void *handle);
struct layer_queue *layer_queue_of(VkQueue queue);
void layer_add_instance(struct layer_instance *instance);
void layer_remove_instance(struct layer_instance *instance);
void layer_add_device(struct layer_device *device);
void layer_remove_device(struct layer_device *device);
/* The queue object of handle, made when it is new; NULL: no memory or no semaphore. */
struct layer_queue *layer_add_queue(struct layer_device *device, VkQueue handle);
PFN_vkVoidFunction VKAPI_CALL layer_gipa(VkInstance instance, const char *name);
PFN_vkVoidFunction VKAPI_CALL layer_gdpa(VkDevice device, const char *name);
/* A line on stderr, where the log of a render process goes. */
void layer_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* instance.c */
VkResult VKAPI_CALL layer_create_instance(const VkInstanceCreateInfo *info,
					  const VkAllocationCallbacks *allocator,
					  VkInstance *handle);
void VKAPI_CALL layer_destroy_instance(VkInstance handle, const VkAllocationCallbacks *allocator);

/* device.c */
VkResult VKAPI_CALL layer_create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
					const VkAllocationCallbacks *allocator, VkDevice *handle);
void VKAPI_CALL layer_destroy_device(VkDevice handle, const VkAllocationCallbacks *allocator);
void VKAPI_CALL layer_get_queue(VkDevice handle, uint32_t family, uint32_t index, VkQueue *queue);
void VKAPI_CALL layer_get_queue2(VkDevice handle, const VkDeviceQueueInfo2 *info, VkQueue *queue);

/* submit.c */
VkResult VKAPI_CALL layer_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *batches,
				 VkFence fence);
VkResult VKAPI_CALL layer_submit2(VkQueue queue, uint32_t count, const VkSubmitInfo2 *batches,
				  VkFence fence);
VkResult VKAPI_CALL layer_submit2_khr(VkQueue queue, uint32_t count, const VkSubmitInfo2 *batches,
				      VkFence fence);
VkResult VKAPI_CALL layer_bind_sparse(VkQueue queue, uint32_t count,
				      const VkBindSparseInfo *batches, VkFence fence);
VkResult VKAPI_CALL layer_present(VkQueue queue, const VkPresentInfoKHR *info);

/* Submit nothing but a signal of the queue's timeline, for what is not a submission itself. */
VkResult submit_signal(struct layer_queue *queue, uint64_t value);

/* watcher.c */
VkResult watcher_init(struct layer_queue *queue);
/* Waits for what is in flight, which is over when its device may be destroyed. */
void watcher_finish(struct layer_queue *queue);
/* The submission that will signal pending->value has been made; takes pending over. */
void watcher_add(struct layer_queue *queue, struct layer_pending *pending);
/*
 * Leave the gate for what has finished (all: for everything that runs). The watcher does it when it
 * wakes; submissions do it too, so that one who waits for each of them never waits for the watcher.
 */
void watcher_retire(struct layer_queue *queue, bool all);
bool watcher_blocked(struct layer_queue *queue);
/* semaphore goes away, so everything that waited for it has run: nobody may touch it any more. */
void watcher_forget(struct layer_queue *queue, VkSemaphore semaphore);

/* semaphore.c */
VkResult VKAPI_CALL layer_create_semaphore(VkDevice handle, const VkSemaphoreCreateInfo *info,
					   const VkAllocationCallbacks *allocator,
					   VkSemaphore *semaphore);
void VKAPI_CALL layer_destroy_semaphore(VkDevice handle, VkSemaphore semaphore,
					const VkAllocationCallbacks *allocator);
/* Whether semaphore is a timeline that has not reached value. */
bool semaphore_unreached(struct layer_device *device, VkSemaphore semaphore, uint64_t value);
void semaphore_finish(struct layer_device *device);

/* memory.c */
VkResult VKAPI_CALL layer_allocate(VkDevice handle, const VkMemoryAllocateInfo *info,
				   const VkAllocationCallbacks *allocator, VkDeviceMemory *memory);
void VKAPI_CALL layer_free(VkDevice handle, VkDeviceMemory memory,
			   const VkAllocationCallbacks *allocator);
void VKAPI_CALL layer_memory_properties(VkPhysicalDevice physical,
					VkPhysicalDeviceMemoryProperties *properties);
void VKAPI_CALL layer_memory_properties2(VkPhysicalDevice physical,
					 VkPhysicalDeviceMemoryProperties2 *properties);
/* Give back what the device still holds. */
void memory_finish(struct layer_device *device);

#endif
