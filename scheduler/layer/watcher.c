// SPDX-License-Identifier: LGPL-2.1-or-later
/* A thread per queue: it sees submissions finish, in their order, and leaves the gate for them. */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "scheduler/layer/layer.h"

/* How long the watcher may sit on a semaphore that somebody wants to destroy. */
#define WATCHER_HOLD_NS 2000000ull
#define LATENCY_SAMPLES 9

static VkResult wait_for(struct layer_device *device, VkSemaphore semaphore, uint64_t value,
			 uint64_t timeout_ns)
{
	const VkSemaphoreWaitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
		.semaphoreCount = 1,
		.pSemaphores = &semaphore,
		.pValues = &value,
	};

	return device->WaitSemaphores(device->handle, &info, timeout_ns);
}

/*
 * How long the way to the GPU and back is: the median of some empty submissions. The queue is the
 * layer's alone as long as the application has not got it. They pass no gate, being no work.
 */
static void watcher_measure(struct layer_queue *queue)
{
	uint64_t took[LATENCY_SAMPLES];

	for (int i = 0; i < LATENCY_SAMPLES; i++) {
		uint64_t begin_ns = gate_now_ns(), now_ns;
		int at = i;

		if (submit_signal(queue, queue->value + 1) != VK_SUCCESS)
			return;
		queue->value++;
		if (wait_for(queue->device, queue->timeline, queue->value, UINT64_MAX) != VK_SUCCESS)
			return;
		now_ns = gate_now_ns();
		for (; at > 0 && took[at - 1] > now_ns - begin_ns; at--)
			took[at] = took[at - 1];
		took[at] = now_ns - begin_ns;
	}
	gate_set_latency(queue->device->gate, took[LATENCY_SAMPLES / 2]);
}

VkResult watcher_init(struct layer_queue *queue)
{
	const VkSemaphoreTypeCreateInfo type = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
	};
	const VkSemaphoreCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
		.pNext = &type,
	};
	struct layer_device *device = queue->device;
	VkResult result = device->CreateSemaphore(device->handle, &info, NULL, &queue->timeline);

	if (result != VK_SUCCESS)
		return result;
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_mutex_init(&queue->waits_mutex, NULL);
	pthread_cond_init(&queue->changed, NULL);
	queue->last = &queue->first;
	watcher_measure(queue);
	return VK_SUCCESS;
}

/* Until the submission can run. A lost device runs nothing and stops nobody. */
static void watcher_unblock(struct layer_queue *queue, struct layer_pending *pending)
{
	VkResult result = VK_TIMEOUT;

	for (;;) {
		pthread_mutex_lock(&queue->waits_mutex);
		if (pending->n_waits > 0) {
			const struct layer_wait *wait = &pending->waits[pending->n_waits - 1];

			result = wait_for(queue->device, wait->semaphore, wait->value,
					  WATCHER_HOLD_NS);
			if (result != VK_TIMEOUT)
				pending->n_waits--;
		}
		if (pending->n_waits == 0) {
			pthread_mutex_unlock(&queue->waits_mutex);
			break;
		}
		pthread_mutex_unlock(&queue->waits_mutex);
	}
	gate_unblock(queue->device->gate);
	pthread_mutex_lock(&queue->mutex);
	pending->blocked = false;
	queue->n_blocked--;
	pthread_mutex_unlock(&queue->mutex);
}

/* The first submission, without taking it; false: there is none and there will be none. */
static bool watcher_next(struct layer_queue *queue, struct layer_pending **blocked, uint64_t *value)
{
	bool any;

	pthread_mutex_lock(&queue->mutex);
	while (!queue->first && !queue->stop)
		pthread_cond_wait(&queue->changed, &queue->mutex);
	any = queue->first != NULL;
	if (any) {
		/* only the watcher itself drops what is blocked, so the pointer stays good */
		*blocked = queue->first->blocked ? queue->first : NULL;
		*value = queue->first->value;
	}
	pthread_mutex_unlock(&queue->mutex);
	return any;
}

void watcher_retire(struct layer_queue *queue, bool all)
{
	struct layer_device *device = queue->device;
	uint64_t reached = UINT64_MAX, now_ns;
	struct layer_pending *pending;

	pthread_mutex_lock(&queue->mutex);
	if (queue->first && !all &&
	    device->GetSemaphoreCounterValue(device->handle, queue->timeline, &reached) != VK_SUCCESS)
		reached = UINT64_MAX; /* the device is lost, and all work on it over */
	while ((pending = queue->first) != NULL && pending->value <= reached && !pending->blocked) {
		now_ns = gate_now_ns();
		gate_measured(device->gate, now_ns - (pending->begin_ns > queue->finished_ns ?
							      pending->begin_ns :
							      queue->finished_ns));
		queue->finished_ns = now_ns;
		gate_leave(device->gate);
		queue->first = pending->next;
		if (!queue->first)
			queue->last = &queue->first;
		free(pending);
	}
	pthread_mutex_unlock(&queue->mutex);
}

static void *watcher_run(void *data)
{
	struct layer_queue *queue = data;
	struct layer_pending *blocked;
	uint64_t value;

	prctl(PR_SET_NAME, "octavo-watcher");
	while (watcher_next(queue, &blocked, &value)) {
		VkResult result;

		if (blocked)
			watcher_unblock(queue, blocked);
		do
			result = wait_for(queue->device, queue->timeline, value, UINT64_MAX);
		while (result == VK_TIMEOUT);
		watcher_retire(queue, result != VK_SUCCESS);
	}
	return NULL;
}

bool watcher_blocked(struct layer_queue *queue)
{
	bool blocked;

	pthread_mutex_lock(&queue->mutex);
	blocked = queue->n_blocked > 0;
	pthread_mutex_unlock(&queue->mutex);
	return blocked;
}

void watcher_add(struct layer_queue *queue, struct layer_pending *pending)
{
	pthread_mutex_lock(&queue->mutex);
	pending->begin_ns = gate_now_ns();
	*queue->last = pending;
	queue->last = &pending->next;
	queue->n_blocked += pending->blocked;
	if (!queue->started) {
		/* without a watcher the gate would count this submission for ever */
		if (pthread_create(&queue->watcher, NULL, watcher_run, queue)) {
			layer_log("cannot start a thread to watch a queue: the process ends");
			abort();
		}
		queue->started = true;
	}
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
}

void watcher_forget(struct layer_queue *queue, VkSemaphore semaphore)
{
	pthread_mutex_lock(&queue->waits_mutex);
	pthread_mutex_lock(&queue->mutex);
	for (struct layer_pending *pending = queue->first; pending; pending = pending->next) {
		uint32_t kept = 0;

		for (uint32_t i = 0; i < pending->n_waits; i++)
			if (pending->waits[i].semaphore != semaphore)
				pending->waits[kept++] = pending->waits[i];
		pending->n_waits = kept;
	}
	pthread_mutex_unlock(&queue->mutex);
	pthread_mutex_unlock(&queue->waits_mutex);
}

void watcher_finish(struct layer_queue *queue)
{
	struct layer_device *device = queue->device;

	pthread_mutex_lock(&queue->mutex);
	queue->stop = true;
	pthread_cond_signal(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
	if (queue->started)
		pthread_join(queue->watcher, NULL);
	device->DestroySemaphore(device->handle, queue->timeline, NULL);
	pthread_cond_destroy(&queue->changed);
	pthread_mutex_destroy(&queue->mutex);
	pthread_mutex_destroy(&queue->waits_mutex);
}
