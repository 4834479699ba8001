// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/worker.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_ring.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu/control.h"
#include "gpu/cursor.h"
#include "gpu/log.h"
#include "vfio/queue.h"
#include "vfio/session.h"

/* Requests of a queue that run before the loop looks at the session again. */
#define WORKER_BATCH		64
#define WORKER_EVENTS		16

#define WORKER_FEATURES_2D                                                                         \
	(1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_ACCESS_PLATFORM |                           \
	 1ULL << VIRTIO_RING_F_INDIRECT_DESC | 1ULL << VIRTIO_RING_F_EVENT_IDX |                   \
	 1ULL << VIRTIO_GPU_F_EDID)

#define QUEUE_CONTROL		0
#define QUEUE_CURSOR		1

/* epoll_event.data: a queue's index, or this */
#define SOURCE_SESSION		OCTAVO_QUEUES

struct worker {
	struct session session;
	struct console console;
	struct gpu gpu;
	struct queue queues[OCTAVO_QUEUES];
	int kicks[OCTAVO_QUEUES];
	int epoll;
	bool running;		/* the driver said DRIVER_OK in the generation that is served */
	bool failed;		/* and was told that it has to reset the device */
	bool backlog[OCTAVO_QUEUES];	/* a batch ended before its queue was empty */
	bool closed;
};

static void worker_resize(void *context, uint32_t width, uint32_t height, uint32_t stride)
{
	struct worker *worker = context;
	int ret = session_console_set(&worker->session, width, height, stride);

	if (ret && ret != -ESTALE)
		log_error("the console refuses a plane of %ux%u: %s", width, height, strerror(-ret));
}

static const struct console_ops worker_console_ops = { .resize = worker_resize };

static void worker_fail(struct worker *worker, unsigned int index, int error)
{
	if (worker->failed)
		return;
	worker->failed = true;
	log_error("queue %u broke (%s): the device waits for the guest to reset it", index,
		  strerror(-error));
	session_fail(&worker->session);
}

static void worker_queue_enable(struct worker *worker, unsigned int index)
{
	struct octavo_session_info info;
	struct octavo_queue ring;
	struct queue_layout layout;
	int ret;

	if (index >= OCTAVO_QUEUES || worker->queues[index].enabled)
		return;
	ret = session_queue_get(&worker->session, index, &ring);
	if (ret || !ring.enabled)
		return;
	ret = session_info(&worker->session, &info);
	if (ret || info.vgpu.generation != worker->session.generation)
		return;
	layout = (struct queue_layout){
		.size = ring.size,
		.desc = ring.desc,
		.driver = ring.driver,
		.device = ring.device,
		.event_idx = info.vgpu.driver_features >> VIRTIO_RING_F_EVENT_IDX & 1,
		.indirect = info.vgpu.driver_features >> VIRTIO_RING_F_INDIRECT_DESC & 1,
	};
	log_debug("queue %u: %u descriptors at 0x%llx", index, ring.size,
		  (unsigned long long)ring.desc);
	ret = queue_enable(&worker->queues[index], &layout);
	if (ret)
		worker_fail(worker, index, ret);
}

static void worker_serve(struct worker *worker, unsigned int index)
{
	struct queue *queue = &worker->queues[index];
	unsigned int count;
	int ret = 0;

	worker->backlog[index] = false;
	if (!worker->running)
		return;
	worker_queue_enable(worker, index);
	for (count = 0; count < WORKER_BATCH; count++) {
		struct command *command;

		ret = command_pop(queue, &command);
		if (ret == 0) {
			ret = queue_wait(queue);
			if (ret > 0)
				continue;
		}
		if (ret <= 0)
			break;
		if (index == QUEUE_CONTROL)
			control_run(&worker->gpu, command);
		else
			cursor_run(&worker->gpu, command);
		ret = command_finish(command);
		if (ret)
			break;
	}
	worker->backlog[index] = count == WORKER_BATCH;
	if (queue_signal(queue))
		session_interrupt(&worker->session, index);
	if (ret < 0)
		worker_fail(worker, index, ret);
}

static void worker_status(struct worker *worker, uint32_t status)
{
	log_debug("generation %u: status 0x%x", worker->session.generation, status);
	if (!(status & VIRTIO_CONFIG_S_DRIVER_OK) || worker->running)
		return;
	worker->running = true;
	/* kicks that came before this were not looked at */
	for (unsigned int index = 0; index < OCTAVO_QUEUES; index++)
		worker_serve(worker, index);
}

static void worker_reset(struct worker *worker, uint32_t generation)
{
	int ret;

	log_debug("reset: generation %u", generation);
	worker->running = false;
	worker->failed = false;
	for (unsigned int index = 0; index < OCTAVO_QUEUES; index++)
		queue_disable(&worker->queues[index]);
	gpu_reset(&worker->gpu);
	ret = session_reset_ack(&worker->session, generation);
	if (ret && ret != -ESTALE)
		log_error("the reset to generation %u cannot be acknowledged: %s", generation,
			  strerror(-ret));
}

/* The device's state as it stands, for a worker that has read none of the events. */
static void worker_adopt(struct worker *worker)
{
	struct octavo_session_info info;
	int ret = session_info(&worker->session, &info);

	if (ret)
		return;
	console_watch(&worker->console, info.flags & OCTAVO_SESSION_CONSOLE);
	gpu_set_mode(&worker->gpu, info.vgpu.width, info.vgpu.height);
	if (info.vgpu.status & VIRTIO_CONFIG_S_NEEDS_RESET) {
		log_info("the guest runs with an earlier worker's state: serving begins when it resets "
			 "the device (reboot, or unbind and bind of its driver)");
		return;
	}
	worker_reset(worker, info.vgpu.generation);
	if (worker->session.generation == info.vgpu.generation)
		worker_status(worker, info.vgpu.status);
}

static void worker_event(struct worker *worker, const struct octavo_event *event)
{
	if (event->type == OCTAVO_EVENT_RESET) {
		/* the one before READY was acknowledged by worker_adopt() */
		if (event->generation != worker->session.generation)
			worker_reset(worker, event->generation);
		return;
	}
	switch (event->type) {
	case OCTAVO_EVENT_STATUS:
		if (event->generation == worker->session.generation)
			worker_status(worker, (uint32_t)event->value);
		break;
	case OCTAVO_EVENT_QUEUE:
		if (event->generation == worker->session.generation && event->value < OCTAVO_QUEUES)
			worker_serve(worker, (unsigned int)event->value);
		break;
	case OCTAVO_EVENT_MODE:
		gpu_set_mode(&worker->gpu, (uint32_t)event->start, (uint32_t)event->length);
		session_config_event(&worker->session, VIRTIO_GPU_EVENT_DISPLAY);
		break;
	case OCTAVO_EVENT_CONSOLE:
		console_watch(&worker->console, event->value);
		break;
	case OCTAVO_EVENT_CLOSED:
		worker->closed = true;
		break;
	default:
		/* CONFIG: applied by the module; UNMAPPED: the window shows scratch and says so */
		break;
	}
}

static int worker_events(struct worker *worker)
{
	struct octavo_event events[WORKER_EVENTS];
	int count = session_events(&worker->session, events, WORKER_EVENTS);

	if (count == 0)
		worker->closed = true;
	for (int i = 0; i < count && !worker->closed; i++)
		worker_event(worker, &events[i]);
	return count < 0 && count != -EAGAIN ? count : 0;
}

static int worker_watch(struct worker *worker, int fd, uint32_t source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	return epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int worker_loop(struct worker *worker)
{
	struct epoll_event ready[OCTAVO_QUEUES + 1];
	int count, ret = 0;

	while (!worker->closed && !ret) {
		bool backlog = worker->backlog[QUEUE_CONTROL] || worker->backlog[QUEUE_CURSOR];

		count = epoll_wait(worker->epoll, ready, OCTAVO_QUEUES + 1, backlog ? 0 : -1);
		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count; i++) {
			uint32_t source = ready[i].data.u32;
			uint64_t kicks;

			if (source == SOURCE_SESSION)
				ret = worker_events(worker);
			else if (read(worker->kicks[source], &kicks, sizeof(kicks)) > 0)
				worker->backlog[source] = true;
		}
		/* the cursor first: it is short, and what a person feels */
		for (unsigned int index = OCTAVO_QUEUES; index-- > 0 && !worker->closed;) {
			if (worker->backlog[index])
				worker_serve(worker, index);
		}
	}
	return ret;
}

static int worker_offer(struct worker *worker)
{
	const struct octavo_session_info *info = &worker->session.info;
	uint64_t features = WORKER_FEATURES_2D;
	int ret = session_offer(&worker->session, features, info->vgpu.heads, 0);

	if (ret == -EBUSY && (info->offered_features & ~features) == 0 && info->num_capsets == 0) {
		/* less was promised by an earlier version of this program, and the guest holds to it */
		features = info->offered_features;
		ret = session_offer(&worker->session, features, info->vgpu.heads, 0);
	}
	if (ret)
		log_error("the module refuses the offer of features 0x%llx (a former worker offered "
			  "0x%llx with %u capsets): %s", (unsigned long long)features,
			  (unsigned long long)info->offered_features, info->num_capsets,
			  strerror(-ret));
	return ret;
}

static int worker_queues(struct worker *worker)
{
	int ret = 0;

	for (unsigned int index = 0; index < OCTAVO_QUEUES && !ret; index++) {
		queue_create(&worker->queues[index], &worker->session.guest);
		worker->kicks[index] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (worker->kicks[index] < 0)
			return -errno;
		ret = worker_watch(worker, worker->kicks[index], index);
		if (!ret)
			ret = session_kick_set(&worker->session, index, worker->kicks[index]);
	}
	return ret;
}

static int worker_start(struct worker *worker)
{
	const struct octavo_session_info *info = &worker->session.info;
	struct gpu_setup setup = {
		.heads = info->vgpu.heads,
		.width = info->vgpu.width,
		.height = info->vgpu.height,
	};
	int ret;

	gpu_default_limits(&setup.limits, info->vgpu.vram_bytes);
	ret = console_create(&worker->console, worker->session.console, &worker_console_ops, worker);
	if (ret)
		return ret;
	gpu_create(&worker->gpu, &worker->session.guest, &worker->console, &setup);
	worker->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (worker->epoll < 0)
		return -errno;
	ret = worker_queues(worker);
	if (!ret)
		ret = worker_offer(worker);
	if (ret)
		return ret;
	worker_adopt(worker);
	ret = session_ready(&worker->session);
	if (ret)
		return ret;
	return worker_watch(worker, worker->session.fd, SOURCE_SESSION);
}

int worker_run(const struct worker_options *options)
{
	/* lives as long as the process, and ends with it */
	static struct worker worker;
	int ret;

	ret = session_init(&worker.session, options->session_fd);
	if (ret) {
		log_error("file descriptor %d is not a session of octavo.ko's interface version %d: %s",
			  options->session_fd, OCTAVO_ABI_VERSION, strerror(-ret));
		return ret;
	}
	ret = worker_start(&worker);
	if (!ret)
		ret = worker_loop(&worker);
	/* the VM may close the device at any moment, in the middle of anything */
	if (ret == -ENODEV)
		ret = 0;
	if (ret)
		log_error("vGPU %s is not served any more: %s", options->uuid, strerror(-ret));
	return ret;
}
