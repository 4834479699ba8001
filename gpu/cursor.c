// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/cursor.h"

#include <endian.h>

#include "gpu/log.h"

/*
 * The position is that of the image's corner, as KMS has it. The hot spot is for a host that draws
 * the cursor as its own pointer; here the image is part of the picture.
 */
static uint32_t cursor_update(struct gpu *gpu, const struct virtio_gpu_update_cursor *request)
{
	uint32_t id = le32toh(request->resource_id);
	struct surface *surface = NULL;

	if (id) {
		surface = resource_surface(&gpu->resources, id);
		if (!surface && gpu->cursor_3d) {
			/* pixels in the GPU's memory come when the renderer has time to fetch them */
			gpu->cursor_3d->show(gpu->cursor_3d->context, id);
			return VIRTIO_GPU_RESP_OK_NODATA;
		}
		if (!surface)
			return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
	}
	console_cursor(gpu->console, surface);
	surface_put(surface);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

void cursor_run(struct gpu *gpu, struct command *command)
{
	const struct virtio_gpu_update_cursor *request = command->request;
	uint32_t head;

	if (command->request_bytes < sizeof(*request)) {
		command->answer = VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		return;
	}
	head = le32toh(request->pos.scanout_id);
	if (head >= gpu->heads) {
		command->answer = VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID;
		return;
	}
	command->answer = VIRTIO_GPU_RESP_OK_NODATA;
	switch (command->header.type) {
	case VIRTIO_GPU_CMD_UPDATE_CURSOR:
		/* nobody sees the cursors of the other heads */
		if (head == 0)
			command->answer = cursor_update(gpu, request);
		break;
	case VIRTIO_GPU_CMD_MOVE_CURSOR:
		break;
	default:
		log_warning("the guest sent an unknown cursor request, type 0x%x",
			    command->header.type);
		command->answer = VIRTIO_GPU_RESP_ERR_UNSPEC;
		return;
	}
	if (head == 0)
		console_move(gpu->console, (int32_t)le32toh(request->pos.x),
			     (int32_t)le32toh(request->pos.y));
}
