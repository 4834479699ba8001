// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Submissions. Each passes the gate and is followed, in the same call, by a batch that signals
 * the queue's timeline: so the application's batches go down exactly as they came, and its fence
 * still covers all of them.
 */
#include <stdlib.h>
#include <string.h>

#include "scheduler/layer/layer.h"

/* Batches of one call that fit on the stack. */
#define SUBMIT_FEW 16

static const void *chain_find(const void *chain, VkStructureType type)
{
	const VkBaseInStructure *at = chain;

	while (at && at->sType != type)
		at = at->pNext;
	return at;
}

static struct layer_pending *pending_new(uint32_t max_waits)
{
	return calloc(1, sizeof(struct layer_pending) + max_waits * sizeof(struct layer_wait));
}

static void pending_wait(struct layer_device *device, struct layer_pending *pending,
			 VkSemaphore semaphore, uint64_t value)
{
	if (semaphore_unreached(device, semaphore, value))
		pending->waits[pending->n_waits++] = (struct layer_wait){ semaphore, value };
}

/* What a batch without VkSemaphoreSubmitInfos waits for; its values stand in a chained structure. */
static void pending_wait_batch(struct layer_device *device, struct layer_pending *pending,
			       const void *chain, const VkSemaphore *semaphores, uint32_t count)
{
	const VkTimelineSemaphoreSubmitInfo *timeline =
		chain_find(chain, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);

	if (!timeline)
		return;
	if (count > timeline->waitSemaphoreValueCount)
		count = timeline->waitSemaphoreValueCount;
	for (uint32_t i = 0; i < count; i++)
		pending_wait(device, pending, semaphores[i], timeline->pWaitSemaphoreValues[i]);
}

/*
 * Pass the gate. What has to wait for a semaphore first, itself or behind such a one in its queue,
 * takes no place in flight: whatever signals it may have to pass the gate too.
 */
static VkResult submit_enter(struct layer_queue *queue, struct layer_pending *pending)
{
	struct gate *gate = queue->device->gate;

	watcher_retire(queue, false);
	pending->blocked = pending->n_waits > 0 || watcher_blocked(queue);
	if (gate_enter(gate, pending->blocked ? GATE_PASS : GATE_WORK))
		return VK_ERROR_DEVICE_LOST;
	if (pending->blocked)
		gate_block(gate);
	pending->value = queue->value + 1;
	return VK_SUCCESS;
}

static VkResult submit_leave(struct layer_queue *queue, struct layer_pending *pending,
			     VkResult result)
{
	if (result == VK_SUCCESS) {
		queue->value++;
		watcher_add(queue, pending);
		return result;
	}
	if (pending->blocked)
		gate_unblock(queue->device->gate);
	gate_leave(queue->device->gate);
	free(pending);
	return result;
}

VkResult submit_signal(struct layer_queue *queue, uint64_t value)
{
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.signalSemaphoreValueCount = 1,
		.pSignalSemaphoreValues = &value,
	};
	const VkSubmitInfo batch = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.signalSemaphoreCount = 1,
		.pSignalSemaphores = &queue->timeline,
	};

	return queue->device->QueueSubmit(queue->handle, 1, &batch, VK_NULL_HANDLE);
}

VkResult VKAPI_CALL layer_submit(VkQueue handle, uint32_t count, const VkSubmitInfo *batches,
				 VkFence fence)
{
	struct layer_queue *queue = layer_queue_of(handle);
	struct layer_device *device = queue->device;
	VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.signalSemaphoreValueCount = 1,
	};
	VkSubmitInfo few[SUBMIT_FEW], *all;
	struct layer_pending *pending;
	uint32_t commands = 0, waits = 0;
	VkResult result;

	for (uint32_t i = 0; i < count; i++) {
		commands += batches[i].commandBufferCount;
		waits += batches[i].waitSemaphoreCount;
	}
	/* signals and fences alone are no work */
	if (commands == 0)
		return device->QueueSubmit(handle, count, batches, fence);
	all = count < SUBMIT_FEW ? few : calloc((size_t)count + 1, sizeof(*all));
	pending = pending_new(waits);
	if (!all || !pending) {
		result = VK_ERROR_OUT_OF_HOST_MEMORY;
		free(pending);
		goto out;
	}
	for (uint32_t i = 0; i < count; i++)
		pending_wait_batch(device, pending, batches[i].pNext, batches[i].pWaitSemaphores,
				   batches[i].waitSemaphoreCount);
	result = submit_enter(queue, pending);
	if (result != VK_SUCCESS) {
		free(pending);
		goto out;
	}
	memcpy(all, batches, count * sizeof(*all));
	values.pSignalSemaphoreValues = &pending->value;
	all[count] = (VkSubmitInfo){
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.signalSemaphoreCount = 1,
		.pSignalSemaphores = &queue->timeline,
	};
	result = device->QueueSubmit(handle, count + 1, all, fence);
	result = submit_leave(queue, pending, result);
out:
	if (all != few)
		free(all);
	return result;
}

static VkResult submit2(VkQueue handle, uint32_t count, const VkSubmitInfo2 *batches,
			VkFence fence, bool khr)
{
	struct layer_queue *queue = layer_queue_of(handle);
	struct layer_device *device = queue->device;
	PFN_vkQueueSubmit2 submit = khr ? device->QueueSubmit2KHR : device->QueueSubmit2;
	VkSemaphoreSubmitInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
		.semaphore = queue->timeline,
		.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
	};
	VkSubmitInfo2 few[SUBMIT_FEW], *all;
	struct layer_pending *pending;
	uint32_t commands = 0, waits = 0;
	VkResult result;

	for (uint32_t i = 0; i < count; i++) {
		commands += batches[i].commandBufferInfoCount;
		waits += batches[i].waitSemaphoreInfoCount;
	}
	if (commands == 0)
		return submit(handle, count, batches, fence);
	all = count < SUBMIT_FEW ? few : calloc((size_t)count + 1, sizeof(*all));
	pending = pending_new(waits);
	if (!all || !pending) {
		result = VK_ERROR_OUT_OF_HOST_MEMORY;
		free(pending);
		goto out;
	}
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < batches[i].waitSemaphoreInfoCount; j++)
			pending_wait(device, pending, batches[i].pWaitSemaphoreInfos[j].semaphore,
				     batches[i].pWaitSemaphoreInfos[j].value);
	result = submit_enter(queue, pending);
	if (result != VK_SUCCESS) {
		free(pending);
		goto out;
	}
	memcpy(all, batches, count * sizeof(*all));
	signal.value = pending->value;
	all[count] = (VkSubmitInfo2){
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		.signalSemaphoreInfoCount = 1,
		.pSignalSemaphoreInfos = &signal,
	};
	result = submit(handle, count + 1, all, fence);
	result = submit_leave(queue, pending, result);
out:
	if (all != few)
		free(all);
	return result;
}

VkResult VKAPI_CALL layer_submit2(VkQueue queue, uint32_t count, const VkSubmitInfo2 *batches,
				  VkFence fence)
{
	return submit2(queue, count, batches, fence, false);
}

VkResult VKAPI_CALL layer_submit2_khr(VkQueue queue, uint32_t count, const VkSubmitInfo2 *batches,
				      VkFence fence)
{
	return submit2(queue, count, batches, fence, true);
}

VkResult VKAPI_CALL layer_bind_sparse(VkQueue handle, uint32_t count,
				      const VkBindSparseInfo *batches, VkFence fence)
{
	struct layer_queue *queue = layer_queue_of(handle);
	struct layer_device *device = queue->device;
	struct layer_pending *pending;
	uint32_t waits = 0;
	VkResult result;

	for (uint32_t i = 0; i < count; i++)
		waits += batches[i].waitSemaphoreCount;
	pending = pending_new(waits);
	if (!pending)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	for (uint32_t i = 0; i < count; i++)
		pending_wait_batch(device, pending, batches[i].pNext, batches[i].pWaitSemaphores,
				   batches[i].waitSemaphoreCount);
	result = submit_enter(queue, pending);
	if (result != VK_SUCCESS) {
		free(pending);
		return result;
	}
	result = device->QueueBindSparse(handle, count, batches, fence);
	if (result == VK_SUCCESS)
		result = submit_signal(queue, pending->value);
	return submit_leave(queue, pending, result);
}

VkResult VKAPI_CALL layer_present(VkQueue handle, const VkPresentInfoKHR *info)
{
	struct layer_queue *queue = layer_queue_of(handle);
	struct layer_pending *pending = pending_new(0);
	VkResult result, signalled;

	if (!pending)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	result = submit_enter(queue, pending);
	if (result != VK_SUCCESS) {
		free(pending);
		return result;
	}
	result = queue->device->QueuePresentKHR(handle, info);
	/* out of date or suboptimal: some swapchains may have been presented all the same */
	signalled = submit_signal(queue, pending->value);
	submit_leave(queue, pending, signalled);
	return result;
}
