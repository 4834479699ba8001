// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/control.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "gpu/edid.h"
#include "gpu/log.h"

#define OK	VIRTIO_GPU_RESP_OK_NODATA

static struct rect rect_load(const struct virtio_gpu_rect *from)
{
	return (struct rect){ le32toh(from->x), le32toh(from->y), le32toh(from->width),
			      le32toh(from->height) };
}

static uint32_t answer_of(int error)
{
	switch (error) {
	case 0:
		return OK;
	case -EEXIST:
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	case -ENOSPC:
	case -ENOMEM:
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	case -EINVAL:
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	default:
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
}

static uint32_t control_display_info(struct gpu *gpu, struct command *command)
{
	struct virtio_gpu_resp_display_info *info = command_response(command, sizeof(*info));
	uint32_t width, height;

	if (!info)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	gpu_mode(gpu, &width, &height);
	for (unsigned int head = 0; head < gpu->heads; head++) {
		info->pmodes[head].r.x = htole32(head * width);
		info->pmodes[head].r.width = htole32(width);
		info->pmodes[head].r.height = htole32(height);
		info->pmodes[head].enabled = htole32(1);
	}
	return VIRTIO_GPU_RESP_OK_DISPLAY_INFO;
}

static uint32_t control_edid(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_cmd_get_edid *request = command->request;
	uint32_t head = le32toh(request->scanout), width, height;
	struct virtio_gpu_resp_edid *edid;

	if (head >= gpu->heads)
		return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
	edid = command_response(command, sizeof(*edid));
	if (!edid)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	gpu_mode(gpu, &width, &height);
	edid_build(edid->edid, width, height, head);
	edid->size = htole32(EDID_BYTES);
	return VIRTIO_GPU_RESP_OK_EDID;
}

static uint32_t control_create_2d(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_resource_create_2d *request = command->request;
	uint32_t id = le32toh(request->resource_id), format = le32toh(request->format);
	uint32_t width = le32toh(request->width), height = le32toh(request->height);
	struct resource *resource;
	struct surface *surface;
	int ret;

	if (!format_is_known(format) || width == 0 || height == 0 || width > SURFACE_SIDE_MAX ||
	    height > SURFACE_SIDE_MAX)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	ret = resource_create(&gpu->resources, id, 4ULL * width * height, &resource);
	if (ret) {
		if (ret == -ENOSPC)
			log_warning("no resource of %ux%u pixels: the guest has %u of %u resources and "
				    "%llu of %llu bytes", width, height, gpu->resources.count,
				    gpu->resources.limits.resources,
				    (unsigned long long)gpu->resources.bytes,
				    (unsigned long long)gpu->resources.limits.total_bytes);
		return answer_of(ret);
	}
	surface = surface_create(format, width, height);
	if (!surface) {
		resource_destroy(&gpu->resources, resource);
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}
	resource->format = format;
	resource->width = width;
	resource->height = height;
	pthread_mutex_lock(&gpu->resources.lock);
	resource->surface = surface;
	pthread_mutex_unlock(&gpu->resources.lock);
	return OK;
}

static void scanout_disable(struct gpu *gpu, unsigned int head)
{
	memset(&gpu->scanouts[head], 0, sizeof(gpu->scanouts[head]));
	if (head == 0)
		console_show(gpu->console, NULL, NULL);
}

static uint32_t control_unref(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_resource_unref *request = command->request;
	struct resource *resource;

	resource = resource_find(&gpu->resources, le32toh(request->resource_id));
	if (!resource)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	for (unsigned int head = 0; head < gpu->heads; head++) {
		if (gpu->scanouts[head].resource_id == resource->id)
			scanout_disable(gpu, head);
	}
	resource_destroy(&gpu->resources, resource);
	return OK;
}

static uint32_t control_attach(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_resource_attach_backing *request = command->request;
	uint32_t count = le32toh(request->nr_entries);
	const struct virtio_gpu_mem_entry *entries = (const void *)(request + 1);
	struct resource *resource;

	resource = resource_find(&gpu->resources, le32toh(request->resource_id));
	if (!resource)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (resource->backing)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	if (count > (command->request_bytes - sizeof(*request)) / sizeof(*entries))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	return answer_of(resource_attach(&gpu->resources, resource, entries, count));
}

static uint32_t control_detach(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_resource_detach_backing *request = command->request;
	struct resource *resource;

	resource = resource_find(&gpu->resources, le32toh(request->resource_id));
	if (!resource)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!resource->backing)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	resource_detach(&gpu->resources, resource);
	return OK;
}

/* The cause that an operator can do something about, in full; all else is the guest's own. */
static void control_tell_memlock(int error, uint64_t bytes)
{
	if (error == -ENOMEM)
		log_error("the guest's memory cannot be pinned for a transfer of %llu bytes: the memlock "
			  "limit of the VM's process (QEMU) is too low; it has to be the VM's memory "
			  "plus 1 GiB (libvirt sets it, else: ulimit -l)", (unsigned long long)bytes);
}

static uint32_t control_transfer(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_transfer_to_host_2d *request = command->request;
	struct rect area = rect_load(&request->r);
	uint64_t offset = le64toh(request->offset);
	struct resource *resource;
	struct surface *surface;
	uint64_t row_bytes, rows;
	uint8_t *to;
	int ret = 0;

	resource = resource_find(&gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->surface)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!resource->backing)
		return VIRTIO_GPU_RESP_ERR_UNSPEC;
	surface = resource->surface;
	if (!rect_within(&area, surface->width, surface->height))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

	row_bytes = 4ULL * area.width;
	rows = area.height;
	to = surface->pixels + (uint64_t)area.y * surface->stride + 4ULL * area.x;
	if (row_bytes == surface->stride) {
		/* whole lines are one run, in guest memory too */
		row_bytes *= rows;
		rows = rows ? 1 : 0;
	}
	for (uint64_t row = 0; row < rows && !ret; row++) {
		if (offset > resource->backing->bytes)
			return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		ret = backing_read(resource->backing, gpu->guest, offset, to, row_bytes);
		offset += surface->stride;
		to += surface->stride;
	}
	control_tell_memlock(ret, 4ULL * area.width * area.height);
	return answer_of(ret);
}

static uint32_t control_flush(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_resource_flush *request = command->request;
	struct rect area = rect_load(&request->r);
	struct resource *resource;

	resource = resource_find(&gpu->resources, le32toh(request->resource_id));
	if (!resource)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (!rect_within(&area, resource->width, resource->height))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (gpu->scanouts[0].resource_id == resource->id)
		console_damage(gpu->console, &area);
	return OK;
}

static uint32_t control_set_scanout(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_set_scanout *request = command->request;
	uint32_t head = le32toh(request->scanout_id), id = le32toh(request->resource_id);
	struct rect view = rect_load(&request->r);
	struct resource *resource;

	if (head >= gpu->heads)
		return VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
	if (id == 0) {
		scanout_disable(gpu, head);
		return OK;
	}
	resource = resource_find(&gpu->resources, id);
	if (!resource || !resource->surface)
		return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	if (view.width == 0 || view.height == 0 ||
	    !rect_within(&view, resource->width, resource->height))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	gpu->scanouts[head] = (struct scanout){ .resource_id = id, .view = view };
	if (head == 0)
		console_show(gpu->console, resource->surface, &view);
	return OK;
}

static const struct control_handler {
	uint32_t type;
	size_t bytes;		/* of the fixed part of the request */
	uint32_t (*run)(struct gpu *gpu, struct command *command);
} handlers[] = {
	{ VIRTIO_GPU_CMD_GET_DISPLAY_INFO, sizeof(struct virtio_gpu_ctrl_hdr),
	  control_display_info },
	{ VIRTIO_GPU_CMD_GET_EDID, sizeof(struct virtio_gpu_cmd_get_edid), control_edid },
	{ VIRTIO_GPU_CMD_RESOURCE_CREATE_2D, sizeof(struct virtio_gpu_resource_create_2d),
	  control_create_2d },
	{ VIRTIO_GPU_CMD_RESOURCE_UNREF, sizeof(struct virtio_gpu_resource_unref), control_unref },
	{ VIRTIO_GPU_CMD_SET_SCANOUT, sizeof(struct virtio_gpu_set_scanout), control_set_scanout },
	{ VIRTIO_GPU_CMD_RESOURCE_FLUSH, sizeof(struct virtio_gpu_resource_flush), control_flush },
	{ VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D, sizeof(struct virtio_gpu_transfer_to_host_2d),
	  control_transfer },
	{ VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
	  sizeof(struct virtio_gpu_resource_attach_backing), control_attach },
	{ VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
	  sizeof(struct virtio_gpu_resource_detach_backing), control_detach },
};

void control_run(struct gpu *gpu, struct command *command)
{
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].type != command->header.type)
			continue;
		if (command->request_bytes < handlers[i].bytes)
			command->answer = VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		else
			command->answer = handlers[i].run(gpu, command);
		return;
	}
	log_warning("the guest sent an unknown request, type 0x%x", command->header.type);
	command->answer = VIRTIO_GPU_RESP_ERR_UNSPEC;
}
