/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * render.h - requests of the control queue's 3D part (virtio 1.3, 5.7.6.8), and of its 2D part
 * where they touch what the 3D part made
 *
 * All of it runs on the renderer thread. Each noun has its file: context.h, blob.h, picture.h; here
 * are resources, capsets and the table of all requests.
 */
#ifndef OCTAVO_GPU_RENDER_H
#define OCTAVO_GPU_RENDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "gpu/renderer.h"
#include "vfio/window.h"

/* Answers by short names. */
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

/* Runs the request and sets its answer; true if it made work for the GPU that a fence follows. */
bool render_run(struct renderer *renderer, struct command *command);

/* The guest's ranges as addresses in the window. NULL: one lies outside, or memory is short. */
struct iovec *render_iov(struct renderer *renderer, const struct backing *backing);

/* Ends what the renderer keeps of a resource, in virglrenderer and in the window. */
void render_release(struct renderer *renderer, struct resource *resource);

/* The answer to a resource that cannot be made. */
uint32_t render_create_answer(int error);

#endif
