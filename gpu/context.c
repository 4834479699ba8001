// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/context.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <virgl/virglrenderer.h>

#include "gpu/log.h"

/* ctx_create's flags without the capset; pidfd in epoll is told apart by its low bit. */
static void context_watch(struct renderer *renderer, struct renderer_context *context)
{
	pid_t known[RENDERER_PROCESSES];
	unsigned int count = 0;
	struct epoll_event event = { .events = EPOLLIN };

	for (struct renderer_context *at = renderer->contexts; at; at = at->next) {
		if (at->pid && count < RENDERER_PROCESSES)
			known[count++] = at->pid;
	}
	context->fence_fd = virgl_renderer_context_get_poll_fd(context->id);
	if (context->fence_fd >= 0) {
		event.data.ptr = context;
		epoll_ctl(renderer->epoll, EPOLL_CTL_ADD, context->fence_fd, &event);
	}
	context->pid = server_new_child(&renderer->server, known, count);
	if (context->pid)
		context->pidfd = (int)syscall(SYS_pidfd_open, context->pid, 0);
	if (context->pidfd >= 0) {
		event.data.u64 = (uintptr_t)context | 1;
		epoll_ctl(renderer->epoll, EPOLL_CTL_ADD, context->pidfd, &event);
	} else {
		log_warning("the render process of context %u is not found: its end would go unseen",
			    context->id);
	}
}

static bool capset_offered(const struct renderer *renderer, uint32_t id)
{
	for (unsigned int i = 0; i < renderer->capsets.count; i++) {
		if (renderer->capsets.sets[i].id == id)
			return true;
	}
	return false;
}

static unsigned int process_count(const struct renderer *renderer)
{
	unsigned int count = 0;

	for (const struct renderer_context *at = renderer->contexts; at; at = at->next)
		count += at->capset == CAPSET_VENUS && !at->lost;
	return count;
}

uint32_t context_create(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_ctx_create *request = command->request;
	uint32_t id = command->header.ctx_id, length = le32toh(request->nlen);
	uint32_t capset = le32toh(request->context_init) & VIRTIO_GPU_CONTEXT_INIT_CAPSET_ID_MASK;
	struct renderer_context *context;
	char name[sizeof(request->debug_name) + 1] = "";

	if (id == 0 || renderer_context(renderer, id))
		return NO_CONTEXT;
	if (!capset)
		capset = VIRTIO_GPU_CAPSET_VIRGL2;
	if (!capset_offered(renderer, capset) || length > sizeof(request->debug_name))
		return BAD;
	if (renderer->context_count == RENDERER_CONTEXTS ||
	    (capset == CAPSET_VENUS && process_count(renderer) == RENDERER_PROCESSES)) {
		log_warning("no context %u for the guest: it has %u of %u, %u of %u with Vulkan", id,
			    renderer->context_count, RENDERER_CONTEXTS, process_count(renderer),
			    RENDERER_PROCESSES);
		return NO_MEMORY;
	}
	context = calloc(1, sizeof(*context));
	if (!context)
		return NO_MEMORY;
	memcpy(name, request->debug_name, length);
	*context = (struct renderer_context){
		.id = id, .capset = capset, .pidfd = -1, .fence_fd = -1,
	};
	if (virgl_renderer_context_create_with_flags(id, capset, length, name)) {
		free(context);
		return UNSPEC;
	}
	if (capset == CAPSET_VENUS)
		context_watch(renderer, context);
	context->next = renderer->contexts;
	renderer->contexts = context;
	renderer->context_count++;
	log_debug("context %u, capset %u, process %d: %s", id, capset, (int)context->pid, name);
	return OK;
}

uint32_t context_destroy(struct renderer *renderer, struct command *command)
{
	struct renderer_context **at = &renderer->contexts, *context;

	while (*at && (*at)->id != command->header.ctx_id)
		at = &(*at)->next;
	context = *at;
	if (!context)
		return NO_CONTEXT;
	*at = context->next;
	renderer->context_count--;
	if (context->fence_fd >= 0)
		epoll_ctl(renderer->epoll, EPOLL_CTL_DEL, context->fence_fd, NULL);
	if (!context->lost)
		virgl_renderer_context_destroy(context->id);
	if (context->pidfd >= 0)
		close(context->pidfd);
	/* what the context still had under way has no end any more */
	for (unsigned int ring = 0; ring < RENDERER_RINGS; ring++) {
		if (context->rings[ring])
			timeline_abort(context->rings[ring], renderer_answer, renderer);
		free(context->rings[ring]);
	}
	free(context);
	return OK;
}

uint32_t context_resource(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_ctx_resource *request = command->request;
	struct renderer_context *context = renderer_context(renderer, command->header.ctx_id);
	struct render_resource *render;
	struct resource *resource;

	if (!context)
		return NO_CONTEXT;
	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource)
		return NO_RESOURCE;
	render = resource->render;
	/* surfaces of the 2D part and guest memory mean nothing to a context, but are no error */
	if (!render || !render->known)
		return OK;
	/*
	 * Memory that cannot be exported to another context stays with its own: virglrenderer takes
	 * it for granted that nobody asks.
	 */
	if (render->blob && render->context != context->id &&
	    render->fd_type != VIRGL_RENDERER_BLOB_FD_TYPE_DMABUF)
		return render->fd_type ? BAD : OK;
	if (command->header.type == VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE)
		virgl_renderer_ctx_attach_resource((int)context->id, (int)resource->id);
	else
		virgl_renderer_ctx_detach_resource((int)context->id, (int)resource->id);
	return OK;
}

uint32_t context_submit(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_cmd_submit *request = command->request;
	size_t head = sizeof(*request), room = command->request_bytes - head;
	uint32_t size = le32toh(request->size);
	struct renderer_context *context = renderer_context(renderer, command->header.ctx_id);
	uint64_t errors = guest_errors(renderer->gpu->guest);
	int ret;

	if (!context)
		return NO_CONTEXT;
	if (size > room || size % 4)
		return BAD;
	if (context->lost)
		return UNSPEC;
	/* the other rings are queues of a Vulkan device */
	if (context->capset == CAPSET_VENUS && command->header.ring_idx &&
	    command->header.flags & VIRTIO_GPU_FLAG_INFO_RING_IDX &&
	    !renderer_is_gated(renderer, context))
		return UNSPEC;
	/* Venus passes its gate in the render process, where its submissions are */
	if (context->capset != CAPSET_VENUS)
		renderer_enter(renderer);
	ret = virgl_renderer_submit_cmd((uint8_t *)command->request + head, (int)context->id,
					(int)(size / 4));
	if (context->capset != CAPSET_VENUS)
		renderer_leave(renderer);
	if (guest_errors(renderer->gpu->guest) != errors)
		log_warning("commands of context %u met memory that the guest does not have",
			    context->id);
	return ret ? UNSPEC : OK;
}
