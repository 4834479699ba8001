// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_ring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/control.h"
#include "gpu/cursor.h"
#include "gpu/log.h"
#include "vfio/queue.h"
#include "vfio/session.h"
#include "vfio/spin.h"

/* Requests of a queue that run before the loop looks at the session again. */
#define WORKER_BATCH		64
#define WORKER_EVENTS		16
/* While it looks at empty queues, everything else waits this long at most. */
#define WORKER_GLANCE_NS	20000u

#define WORKER_FEATURES_2D                                                                         \
	(1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_ACCESS_PLATFORM |                           \
	 1ULL << VIRTIO_RING_F_INDIRECT_DESC | 1ULL << VIRTIO_RING_F_EVENT_IDX |                   \
	 1ULL << VIRTIO_GPU_F_EDID)

#define WORKER_FEATURES_3D                                                                         \
	(WORKER_FEATURES_2D | 1ULL << VIRTIO_GPU_F_VIRGL | 1ULL << VIRTIO_GPU_F_RESOURCE_UUID |    \
	 1ULL << VIRTIO_GPU_F_RESOURCE_BLOB | 1ULL << VIRTIO_GPU_F_CONTEXT_INIT)

#define QUEUE_CONTROL		0
#define QUEUE_CURSOR		1

/* epoll_event.data: a queue's index, or one of these */
#define SOURCE_SESSION		OCTAVO_QUEUES
#define SOURCE_RENDERER		(OCTAVO_QUEUES + 1)
#define SOURCES			(OCTAVO_QUEUES + 2)

struct worker {
	const struct worker_options *options;
	struct session session;
	struct console console;
	struct gpu gpu;
	struct queue queues[OCTAVO_QUEUES];
	int kicks[OCTAVO_QUEUES];
	int epoll;
	bool running;		/* the driver said DRIVER_OK in the generation that is served */
	bool failed;		/* and was told that it has to reset the device */
	bool backlog[OCTAVO_QUEUES];	/* a batch ended before its queue was empty */
	struct spin spin;
	uint64_t emptied_ns;	/* when the last queue was found empty; 0: not since the last request */
	bool closed;
	bool has_renderer;
	struct renderer renderer;
	bool stalled;		/* the renderer has enough to do: the control queue waits */
	uint32_t resetting;	/* generation to acknowledge when the renderer is quiet, or 0 */
};

static void worker_resize(void *context, uint32_t width, uint32_t height, uint32_t stride)
{
	struct worker *worker = context;
	int ret = session_console_set(&worker->session, width, height, stride);

	if (ret && ret != -ESTALE)
		log_error("the console refuses a plane of %ux%u: %s", width, height, strerror(-ret));
}

static const struct console_ops worker_console_ops = { .resize = worker_resize };

/* ------------------------------------------------------------------------------------------------
 * What the renderer asks for, on its thread
 */

static void worker_answered(void *context)
{
	struct worker *worker = context;

	if (queue_signal(&worker->queues[QUEUE_CONTROL]))
		session_interrupt(&worker->session, QUEUE_CONTROL);
}

static int worker_window_show(void *context, struct window_mapping *mapping, uint64_t offset,
			      uint32_t caching)
{
	struct worker *worker = context;

	return window_show(&worker->session, mapping, offset, caching);
}

static int worker_window_hide(void *context, struct window_mapping *mapping)
{
	struct worker *worker = context;

	return window_hide(&worker->session, mapping);
}

static int worker_window_show_again(void *context, struct window_mapping *mapping)
{
	struct worker *worker = context;

	return window_show_again(&worker->session, mapping);
}

static const struct renderer_ops worker_renderer_ops = {
	.answered = worker_answered,
	.show = worker_window_show,
	.hide = worker_window_hide,
	.show_again = worker_window_show_again,
};

static void worker_cursor_3d(void *context, uint32_t resource_id)
{
	struct worker *worker = context;

	renderer_cursor(&worker->renderer, resource_id);
}

/* ------------------------------------------------------------------------------------------------
 * Queues
 */

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

/* Requests that need nothing of what the guest has made are answered at once. */
static bool worker_answer_query(struct worker *worker, struct command *command)
{
	if (command->header.flags & VIRTIO_GPU_FLAG_FENCE)
		return false;
	switch (command->header.type) {
	case VIRTIO_GPU_CMD_GET_DISPLAY_INFO:
	case VIRTIO_GPU_CMD_GET_EDID:
		control_run(&worker->gpu, command);
		return true;
	case VIRTIO_GPU_CMD_GET_CAPSET_INFO:
	case VIRTIO_GPU_CMD_GET_CAPSET:
		if (!capsets_known(&worker->renderer.capsets))
			return false;
		capsets_answer(&worker->renderer.capsets, command);
		return true;
	default:
		return false;
	}
}

/* Runs the request, or hands it to the renderer, whose thread answers it. */
static int worker_run_command(struct worker *worker, unsigned int index, struct command *command)
{
	if (index == QUEUE_CURSOR) {
		cursor_run(&worker->gpu, command);
	} else if (!worker->has_renderer) {
		control_run(&worker->gpu, command);
	} else if (!worker_answer_query(worker, command)) {
		worker->stalled = !renderer_submit(&worker->renderer, command);
		return 0;
	}
	return command_finish(command);
}

static uint64_t worker_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool worker_can_serve(const struct worker *worker, unsigned int index)
{
	return worker->running && !(index == QUEUE_CONTROL && worker->stalled);
}

static void worker_serve(struct worker *worker, unsigned int index)
{
	struct queue *queue = &worker->queues[index];
	unsigned int count;
	int ret = 0;

	worker->backlog[index] = false;
	if (!worker_can_serve(worker, index))
		return;
	worker_queue_enable(worker, index);
	for (count = 0; count < WORKER_BATCH; count++) {
		struct command *command;

		ret = command_pop(queue, &command);
		if (ret <= 0)
			break;
		if (worker->emptied_ns)
			spin_came(&worker->spin, worker_now_ns() - worker->emptied_ns);
		worker->emptied_ns = 0;
		ret = worker_run_command(worker, index, command);
		if (ret || (index == QUEUE_CONTROL && worker->stalled))
			break;
	}
	worker->backlog[index] = count == WORKER_BATCH;
	if (queue_signal(queue))
		session_interrupt(&worker->session, index);
	if (count)
		worker->emptied_ns = worker_now_ns();
	if (ret < 0)
		worker_fail(worker, index, ret);
}

static bool worker_pending(struct worker *worker)
{
	bool found = false;

	for (unsigned int index = 0; index < OCTAVO_QUEUES; index++) {
		if (!worker_can_serve(worker, index) || !queue_pending(&worker->queues[index]))
			continue;
		worker->backlog[index] = true;
		found = true;
	}
	return found;
}

/* Looks at the rings for as long as it is likely to pay. True: a request is there. */
static bool worker_spin(struct worker *worker)
{
	uint64_t window_ns = spin_window(&worker->spin), now = worker_now_ns();
	uint64_t glanced = now;
	struct epoll_event other;

	while (worker->emptied_ns && now - worker->emptied_ns < window_ns) {
		if (worker_pending(worker))
			return true;
		now = worker_now_ns();
		if (now - glanced < WORKER_GLANCE_NS)
			continue;
		if (epoll_wait(worker->epoll, &other, 1, 0) > 0)
			break;
		glanced = now;
	}
	return false;
}

/* Asks for kicks. True: a request was there before the guest knew of it. */
static bool worker_arm(struct worker *worker)
{
	bool found = false;

	for (unsigned int index = 0; index < OCTAVO_QUEUES; index++) {
		int ret = worker_can_serve(worker, index) ? queue_wait(&worker->queues[index]) : 0;

		if (ret < 0)
			worker_fail(worker, index, ret);
		if (ret > 0)
			worker->backlog[index] = found = true;
	}
	return found;
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

/* ------------------------------------------------------------------------------------------------
 * Resets
 */

/*
 * A copy of this process takes over: whatever the guest made in virglrenderer, and whatever it may
 * have done to it, ends here. The copy finds the device's state in the session.
 */
static void worker_replace(struct worker *worker)
{
	const struct worker_options *options = worker->options;

	int capsets = worker->options->renderer.capsets_fd;
	char text[16];

	log_debug("the renderer was in use: a fresh copy of the worker takes over");
	renderer_kill(&worker->renderer);
	if (!capsets && capsets_known(&worker->renderer.capsets))
		capsets = capsets_save(&worker->renderer.capsets);
	syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
	fcntl(options->session_fd, F_SETFD, 0);
	if (options->gate_fd >= 0)
		fcntl(options->gate_fd, F_SETFD, 0);
	if (capsets > 0) {
		fcntl(capsets, F_SETFD, 0);
		snprintf(text, sizeof(text), "%d", capsets);
		setenv(options->capsets_variable, text, 1);
	}
	execv("/proc/self/exe", options->arguments);
	log_error("the worker cannot start its copy: %s", strerror(errno));
	/* octavod starts another one */
	_exit(1);
}

static void worker_reset_finish(struct worker *worker, uint32_t generation)
{
	int ret;

	worker->resetting = 0;
	gpu_reset(&worker->gpu);
	ret = session_reset_ack(&worker->session, generation);
	if (ret && ret != -ESTALE)
		log_error("the reset to generation %u cannot be acknowledged: %s", generation,
			  strerror(-ret));
}

static void worker_reset(struct worker *worker, uint32_t generation)
{
	log_debug("reset: generation %u", generation);
	worker->running = false;
	worker->failed = false;
	worker->stalled = false;
	worker->emptied_ns = 0;
	for (unsigned int index = 0; index < OCTAVO_QUEUES; index++)
		queue_disable(&worker->queues[index]);
	if (worker->has_renderer && renderer_is_used(&worker->renderer))
		worker_replace(worker);
	if (worker->has_renderer && !renderer_is_quiet(&worker->renderer)) {
		worker->resetting = generation;
		renderer_quiesce(&worker->renderer);
		return;
	}
	worker_reset_finish(worker, generation);
}

/* The renderer has news. */
static void worker_renderer(struct worker *worker)
{
	struct octavo_session_info info;
	uint64_t count;

	if (read(worker->renderer.notify_fd, &count, sizeof(count)) < 0)
		return;
	if (worker->queues[QUEUE_CONTROL].broken)
		worker_fail(worker, QUEUE_CONTROL, EINVAL);
	worker->stalled = false;
	worker->backlog[QUEUE_CONTROL] = true;
	if (!worker->resetting || !renderer_is_quiet(&worker->renderer))
		return;
	/* a request that was under way may have been the first of the 3D part */
	if (renderer_is_used(&worker->renderer))
		worker_replace(worker);
	worker_reset_finish(worker, worker->resetting);
	/* the guest did not wait */
	if (!session_info(&worker->session, &info) &&
	    info.vgpu.generation == worker->session.generation)
		worker_status(worker, info.vgpu.status);
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
		if (event->value && worker->has_renderer)
			renderer_refresh(&worker->renderer);
		break;
	case OCTAVO_EVENT_KICK:
		if (event->value < OCTAVO_QUEUES)
			worker->backlog[event->value] = true;
		break;
	case OCTAVO_EVENT_WINDOW_LOST:
		if (worker->has_renderer && event->generation == worker->session.generation)
			renderer_window_lost(&worker->renderer, event->start, event->length);
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
	struct epoll_event ready[SOURCES];
	int count, ret = 0;

	while (!worker->closed && !ret) {
		bool backlog = worker->backlog[QUEUE_CONTROL] || worker->backlog[QUEUE_CURSOR] ||
			       worker_spin(worker) || worker_arm(worker);

		count = epoll_wait(worker->epoll, ready, SOURCES, backlog ? 0 : -1);
		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count; i++) {
			uint32_t source = ready[i].data.u32;
			uint64_t kicks;

			if (source == SOURCE_SESSION)
				ret = worker_events(worker);
			else if (source == SOURCE_RENDERER)
				worker_renderer(worker);
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
	uint64_t features = worker->has_renderer ? WORKER_FEATURES_3D : WORKER_FEATURES_2D;
	uint32_t ids[RENDERER_CAPSETS];
	uint32_t capsets = renderer_capset_ids(worker->options->renderer.capsets, ids);
	int ret = session_offer(&worker->session, features, info->vgpu.heads, capsets);

	if (ret == -EBUSY && (info->offered_features & ~features) == 0 &&
	    info->num_capsets <= capsets) {
		/* less was promised by an earlier version of this program, and the guest holds to it */
		features = info->offered_features;
		capsets = info->num_capsets;
		ret = session_offer(&worker->session, features, info->vgpu.heads, capsets);
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

static int worker_start_renderer(struct worker *worker)
{
	static struct gpu_cursor_3d cursor = { .show = worker_cursor_3d };
	int ret = renderer_start(&worker->renderer, &worker->gpu, &worker_renderer_ops, worker,
				 &worker->options->renderer);

	if (ret)
		return ret;
	cursor.context = worker;
	worker->gpu.cursor_3d = &cursor;
	return worker_watch(worker, worker->renderer.notify_fd, SOURCE_RENDERER);
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
	worker->has_renderer = worker->options->renderer.capsets;
	ret = worker_queues(worker);
	if (!ret)
		ret = worker_offer(worker);
	if (!ret && worker->has_renderer)
		ret = worker_start_renderer(worker);
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

	worker.options = options;
	worker.spin.limit_ns = options->spin_ns;
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
	if (worker.has_renderer)
		renderer_kill(&worker.renderer);
	if (ret)
		log_error("vGPU %s is not served any more: %s", options->uuid, strerror(-ret));
	return ret;
}
