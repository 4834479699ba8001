// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/render.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <virgl/virglrenderer.h>

#include "gpu/control.h"
#include "gpu/log.h"
#include "vfio/window.h"

#define OK		VIRTIO_GPU_RESP_OK_NODATA
#define UNSPEC		VIRTIO_GPU_RESP_ERR_UNSPEC
#define NO_RESOURCE	VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID
#define NO_CONTEXT	VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID
#define BAD		VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER
#define NO_MEMORY	VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY

/* What the renderer keeps of a resource that lives in virglrenderer, or is a blob. */
struct render_resource {
	bool known;			/* to virglrenderer */
	bool blob;
	uint32_t blob_mem;		/* VIRTIO_GPU_BLOB_MEM_* */
	uint32_t context;		/* that made the blob */
	uint64_t bytes;			/* of the blob */
	uint32_t fd_type;		/* VIRGL_RENDERER_BLOB_FD_TYPE_*, 0: none */
	struct window_mapping mapping;
	struct iovec *iov;		/* the backing, as virglrenderer has it */
	uint8_t uuid[16];
	bool has_uuid;
};

/* ------------------------------------------------------------------------------------------------
 * Contexts
 */

/* ctx_create's flags without the capset; pidfd in epoll is told apart by its low bit. */
static void context_watch(struct renderer *renderer, struct renderer_context *context)
{
	pid_t known[RENDERER_CONTEXTS];
	unsigned int count = 0;
	struct epoll_event event = { .events = EPOLLIN };

	for (struct renderer_context *at = renderer->contexts; at; at = at->next) {
		if (at->pid && count < RENDERER_CONTEXTS)
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
	for (unsigned int i = 0; i < renderer->capset_count; i++) {
		if (renderer->capsets[i].id == id)
			return true;
	}
	return false;
}

static uint32_t render_ctx_create(struct renderer *renderer, struct command *command)
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
	if (renderer->context_count == RENDERER_CONTEXTS) {
		log_warning("no context %u: the guest has %u already", id, RENDERER_CONTEXTS);
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
	if (capset == 4)
		context_watch(renderer, context);
	context->next = renderer->contexts;
	renderer->contexts = context;
	renderer->context_count++;
	log_debug("context %u, capset %u, process %d: %s", id, capset, (int)context->pid, name);
	return OK;
}

static uint32_t render_ctx_destroy(struct renderer *renderer, struct command *command)
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

static uint32_t render_ctx_resource(struct renderer *renderer, struct command *command)
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

static uint32_t render_submit(struct renderer *renderer, struct command *command)
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
	ret = virgl_renderer_submit_cmd((uint8_t *)command->request + head, (int)context->id,
					(int)(size / 4));
	if (guest_errors(renderer->gpu->guest) != errors)
		log_warning("commands of context %u met memory that the guest does not have",
			    context->id);
	return ret ? UNSPEC : OK;
}

/* ------------------------------------------------------------------------------------------------
 * Capsets
 */

static uint32_t render_capset_info(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_get_capset_info *request = command->request;
	uint32_t index = le32toh(request->capset_index);
	struct virtio_gpu_resp_capset_info *info;

	if (index >= renderer->capset_count)
		return BAD;
	info = command_response(command, sizeof(*info));
	if (!info)
		return NO_MEMORY;
	info->capset_id = htole32(renderer->capsets[index].id);
	info->capset_max_version = htole32(renderer->capsets[index].version);
	info->capset_max_size = htole32(renderer->capsets[index].bytes);
	return VIRTIO_GPU_RESP_OK_CAPSET_INFO;
}

static uint32_t render_capset(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_get_capset *request = command->request;
	const struct renderer_capset *capset = NULL;
	struct virtio_gpu_resp_capset *response;

	for (unsigned int i = 0; i < renderer->capset_count; i++) {
		if (renderer->capsets[i].id == le32toh(request->capset_id))
			capset = &renderer->capsets[i];
	}
	if (!capset || !capset->data || le32toh(request->capset_version) > capset->version)
		return BAD;
	response = command_response(command, sizeof(*response) + capset->bytes);
	if (!response)
		return NO_MEMORY;
	memcpy(response->capset_data, capset->data, capset->bytes);
	return VIRTIO_GPU_RESP_OK_CAPSET;
}

/* ------------------------------------------------------------------------------------------------
 * Resources
 */

static uint32_t create_answer(int error)
{
	return error == -EEXIST ? NO_RESOURCE : NO_MEMORY;
}

/* Host memory that a resource of the renderer takes, near enough and never too little for long. */
static uint64_t resource_bytes(const struct virgl_renderer_resource_create_args *args)
{
	uint64_t layers = args->array_size > args->depth ? args->array_size : args->depth;
	uint64_t samples = args->nr_samples > 1 ? args->nr_samples : 1;
	uint64_t bytes = (uint64_t)args->width * args->height;

	if (args->target == 0)		/* a buffer: width counts bytes */
		return args->width;
	if (layers == 0)
		layers = 1;
	if (bytes > UINT32_MAX || layers > UINT16_MAX || samples > 64)
		return UINT64_MAX;
	/* four bytes a pixel, a third more for mip levels */
	bytes *= 4 * layers * samples;
	return args->last_level ? bytes + bytes / 3 : bytes;
}

static uint32_t render_create_3d(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_create_3d *request = command->request;
	struct virgl_renderer_resource_create_args args = {
		.handle = le32toh(request->resource_id),
		.target = le32toh(request->target),
		.format = le32toh(request->format),
		.bind = le32toh(request->bind),
		.width = le32toh(request->width),
		.height = le32toh(request->height),
		.depth = le32toh(request->depth),
		.array_size = le32toh(request->array_size),
		.last_level = le32toh(request->last_level),
		.nr_samples = le32toh(request->nr_samples),
		.flags = le32toh(request->flags),
	};
	struct resource *resource;
	int ret;

	if (!(renderer->options.capsets & RENDERER_VIRGL))
		return UNSPEC;
	ret = resource_create(&renderer->gpu->resources, args.handle, resource_bytes(&args),
			      &resource);
	if (ret)
		return create_answer(ret);
	resource->render = calloc(1, sizeof(*resource->render));
	if (!resource->render || virgl_renderer_resource_create(&args, NULL, 0)) {
		free(resource->render);
		resource->render = NULL;
		resource_destroy(&renderer->gpu->resources, resource);
		return BAD;
	}
	resource->render->known = true;
	resource->format = args.format;
	resource->width = args.width;
	resource->height = args.height;
	return OK;
}

/* The guest's ranges as addresses in the window. NULL: one lies outside, or memory is short. */
static struct iovec *backing_iov(struct renderer *renderer, const struct backing *backing)
{
	struct iovec *iov = malloc((backing->count ? backing->count : 1) * sizeof(*iov));

	for (uint32_t i = 0; iov && i < backing->count; i++) {
		const struct backing_entry *entry = &backing->entries[i];

		iov[i].iov_base = guest_address(renderer->gpu->guest, entry->iova, entry->length);
		iov[i].iov_len = entry->length;
		if (!iov[i].iov_base) {
			free(iov);
			return NULL;
		}
	}
	return iov;
}

static uint32_t render_attach(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_attach_backing *request = command->request;
	struct render_resource *render;
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	control_run(renderer->gpu, command);
	if (command->answer != OK || !resource->render)
		return command->answer;
	render = resource->render;
	render->iov = render->known && !render->blob ? backing_iov(renderer, resource->backing) :
						       NULL;
	if (!render->iov ||
	    virgl_renderer_resource_attach_iov((int)resource->id, render->iov,
					       (int)resource->backing->count)) {
		free(render->iov);
		render->iov = NULL;
		resource_detach(&renderer->gpu->resources, resource);
		return BAD;
	}
	return OK;
}

static void backing_release(struct resource *resource)
{
	struct render_resource *render = resource->render;
	struct iovec *iov = NULL;
	int count;

	if (!render || !render->iov)
		return;
	if (render->known)
		virgl_renderer_resource_detach_iov((int)resource->id, &iov, &count);
	free(render->iov);
	render->iov = NULL;
}

static uint32_t render_detach(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_detach_backing *request = command->request;
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	/* guest memory is all there is of a guest blob */
	if (resource && resource->render && resource->render->blob)
		return UNSPEC;
	if (resource)
		backing_release(resource);
	control_run(renderer->gpu, command);
	return command->answer;
}

static void shadow_drop(struct renderer *renderer)
{
	surface_put(renderer->shadow);
	renderer->shadow = NULL;
	renderer->shadow_resource = 0;
}

static void resource_release(struct renderer *renderer, struct resource *resource)
{
	struct render_resource *render = resource->render;

	if (!render)
		return;
	if (renderer->shadow_resource == resource->id)
		shadow_drop(renderer);
	if (render->mapping.shown)
		window_hide(renderer->session, &render->mapping);
	window_close(&render->mapping);
	if (render->known) {
		struct iovec *iov = NULL;
		int count;

		if (render->iov)
			virgl_renderer_resource_detach_iov((int)resource->id, &iov, &count);
		virgl_renderer_resource_unref(resource->id);
	}
	free(render->iov);
	free(render);
	resource->render = NULL;
}

static uint32_t render_unref(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_unref *request = command->request;
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (resource)
		resource_release(renderer, resource);
	control_run(renderer->gpu, command);
	return command->answer;
}

static uint32_t render_transfer(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_transfer_host_3d *request = command->request;
	uint64_t errors = guest_errors(renderer->gpu->guest);
	uint32_t id = le32toh(request->resource_id), context = command->header.ctx_id;
	struct virtio_gpu_box box = request->box;
	struct resource *resource;
	int ret;

	resource = resource_find(&renderer->gpu->resources, id);
	if (!resource || !resource->render || !resource->render->known)
		return NO_RESOURCE;
	if (context && !renderer_context(renderer, context))
		return NO_CONTEXT;
	if (command->header.type == VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D)
		ret = virgl_renderer_transfer_write_iov(id, context, (int)le32toh(request->level),
							le32toh(request->stride),
							le32toh(request->layer_stride),
							(struct virgl_box *)&box,
							le64toh(request->offset), NULL, 0);
	else
		ret = virgl_renderer_transfer_read_iov(id, context, le32toh(request->level),
						       le32toh(request->stride),
						       le32toh(request->layer_stride),
						       (struct virgl_box *)&box,
						       le64toh(request->offset), NULL, 0);
	if (guest_errors(renderer->gpu->guest) != errors) {
		log_warning("a transfer met memory that the guest does not have or that cannot be "
			    "pinned (memlock limit of the VM's process)");
		return NO_MEMORY;
	}
	return ret ? BAD : OK;
}

static uint32_t render_assign_uuid(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_assign_uuid *request = command->request;
	struct virtio_gpu_resp_resource_uuid *response;
	struct render_resource *render;
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render)
		return NO_RESOURCE;
	render = resource->render;
	response = command_response(command, sizeof(*response));
	if (!response)
		return NO_MEMORY;
	if (!render->has_uuid) {
		if (getrandom(render->uuid, sizeof(render->uuid), 0) != sizeof(render->uuid))
			return UNSPEC;
		/* RFC 4122: version 4, variant 1 */
		render->uuid[6] = (render->uuid[6] & 0x0f) | 0x40;
		render->uuid[8] = (render->uuid[8] & 0x3f) | 0x80;
		render->has_uuid = true;
	}
	memcpy(response->uuid, render->uuid, sizeof(render->uuid));
	return VIRTIO_GPU_RESP_OK_RESOURCE_UUID;
}

/* ------------------------------------------------------------------------------------------------
 * Blobs
 */

static uint32_t blob_create_host(struct resource *resource,
				 const struct virtio_gpu_resource_create_blob *request,
				 uint32_t context)
{
	struct render_resource *render = resource->render;
	struct virgl_renderer_resource_create_blob_args args = {
		.res_handle = resource->id,
		.ctx_id = context,
		.blob_mem = render->blob_mem,
		.blob_flags = le32toh(request->blob_flags),
		.blob_id = le64toh(request->blob_id),
		.size = render->bytes,
		.iovecs = render->iov,
		.num_iovs = resource->backing ? resource->backing->count : 0,
	};
	int fd = -1;

	if (virgl_renderer_resource_create_blob(&args))
		return UNSPEC;
	render->known = true;
	if (virgl_renderer_resource_export_blob(resource->id, &render->fd_type, &fd))
		render->fd_type = 0;
	if (fd >= 0)
		close(fd);
	return OK;
}

static uint32_t render_create_blob(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_create_blob *request = command->request;
	const struct virtio_gpu_mem_entry *entries = (const void *)(request + 1);
	uint32_t id = le32toh(request->resource_id), mem = le32toh(request->blob_mem);
	uint32_t count = le32toh(request->nr_entries), context = command->header.ctx_id, answer;
	uint64_t bytes = le64toh(request->size);
	bool host = mem != VIRTIO_GPU_BLOB_MEM_GUEST, guest = mem != VIRTIO_GPU_BLOB_MEM_HOST3D;
	struct resource_table *table = &renderer->gpu->resources;
	struct resource *resource;
	int ret;

	if (mem < VIRTIO_GPU_BLOB_MEM_GUEST || mem > VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST ||
	    bytes == 0 || (!guest && count) ||
	    count > (command->request_bytes - sizeof(*request)) / sizeof(*entries))
		return BAD;
	if (host && !renderer_context(renderer, context))
		return NO_CONTEXT;
	ret = resource_create(table, id, host ? bytes : 0, &resource);
	if (ret)
		return create_answer(ret);
	answer = NO_MEMORY;
	resource->render = calloc(1, sizeof(*resource->render));
	if (!resource->render)
		goto fail;
	resource->render->blob = true;
	resource->render->blob_mem = mem;
	resource->render->context = context;
	resource->render->bytes = bytes;
	if (guest) {
		if (resource_attach(table, resource, entries, count))
			goto fail;
		answer = BAD;
		if (resource->backing->bytes < bytes)
			goto fail;
		resource->render->iov = backing_iov(renderer, resource->backing);
		if (!resource->render->iov)
			goto fail;
	}
	if (host) {
		answer = blob_create_host(resource, request, context);
		if (answer != OK)
			goto fail;
	}
	return OK;
fail:
	resource_release(renderer, resource);
	resource_destroy(table, resource);
	return answer;
}

/* Maps a host blob into this process, once. */
static int blob_open(struct resource *resource)
{
	struct render_resource *render = resource->render;
	uint32_t type = 0;
	int fd = -1, ret;

	if (render->mapping.length)
		return 0;
	if (virgl_renderer_resource_export_blob(resource->id, &type, &fd))
		return -ENXIO;
	/* the opaque kind would need Vulkan in this process */
	if (type == VIRGL_RENDERER_BLOB_FD_TYPE_OPAQUE)
		ret = -EOPNOTSUPP;
	else
		ret = window_open(&render->mapping, fd, render->bytes);
	close(fd);
	return ret;
}

static uint32_t render_map_blob(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_map_blob *request = command->request;
	uint64_t offset = le64toh(request->offset);
	uint32_t info = 0, caching = OCTAVO_CACHED;
	struct virtio_gpu_resp_map_info *response;
	struct render_resource *render;
	struct resource *resource;
	int ret;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render || !resource->render->blob)
		return NO_RESOURCE;
	render = resource->render;
	if (!render->known || render->mapping.shown)
		return BAD;
	response = command_response(command, sizeof(*response));
	if (!response)
		return NO_MEMORY;
	if (virgl_renderer_resource_get_map_info(resource->id, &info))
		return UNSPEC;
	if ((info & VIRGL_RENDERER_MAP_CACHE_MASK) == VIRGL_RENDERER_MAP_CACHE_WC)
		caching = OCTAVO_WRITE_COMBINED;
	else if ((info & VIRGL_RENDERER_MAP_CACHE_MASK) != VIRGL_RENDERER_MAP_CACHE_CACHED)
		return UNSPEC;
	ret = blob_open(resource);
	if (!ret)
		ret = window_show(renderer->session, &render->mapping, offset, caching);
	if (ret) {
		log_warning("a blob of %llu bytes (kind %u) cannot be shown at 0x%llx of the window: "
			    "%s", (unsigned long long)render->bytes, render->fd_type,
			    (unsigned long long)offset, strerror(-ret));
		return ret == -ENOMEM ? NO_MEMORY : ret == -EINVAL || ret == -ERANGE ||
		       ret == -EEXIST ? BAD : UNSPEC;
	}
	response->map_info = htole32(info & VIRGL_RENDERER_MAP_CACHE_MASK);
	return VIRTIO_GPU_RESP_OK_MAP_INFO;
}

static uint32_t render_unmap_blob(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_unmap_blob *request = command->request;
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render || !resource->render->blob)
		return NO_RESOURCE;
	if (!resource->render->mapping.shown)
		return BAD;
	window_hide(renderer->session, &resource->render->mapping);
	window_close(&resource->render->mapping);
	return OK;
}

void render_window_lost(struct renderer *renderer, uint64_t offset, uint64_t length)
{
	struct resource_table *table = &renderer->gpu->resources;

	for (unsigned int i = 0; i < RESOURCE_BUCKETS; i++) {
		for (struct resource *at = table->buckets[i]; at; at = at->next) {
			struct window_mapping *mapping = at->render ? &at->render->mapping : NULL;

			if (mapping && mapping->shown && mapping->offset < offset + length &&
			    offset < mapping->offset + mapping->length)
				window_show_again(renderer->session, mapping);
		}
	}
}

/* ------------------------------------------------------------------------------------------------
 * Pictures
 */

/* The 2D format of a resource's pixels, 0 if there is none. */
static uint32_t format_shown(uint32_t format)
{
	/* sRGB kinds are read back as they are stored */
	if (format == 100 || format == 101)
		return format == 100 ? VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM :
				       VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM;
	return format_is_known(format) ? format : 0;
}

/* Copies @area of the shadow from where the pixels are. */
static int shadow_read(struct renderer *renderer, struct resource *resource,
		       const struct rect *area)
{
	struct surface *shadow = renderer->shadow;
	struct render_resource *render = resource->render;
	struct rect view = renderer->gpu->scanouts[0].view;
	uint8_t *to = shadow->pixels + (uint64_t)area->y * shadow->stride + 4ULL * area->x;
	uint64_t from;

	if (!render->blob) {
		struct virtio_gpu_box box = {
			.x = view.x + area->x, .y = view.y + area->y,
			.w = area->width, .h = area->height, .d = 1,
		};
		struct iovec iov = { to, shadow->bytes - (uint64_t)(to - shadow->pixels) };

		return virgl_renderer_transfer_read_iov(resource->id, 0, 0, shadow->stride, 0,
							(struct virgl_box *)&box, 0, &iov, 1);
	}
	from = renderer->shadow_offset + (uint64_t)(view.y + area->y) * renderer->shadow_stride +
	       4ULL * (view.x + area->x);
	for (uint32_t y = 0; y < area->height; y++) {
		if (from > render->bytes || 4ULL * area->width > render->bytes - from)
			return -EINVAL;
		if (render->blob_mem == VIRTIO_GPU_BLOB_MEM_HOST3D)
			memcpy(to, (uint8_t *)render->mapping.addr + from, 4ULL * area->width);
		else if (backing_read(resource->backing, renderer->gpu->guest, from, to,
				      4ULL * area->width))
			return -EFAULT;
		from += renderer->shadow_stride;
		to += shadow->stride;
	}
	return 0;
}

void render_refresh(struct renderer *renderer, const struct rect *area)
{
	struct rect whole, view, part;
	struct resource *resource;

	if (!renderer->shadow || !console_is_watched(renderer->gpu->console))
		return;
	resource = resource_find(&renderer->gpu->resources, renderer->shadow_resource);
	if (!resource || !resource->render)
		return;
	whole = (struct rect){ 0, 0, renderer->shadow->width, renderer->shadow->height };
	if (area) {
		view = renderer->gpu->scanouts[0].view;
		if (!rect_intersect(area, &view, &part))
			return;
		part.x -= view.x;
		part.y -= view.y;
		if (!rect_intersect(&part, &whole, &part))
			return;
	} else {
		part = whole;
	}
	if (shadow_read(renderer, resource, &part))
		log_warning("the pixels of resource %u cannot be read for the console",
			    resource->id);
	else
		console_damage(renderer->gpu->console, &part);
}

static uint32_t show(struct renderer *renderer, struct resource *resource, uint32_t head,
		     const struct rect *view, uint32_t format)
{
	struct rect shown = { 0, 0, view->width, view->height };

	if (head >= renderer->gpu->heads)
		return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
	if (!format)
		return BAD;
	renderer->gpu->scanouts[head] = (struct scanout){
		.resource_id = resource->id, .view = *view,
	};
	if (head)
		return OK;
	if (shown.width > CONSOLE_WIDTH_MAX)
		shown.width = CONSOLE_WIDTH_MAX;
	if (shown.height > CONSOLE_HEIGHT_MAX)
		shown.height = CONSOLE_HEIGHT_MAX;
	/* page flips between two resources of one size need no new shadow */
	if (!renderer->shadow || renderer->shadow->format != format ||
	    renderer->shadow->width != shown.width || renderer->shadow->height != shown.height) {
		shadow_drop(renderer);
		renderer->shadow = surface_create(format, shown.width, shown.height);
		if (!renderer->shadow)
			return NO_MEMORY;
	}
	renderer->shadow_resource = resource->id;
	console_show(renderer->gpu->console, renderer->shadow, &shown);
	render_refresh(renderer, NULL);
	return OK;
}

static uint32_t render_set_scanout(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_set_scanout *request = command->request;
	struct rect view = { le32toh(request->r.x), le32toh(request->r.y),
			     le32toh(request->r.width), le32toh(request->r.height) };
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render) {
		control_run(renderer->gpu, command);
		if (command->answer == OK && le32toh(request->scanout_id) == 0)
			shadow_drop(renderer);
		return command->answer;
	}
	if (resource->render->blob)
		return NO_RESOURCE;
	if (view.width == 0 || view.height == 0 ||
	    !rect_within(&view, resource->width, resource->height))
		return BAD;
	return show(renderer, resource, le32toh(request->scanout_id), &view,
		    format_shown(resource->format));
}

static uint32_t render_set_scanout_blob(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_set_scanout_blob *request = command->request;
	uint32_t width = le32toh(request->width), height = le32toh(request->height);
	uint32_t stride = le32toh(request->strides[0]), offset = le32toh(request->offsets[0]);
	struct rect view = { le32toh(request->r.x), le32toh(request->r.y),
			     le32toh(request->r.width), le32toh(request->r.height) };
	struct render_resource *render;
	struct resource *resource;
	uint32_t answer;

	if (le32toh(request->resource_id) == 0) {
		struct virtio_gpu_set_scanout disable = {
			.hdr.type = htole32(VIRTIO_GPU_CMD_SET_SCANOUT),
			.scanout_id = request->scanout_id,
		};

		/* the same request in its older form */
		memcpy(command->request, &disable, sizeof(disable));
		command->header.type = VIRTIO_GPU_CMD_SET_SCANOUT;
		return render_set_scanout(renderer, command);
	}
	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render || !resource->render->blob)
		return NO_RESOURCE;
	render = resource->render;
	if (view.width == 0 || view.height == 0 || width > SURFACE_SIDE_MAX ||
	    height > SURFACE_SIDE_MAX || !rect_within(&view, width, height) ||
	    stride < 4ULL * width || !format_shown(le32toh(request->format)) ||
	    offset + (uint64_t)stride * (height - 1) + 4ULL * width > render->bytes)
		return BAD;
	if (render->blob_mem == VIRTIO_GPU_BLOB_MEM_HOST3D && blob_open(resource))
		return UNSPEC;
	resource->width = width;
	resource->height = height;
	if (le32toh(request->scanout_id) == 0) {
		renderer->shadow_stride = stride;
		renderer->shadow_offset = offset;
	}
	answer = show(renderer, resource, le32toh(request->scanout_id), &view,
		      format_shown(le32toh(request->format)));
	return answer;
}

static uint32_t render_flush(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_flush *request = command->request;
	struct rect area = { le32toh(request->r.x), le32toh(request->r.y),
			     le32toh(request->r.width), le32toh(request->r.height) };
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render) {
		control_run(renderer->gpu, command);
		return command->answer;
	}
	if (!rect_within(&area, resource->width, resource->height))
		return BAD;
	if (renderer->shadow_resource == resource->id)
		render_refresh(renderer, &area);
	return OK;
}

void render_cursor(struct renderer *renderer, uint32_t resource_id, uint32_t hot_x, uint32_t hot_y)
{
	struct resource *resource = resource_find(&renderer->gpu->resources, resource_id);
	struct virtio_gpu_box box = { .d = 1 };
	struct surface *surface;
	struct iovec iov;
	uint32_t format;

	if (!resource || !resource->render || resource->render->blob)
		return;
	format = format_shown(resource->format);
	box.w = resource->width < CURSOR_SIDE_MAX ? resource->width : CURSOR_SIDE_MAX;
	box.h = resource->height < CURSOR_SIDE_MAX ? resource->height : CURSOR_SIDE_MAX;
	surface = format ? surface_create(format, box.w, box.h) : NULL;
	if (!surface)
		return;
	iov = (struct iovec){ surface->pixels, surface->bytes };
	if (!virgl_renderer_transfer_read_iov(resource_id, 0, 0, surface->stride, 0,
					      (struct virgl_box *)&box, 0, &iov, 1))
		console_cursor(renderer->gpu->console, surface, hot_x, hot_y);
	surface_put(surface);
}

/* ------------------------------------------------------------------------------------------------
 */

static const struct render_handler {
	uint32_t type;
	size_t bytes;		/* of the fixed part of the request */
	bool three_d;		/* leaves traces in virglrenderer */
	bool work;		/* its fence is the GPU's */
	uint32_t (*run)(struct renderer *renderer, struct command *command);
} handlers[] = {
	{ VIRTIO_GPU_CMD_GET_CAPSET_INFO, sizeof(struct virtio_gpu_get_capset_info), false, false,
	  render_capset_info },
	{ VIRTIO_GPU_CMD_GET_CAPSET, sizeof(struct virtio_gpu_get_capset), false, false,
	  render_capset },
	{ VIRTIO_GPU_CMD_CTX_CREATE, sizeof(struct virtio_gpu_ctx_create), true, false,
	  render_ctx_create },
	{ VIRTIO_GPU_CMD_CTX_DESTROY, sizeof(struct virtio_gpu_ctx_destroy), true, false,
	  render_ctx_destroy },
	{ VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, sizeof(struct virtio_gpu_ctx_resource), true, false,
	  render_ctx_resource },
	{ VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, sizeof(struct virtio_gpu_ctx_resource), true, false,
	  render_ctx_resource },
	{ VIRTIO_GPU_CMD_SUBMIT_3D, sizeof(struct virtio_gpu_cmd_submit), true, true,
	  render_submit },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, sizeof(struct virtio_gpu_resource_create_3d), true,
	  true, render_create_3d },
	{ VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, sizeof(struct virtio_gpu_transfer_host_3d), true, true,
	  render_transfer },
	{ VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, sizeof(struct virtio_gpu_transfer_host_3d), true,
	  true, render_transfer },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, sizeof(struct virtio_gpu_resource_create_blob), true,
	  false, render_create_blob },
	{ VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, sizeof(struct virtio_gpu_resource_map_blob), true, false,
	  render_map_blob },
	{ VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, sizeof(struct virtio_gpu_resource_unmap_blob), true,
	  false, render_unmap_blob },
	{ VIRTIO_GPU_CMD_RESOURCE_ASSIGN_UUID, sizeof(struct virtio_gpu_resource_assign_uuid), false,
	  false, render_assign_uuid },
	{ VIRTIO_GPU_CMD_SET_SCANOUT_BLOB, sizeof(struct virtio_gpu_set_scanout_blob), true, false,
	  render_set_scanout_blob },
	{ VIRTIO_GPU_CMD_RESOURCE_UNREF, sizeof(struct virtio_gpu_resource_unref), false, false,
	  render_unref },
	{ VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
	  sizeof(struct virtio_gpu_resource_attach_backing), false, false, render_attach },
	{ VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
	  sizeof(struct virtio_gpu_resource_detach_backing), false, false, render_detach },
	{ VIRTIO_GPU_CMD_SET_SCANOUT, sizeof(struct virtio_gpu_set_scanout), false, false,
	  render_set_scanout },
	{ VIRTIO_GPU_CMD_RESOURCE_FLUSH, sizeof(struct virtio_gpu_resource_flush), false, false,
	  render_flush },
};

bool render_run(struct renderer *renderer, struct command *command)
{
	const struct render_handler *handler = NULL;

	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].type == command->header.type)
			handler = &handlers[i];
	}
	if (!handler) {
		control_run(renderer->gpu, command);
		return false;
	}
	if (command->request_bytes < handler->bytes) {
		command->answer = BAD;
		return false;
	}
	if (handler->three_d) {
		if (!renderer->ready) {
			command->answer = UNSPEC;
			return false;
		}
		__atomic_store_n(&renderer->used, true, __ATOMIC_RELEASE);
	}
	command->answer = handler->run(renderer, command);
	return handler->work && command->answer < VIRTIO_GPU_RESP_ERR_UNSPEC;
}
