// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/renderer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <virgl/virglrenderer.h>

#include "gpu/log.h"
#include "gpu/blob.h"
#include "gpu/picture.h"
#include "gpu/render.h"

/* Fences whose renderer has no descriptor to wait on are looked at this often. */
#define RENDERER_POLL_MS	2
/* Requests that run before fences are looked at again. */
#define RENDERER_BATCH		8

enum renderer_job_kind { JOB_COMMAND, JOB_QUIESCE, JOB_WINDOW_LOST };

struct renderer_job {
	struct renderer_job *next;
	enum renderer_job_kind kind;
	struct command *command;
	uint64_t offset, length;
};

/* ------------------------------------------------------------------------------------------------
 * The loop's side
 */

static void renderer_signal(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void renderer_queue(struct renderer *renderer, const struct renderer_job *template)
{
	struct renderer_job *job = malloc(sizeof(*job));

	if (!job) {
		log_error("out of memory: a request to the renderer is lost");
		if (template->command)
			command_drop(template->command);
		return;
	}
	*job = *template;
	pthread_mutex_lock(&renderer->lock);
	if (renderer->last)
		renderer->last->next = job;
	else
		renderer->first = job;
	renderer->last = job;
	if (job->command)
		renderer->fifo_bytes += job->command->request_bytes;
	pthread_mutex_unlock(&renderer->lock);
	renderer_signal(renderer->wake_fd);
}

bool renderer_submit(struct renderer *renderer, struct command *command)
{
	bool full;

	renderer_queue(renderer, &(struct renderer_job){ .kind = JOB_COMMAND, .command = command });
	pthread_mutex_lock(&renderer->lock);
	full = renderer->fifo_bytes >= RENDERER_FIFO_BYTES;
	renderer->full = full;
	renderer->quiet = false;
	pthread_mutex_unlock(&renderer->lock);
	return !full;
}

void renderer_refresh(struct renderer *renderer)
{
	pthread_mutex_lock(&renderer->lock);
	renderer->refresh = true;
	pthread_mutex_unlock(&renderer->lock);
	renderer_signal(renderer->wake_fd);
}

void renderer_cursor(struct renderer *renderer, uint32_t resource_id)
{
	/* only the last one is ever seen: a guest cannot pile them up */
	pthread_mutex_lock(&renderer->lock);
	renderer->cursor.wanted = true;
	renderer->cursor.resource_id = resource_id;
	pthread_mutex_unlock(&renderer->lock);
	renderer_signal(renderer->wake_fd);
}

void renderer_window_lost(struct renderer *renderer, uint64_t offset, uint64_t length)
{
	renderer_queue(renderer, &(struct renderer_job){
		.kind = JOB_WINDOW_LOST, .offset = offset, .length = length,
	});
}

bool renderer_is_used(struct renderer *renderer)
{
	return __atomic_load_n(&renderer->used, __ATOMIC_ACQUIRE);
}

void renderer_quiesce(struct renderer *renderer)
{
	struct renderer_job *dropped;

	pthread_mutex_lock(&renderer->lock);
	dropped = renderer->first;
	renderer->first = NULL;
	renderer->last = NULL;
	renderer->fifo_bytes = 0;
	renderer->quiet = false;
	renderer->full = false;
	renderer->refresh = false;
	renderer->cursor.wanted = false;
	pthread_mutex_unlock(&renderer->lock);
	while (dropped) {
		struct renderer_job *job = dropped;

		dropped = job->next;
		if (job->command)
			command_drop(job->command);
		free(job);
	}
	renderer_queue(renderer, &(struct renderer_job){ .kind = JOB_QUIESCE });
}

bool renderer_is_quiet(struct renderer *renderer)
{
	bool quiet;

	pthread_mutex_lock(&renderer->lock);
	quiet = renderer->quiet;
	pthread_mutex_unlock(&renderer->lock);
	return quiet;
}

void renderer_kill(struct renderer *renderer)
{
	server_kill(&renderer->server);
}

unsigned int renderer_capset_ids(unsigned int capsets, uint32_t ids[RENDERER_CAPSETS])
{
	unsigned int count = 0;

	if (capsets & RENDERER_VIRGL) {
		ids[count++] = VIRTIO_GPU_CAPSET_VIRGL;
		ids[count++] = VIRTIO_GPU_CAPSET_VIRGL2;
	}
	if (capsets & RENDERER_VENUS)
		ids[count++] = CAPSET_VENUS;
	return count;
}

/* ------------------------------------------------------------------------------------------------
 * Fences
 */

void renderer_answer(void *context, struct command *command)
{
	struct renderer *renderer = context;

	if (!command) {
		/* a fence of renderer_leave() */
		if (--renderer->gate_fences == 0)
			gate_leave(renderer->gate);
		return;
	}
	if (command_finish(command))
		renderer_signal(renderer->notify_fd);	/* the ring broke: the loop sees it */
	renderer->answers = true;
}

struct renderer_context *renderer_context(struct renderer *renderer, uint32_t id)
{
	struct renderer_context *context = renderer->contexts;

	while (context && context->id != id)
		context = context->next;
	return context;
}

static void renderer_write_fence(void *cookie, uint32_t sequence)
{
	struct renderer *renderer = cookie;

	timeline_signal(&renderer->timeline, sequence, renderer_answer, renderer);
}

static void renderer_write_context_fence(void *cookie, uint32_t id, uint32_t ring,
					 uint64_t sequence)
{
	struct renderer *renderer = cookie;
	struct renderer_context *context = renderer_context(renderer, id);

	if (context && ring < RENDERER_RINGS && context->rings[ring])
		timeline_signal(context->rings[ring], (uint32_t)sequence, renderer_answer,
				renderer);
}

/* Gives the answer in its turn: with the GPU's fence if @work, else behind those before it. */
static void renderer_finish(struct renderer *renderer, struct command *command, bool work)
{
	struct renderer_context *context;
	struct timeline *timeline = &renderer->timeline;
	uint64_t sequence = 0;
	unsigned int ring = command->header.ring_idx;

	if (!(command->header.flags & VIRTIO_GPU_FLAG_FENCE)) {
		renderer_answer(renderer, command);
		return;
	}
	if (command->header.flags & VIRTIO_GPU_FLAG_INFO_RING_IDX) {
		context = renderer_context(renderer, command->header.ctx_id);
		if (!context || ring >= RENDERER_RINGS) {
			renderer_answer(renderer, command);
			return;
		}
		if (!context->rings[ring])
			context->rings[ring] = calloc(1, sizeof(*timeline));
		timeline = context->rings[ring];
		if (!timeline) {
			renderer_answer(renderer, command);
			return;
		}
		if (work && !context->lost) {
			sequence = timeline_next(timeline);
			if (virgl_renderer_context_create_fence(context->id, 0, ring, sequence))
				sequence = 0;
		}
	} else if (work && renderer->options.capsets & RENDERER_VIRGL) {
		sequence = timeline_next(timeline);
		if (virgl_renderer_create_fence((int)(uint32_t)sequence, command->header.ctx_id))
			sequence = 0;
	}
	timeline_add(timeline, command, sequence, renderer_answer, renderer);
}

/* ------------------------------------------------------------------------------------------------
 * The gate
 */

static bool renderer_gate_is_open(const struct renderer *renderer)
{
	return atomic_load(&gate_page(renderer->gate)->open);
}

void renderer_enter(struct renderer *renderer)
{
	struct pollfd fences = { .fd = renderer->virgl_fd, .events = POLLIN };

	if (!renderer->gate)
		return;
	/* work under way holds the gate already, unless its turn is over: then it drains first */
	while (renderer->gate_fences >= RENDERER_GATE_FENCES ||
	       (renderer->gate_fences && !renderer_gate_is_open(renderer))) {
		poll(&fences, renderer->virgl_fd >= 0, RENDERER_POLL_MS);
		virgl_renderer_poll();
	}
	if (!renderer->gate_fences)
		gate_enter(renderer->gate, GATE_WORK);
}

void renderer_leave(struct renderer *renderer)
{
	uint64_t sequence;

	if (!renderer->gate)
		return;
	sequence = timeline_next(&renderer->timeline);
	if (virgl_renderer_create_fence((int)(uint32_t)sequence, 0) == 0) {
		renderer->gate_fences++;
		timeline_add(&renderer->timeline, NULL, sequence, renderer_answer, renderer);
	} else if (!renderer->gate_fences) {
		gate_leave(renderer->gate);
	}
}

bool renderer_is_gated(struct renderer *renderer, struct renderer_context *context)
{
	if (!renderer->gate || context->gated || !context->pid)
		return true;
	context->gated = gate_is_registered(renderer->gate, context->pid);
	if (context->gated)
		return true;
	log_error("the render process %d of context %u did not load the layer VK_LAYER_OCTAVO_slice: "
		  "killing it, or it would take more than this vGPU's share", (int)context->pid,
		  context->id);
	syscall(SYS_pidfd_send_signal, context->pidfd, SIGKILL, NULL, 0);
	return false;
}

/* The render process of a context ended: its fences will never come. */
static void renderer_context_lost(struct renderer *renderer, struct renderer_context *context)
{
	log_warning("the render process %d of the guest's context %u ended: the context is lost",
		    (int)context->pid, context->id);
	context->lost = true;
	epoll_ctl(renderer->epoll, EPOLL_CTL_DEL, context->pidfd, NULL);
	if (context->fence_fd >= 0)
		epoll_ctl(renderer->epoll, EPOLL_CTL_DEL, context->fence_fd, NULL);
	context->fence_fd = -1;
	virgl_renderer_context_destroy(context->id);
	for (unsigned int ring = 0; ring < RENDERER_RINGS; ring++) {
		if (context->rings[ring])
			timeline_abort(context->rings[ring], renderer_answer, renderer);
	}
}

static void renderer_poll(struct renderer *renderer)
{
	struct renderer_context *context, *next;

	virgl_renderer_poll();
	for (context = renderer->contexts; context; context = next) {
		next = context->next;
		if (context->fence_fd >= 0 && !context->lost)
			virgl_renderer_context_poll(context->id);
	}
}

/* ------------------------------------------------------------------------------------------------
 * The thread
 */

static int renderer_drm_fd(void *cookie)
{
	struct renderer *renderer = cookie;

	if (!renderer->options.render_node)
		return -1;
	return open(renderer->options.render_node, O_RDWR | O_CLOEXEC);
}

static int renderer_server_fd(void *cookie, uint32_t version)
{
	struct renderer *renderer = cookie;
	int fd = server_start(&renderer->server, &renderer->options);

	(void)version;
	if (fd < 0)
		log_error("the render server does not start: %s", strerror(-fd));
	return fd;
}

static void renderer_log(enum virgl_log_level_flags level, const char *message, void *data)
{
	size_t length = strcspn(message, "\n");

	(void)data;
	if (level >= VIRGL_LOG_LEVEL_WARNING)
		log_warning("virglrenderer: %.*s", (int)length, message);
	else
		log_debug("virglrenderer: %.*s", (int)length, message);
}

static void renderer_watch(struct renderer *renderer, int fd, void *data)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = data };

	if (fd >= 0 && epoll_ctl(renderer->epoll, EPOLL_CTL_ADD, fd, &event))
		log_error("the renderer cannot wait for a descriptor: %s", strerror(errno));
}

static void renderer_capsets(struct renderer *renderer)
{
	struct capsets *capsets = &renderer->capsets;
	uint32_t ids[RENDERER_CAPSETS] = { 0 };

	if (capsets_known(capsets))
		return;
	capsets->count = renderer_capset_ids(renderer->options.capsets, ids);
	for (unsigned int i = 0; i < capsets->count; i++) {
		struct capset *set = &capsets->sets[i];

		set->id = ids[i];
		virgl_renderer_get_cap_set(ids[i], &set->version, &set->bytes);
		set->data = set->bytes ? calloc(1, set->bytes) : NULL;
		if (set->data)
			virgl_renderer_fill_caps(ids[i], set->version, set->data);
	}
	capsets_publish(capsets);
}

int renderer_flags(unsigned int capsets)
{
	int flags = VIRGL_RENDERER_THREAD_SYNC | VIRGL_RENDERER_USE_EXTERNAL_BLOB;

	if (capsets & RENDERER_VIRGL)
		flags |= VIRGL_RENDERER_USE_EGL | VIRGL_RENDERER_USE_SURFACELESS;
	else
		flags |= VIRGL_RENDERER_NO_VIRGL;
	if (capsets & RENDERER_VENUS)
		flags |= VIRGL_RENDERER_VENUS | VIRGL_RENDERER_RENDER_SERVER;
	return flags;
}

static void renderer_init(struct renderer *renderer)
{
	static struct virgl_renderer_callbacks callbacks = {
		.version = 3,
		.write_fence = renderer_write_fence,
		.get_drm_fd = renderer_drm_fd,
		.write_context_fence = renderer_write_context_fence,
		.get_server_fd = renderer_server_fd,
	};
	char gate[16];
	int ret, error = 0;

	virgl_set_log_callback(renderer_log, NULL, NULL);
	if (renderer->options.gate_fd >= 0) {
		snprintf(gate, sizeof(gate), "%d", renderer->options.gate_fd);
		renderer->gate = gate_open(gate, &error);
		if (!renderer->gate) {
			log_error("descriptor %s is no gate of the scheduler (%s): the guest has no 3D",
				  gate, strerror(-error));
			return;
		}
	}
	ret = virgl_renderer_init(renderer, renderer_flags(renderer->options.capsets), &callbacks);
	if (ret) {
		log_error("virglrenderer cannot be initialised (error %d): the guest has no 3D", ret);
		return;
	}
	renderer->ready = true;
	renderer->virgl_fd = virgl_renderer_get_poll_fd();
	renderer_watch(renderer, renderer->virgl_fd, &renderer->virgl_fd);
	renderer_capsets(renderer);
	log_debug("virglrenderer is ready, fences on descriptor %d", renderer->virgl_fd);
}

static void renderer_run(struct renderer *renderer, struct renderer_job *job)
{
	switch (job->kind) {
	case JOB_COMMAND:
		renderer_finish(renderer, job->command, render_run(renderer, job->command));
		break;
	case JOB_QUIESCE:
		picture_drop(renderer);
		pthread_mutex_lock(&renderer->lock);
		renderer->quiet = true;
		pthread_mutex_unlock(&renderer->lock);
		renderer_signal(renderer->notify_fd);
		break;
	case JOB_WINDOW_LOST:
		blob_window_lost(renderer, job->offset, job->length);
		break;
	}
}

static bool renderer_has_job(struct renderer *renderer)
{
	bool has;

	pthread_mutex_lock(&renderer->lock);
	has = renderer->first || renderer->refresh || renderer->cursor.wanted || renderer->stop;
	pthread_mutex_unlock(&renderer->lock);
	return has;
}

static void renderer_next(struct renderer *renderer)
{
	struct renderer_job *job = NULL;
	bool notify = false, refresh, cursor;
	uint32_t resource_id;

	pthread_mutex_lock(&renderer->lock);
	refresh = renderer->refresh;
	renderer->refresh = false;
	cursor = renderer->cursor.wanted;
	renderer->cursor.wanted = false;
	resource_id = renderer->cursor.resource_id;
	job = renderer->first;
	if (job) {
		renderer->first = job->next;
		if (!renderer->first)
			renderer->last = NULL;
		if (job->kind == JOB_COMMAND)
			renderer->fifo_bytes -= job->command->request_bytes;
		notify = renderer->full && renderer->fifo_bytes < RENDERER_FIFO_BYTES / 2;
		if (notify)
			renderer->full = false;
	}
	pthread_mutex_unlock(&renderer->lock);
	if (notify)
		renderer_signal(renderer->notify_fd);
	if (refresh)
		picture_refresh(renderer, NULL);
	if (cursor)
		picture_cursor(renderer, resource_id);
	if (!job)
		return;
	renderer_run(renderer, job);
	free(job);
}

/* Whether a fence is out that no descriptor will tell of. */
static bool renderer_must_poll(const struct renderer *renderer)
{
	return renderer->ready && renderer->virgl_fd < 0 &&
	       renderer->options.capsets & RENDERER_VIRGL && renderer->timeline.first;
}

static bool renderer_is_stopped(struct renderer *renderer)
{
	bool stop;

	pthread_mutex_lock(&renderer->lock);
	stop = renderer->stop;
	pthread_mutex_unlock(&renderer->lock);
	return stop;
}

static void *renderer_main(void *argument)
{
	struct renderer *renderer = argument;
	struct epoll_event ready[16];
	uint64_t count;

	renderer_init(renderer);
	while (!renderer_is_stopped(renderer)) {
		bool fences = renderer_must_poll(renderer);
		int wait_ms = renderer_has_job(renderer) ? 0 : fences ? RENDERER_POLL_MS : -1;
		int events = epoll_wait(renderer->epoll, ready, 16, wait_ms);

		for (int i = 0; i < events; i++) {
			struct renderer_context *context = ready[i].data.ptr;

			if (ready[i].data.ptr == &renderer->wake_fd) {
				if (read(renderer->wake_fd, &count, sizeof(count)) < 0)
					continue;
			} else if (ready[i].data.ptr == &renderer->virgl_fd) {
				fences = true;
			} else if ((uintptr_t)context & 1) {
				context = (void *)((uintptr_t)context & ~(uintptr_t)1);
				renderer_context_lost(renderer, context);
			} else {
				fences = true;
			}
		}
		if (fences)
			renderer_poll(renderer);
		/* a few requests, then the fences again: an answer must not wait for a long FIFO */
		for (int i = 0; i < RENDERER_BATCH && renderer_has_job(renderer); i++)
			renderer_next(renderer);
		if (renderer->answers) {
			renderer->answers = false;
			renderer->ops->answered(renderer->context);
		}
	}
	return NULL;
}

void renderer_stop(struct renderer *renderer)
{
	pthread_mutex_lock(&renderer->lock);
	renderer->stop = true;
	pthread_mutex_unlock(&renderer->lock);
	renderer_signal(renderer->wake_fd);
	pthread_join(renderer->thread, NULL);
	server_kill(&renderer->server);
}

int renderer_start(struct renderer *renderer, struct gpu *gpu, const struct renderer_ops *ops,
		   void *context, const struct renderer_options *options)
{
	memset(renderer, 0, sizeof(*renderer));
	renderer->gpu = gpu;
	renderer->ops = ops;
	renderer->context = context;
	renderer->options = *options;
	if (options->capsets_fd > 0 && capsets_load(&renderer->capsets, options->capsets_fd))
		log_warning("descriptor %d has no capability sets: they are looked up anew",
			    options->capsets_fd);
	renderer->virgl_fd = -1;
	renderer->quiet = true;
	pthread_mutex_init(&renderer->lock, NULL);
	renderer->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	renderer->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	renderer->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (renderer->notify_fd < 0 || renderer->wake_fd < 0 || renderer->epoll < 0)
		return -errno;
	renderer_watch(renderer, renderer->wake_fd, &renderer->wake_fd);
	return -pthread_create(&renderer->thread, NULL, renderer_main, renderer);
}
