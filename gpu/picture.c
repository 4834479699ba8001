// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/picture.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <virgl/virglrenderer.h>

#include "gpu/blob.h"
#include "gpu/control.h"
#include "gpu/log.h"

void picture_drop(struct renderer *renderer)
{
	surface_put(renderer->shadow);
	renderer->shadow = NULL;
	renderer->shadow_resource = 0;
}

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
static int picture_read(struct renderer *renderer, struct resource *resource,
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

		int ret;

		renderer_enter(renderer);
		ret = virgl_renderer_transfer_read_iov(resource->id, 0, 0, shadow->stride, 0,
						       (struct virgl_box *)&box, 0, &iov, 1);
		renderer_leave(renderer);
		return ret;
	}
	/* an unmap of the blob took its mapping with it */
	if (render->blob_mem == VIRTIO_GPU_BLOB_MEM_HOST3D && blob_open(resource))
		return -ENXIO;
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

void picture_refresh(struct renderer *renderer, const struct rect *area)
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
	if (picture_read(renderer, resource, &part))
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
		picture_drop(renderer);
		renderer->shadow = surface_create(format, shown.width, shown.height);
		if (!renderer->shadow)
			return NO_MEMORY;
	}
	renderer->shadow_resource = resource->id;
	console_show(renderer->gpu->console, renderer->shadow, &shown);
	picture_refresh(renderer, NULL);
	return OK;
}

uint32_t picture_set_scanout(struct renderer *renderer, struct command *command)
{
	const struct virtio_gpu_set_scanout *request = command->request;
	struct rect view = { le32toh(request->r.x), le32toh(request->r.y),
			     le32toh(request->r.width), le32toh(request->r.height) };
	struct resource *resource;

	resource = resource_find(&renderer->gpu->resources, le32toh(request->resource_id));
	if (!resource || !resource->render) {
		control_run(renderer->gpu, command);
		if (command->answer == OK && le32toh(request->scanout_id) == 0)
			picture_drop(renderer);
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

uint32_t picture_set_scanout_blob(struct renderer *renderer, struct command *command)
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
		return picture_set_scanout(renderer, command);
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

uint32_t picture_flush(struct renderer *renderer, struct command *command)
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
		picture_refresh(renderer, &area);
	return OK;
}

void picture_cursor(struct renderer *renderer, uint32_t resource_id)
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
	renderer_enter(renderer);
	if (!virgl_renderer_transfer_read_iov(resource_id, 0, 0, surface->stride, 0,
					      (struct virgl_box *)&box, 0, &iov, 1))
		console_cursor(renderer->gpu->console, surface);
	renderer_leave(renderer);
	surface_put(surface);
}
