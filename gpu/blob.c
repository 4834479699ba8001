// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/blob.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <virgl/virglrenderer.h>

#include "gpu/log.h"
#include "vfio/window.h"

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

/*
 * Host memory that a new blob takes. A Vulkan allocation that is exported was charged by the
 * scheduler's layer when it was made; a blob without a number is fresh shared memory of a size that
 * the guest chose, and nobody else counts it.
 */
static uint64_t blob_charge(const struct renderer_context *owner, uint64_t blob_id, uint64_t bytes)
{
	if (!owner || (owner->capset == CAPSET_VENUS && blob_id))
		return 0;
	return bytes;
}

uint32_t blob_create(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_create_blob *request = command->request;
	const struct virtio_gpu_mem_entry *entries = (const void *)(request + 1);
	uint32_t id = le32toh(request->resource_id), mem = le32toh(request->blob_mem);
	uint32_t count = le32toh(request->nr_entries), context = command->header.ctx_id, answer;
	uint64_t bytes = le64toh(request->size);
	bool host = mem != VIRTIO_GPU_BLOB_MEM_GUEST, guest = mem != VIRTIO_GPU_BLOB_MEM_HOST3D;
	struct resource_table *table = &renderer->gpu->resources;
	struct renderer_context *owner;
	struct resource *resource;
	int ret;

	if (mem < VIRTIO_GPU_BLOB_MEM_GUEST || mem > VIRTIO_GPU_BLOB_MEM_HOST3D_GUEST ||
	    bytes == 0 || (!guest && count) ||
	    count > (command->request_bytes - sizeof(*request)) / sizeof(*entries))
		return BAD;
	owner = host ? renderer_context(renderer, context) : NULL;
	if (host && !owner)
		return NO_CONTEXT;
	if (owner && owner->lost)
		return UNSPEC;
	/* memory of a device: its process has one, and must have passed the gate's door before */
	if (owner && request->blob_id && !renderer_is_gated(renderer, owner))
		return UNSPEC;
	ret = resource_create(table, id, blob_charge(owner, le64toh(request->blob_id), bytes),
			      &resource);
	if (ret)
		return render_create_answer(ret);
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
		if (resource->backing->bytes < bytes ||
		    backing_check(resource->backing, renderer->gpu->guest))
			goto fail;
		resource->render->iov = render_iov(renderer, resource->backing);
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
	render_release(renderer, resource);
	resource_destroy(table, resource);
	return answer;
}

/* Maps a host blob into this process, once. */
int blob_open(struct resource *resource)
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

uint32_t blob_map(struct renderer *renderer, struct command *command)
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
		ret = renderer->ops->show(renderer->context, &render->mapping, offset, caching);
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

uint32_t blob_unmap(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_resource_unmap_blob *request = command->request;
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render || !resource->render->blob)
		return NO_RESOURCE;
	if (!resource->render->mapping.shown)
		return BAD;
	renderer->ops->hide(renderer->context, &resource->render->mapping);
	window_close(&resource->render->mapping);
	return OK;
}

void blob_window_lost(struct renderer *renderer, uint64_t offset, uint64_t length)
{
	struct resource_table *table = &renderer->gpu->resources;

	for (unsigned int i = 0; i < RESOURCE_BUCKETS; i++) {
		for (struct resource *at = table->buckets[i]; at; at = at->next) {
			struct window_mapping *mapping = at->render ? &at->render->mapping : NULL;

			if (mapping && mapping->shown && mapping->offset < offset + length &&
			    offset < mapping->offset + mapping->length)
				renderer->ops->show_again(renderer->context, mapping);
		}
	}
}
