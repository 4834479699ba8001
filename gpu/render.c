// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/render.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <virgl/virglrenderer.h>

#include "gpu/blob.h"
#include "gpu/context.h"
#include "gpu/control.h"
#include "gpu/log.h"
#include "gpu/picture.h"
#include "vfio/window.h"

static uint32_t render_capset(struct renderer *renderer, struct command *command)
{
	capsets_answer(&renderer->capsets, command);
	return command->answer;
}

uint32_t render_create_answer(int error)
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
		return render_create_answer(ret);
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
struct iovec *render_iov(struct renderer *renderer, const struct backing *backing)
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
	render->iov = render->known && !render->blob ? render_iov(renderer, resource->backing) :
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

void render_release(struct renderer *renderer, struct resource *resource)
{
	struct render_resource *render = resource->render;

	if (!render)
		return;
	if (renderer->shadow_resource == resource->id)
		picture_drop(renderer);
	if (render->mapping.shown)
		renderer->ops->hide(renderer->context, &render->mapping);
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
		render_release(renderer, resource);
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
	renderer_enter(renderer);
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
	renderer_leave(renderer);
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

static const struct render_handler {
	uint32_t type;
	size_t bytes;		/* of the fixed part of the request */
	bool three_d;		/* leaves traces in virglrenderer */
	bool work;		/* its fence is the GPU's */
	uint32_t (*run)(struct renderer *renderer, struct command *command);
} handlers[] = {
	{ VIRTIO_GPU_CMD_GET_CAPSET_INFO, sizeof(struct virtio_gpu_get_capset_info), false, false,
	  render_capset },
	{ VIRTIO_GPU_CMD_GET_CAPSET, sizeof(struct virtio_gpu_get_capset), false, false,
	  render_capset },
	{ VIRTIO_GPU_CMD_CTX_CREATE, sizeof(struct virtio_gpu_ctx_create), true, false,
	  context_create },
	{ VIRTIO_GPU_CMD_CTX_DESTROY, sizeof(struct virtio_gpu_ctx_destroy), true, false,
	  context_destroy },
	{ VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, sizeof(struct virtio_gpu_ctx_resource), true, false,
	  context_resource },
	{ VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE, sizeof(struct virtio_gpu_ctx_resource), true, false,
	  context_resource },
	{ VIRTIO_GPU_CMD_SUBMIT_3D, sizeof(struct virtio_gpu_cmd_submit), true, true,
	  context_submit },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, sizeof(struct virtio_gpu_resource_create_3d), true,
	  true, render_create_3d },
	{ VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D, sizeof(struct virtio_gpu_transfer_host_3d), true, true,
	  render_transfer },
	{ VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, sizeof(struct virtio_gpu_transfer_host_3d), true,
	  true, render_transfer },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, sizeof(struct virtio_gpu_resource_create_blob), true,
	  false, blob_create },
	{ VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, sizeof(struct virtio_gpu_resource_map_blob), true, false,
	  blob_map },
	{ VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, sizeof(struct virtio_gpu_resource_unmap_blob), true,
	  false, blob_unmap },
	{ VIRTIO_GPU_CMD_RESOURCE_ASSIGN_UUID, sizeof(struct virtio_gpu_resource_assign_uuid), false,
	  false, render_assign_uuid },
	{ VIRTIO_GPU_CMD_SET_SCANOUT_BLOB, sizeof(struct virtio_gpu_set_scanout_blob), true, false,
	  picture_set_scanout_blob },
	{ VIRTIO_GPU_CMD_RESOURCE_UNREF, sizeof(struct virtio_gpu_resource_unref), false, false,
	  render_unref },
	{ VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
	  sizeof(struct virtio_gpu_resource_attach_backing), false, false, render_attach },
	{ VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
	  sizeof(struct virtio_gpu_resource_detach_backing), false, false, render_detach },
	{ VIRTIO_GPU_CMD_SET_SCANOUT, sizeof(struct virtio_gpu_set_scanout), false, false,
	  picture_set_scanout },
	{ VIRTIO_GPU_CMD_RESOURCE_FLUSH, sizeof(struct virtio_gpu_resource_flush), false, false,
	  picture_flush },
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
