// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/command.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/log.h"

/* Reads the request. An answer that is an error already, or 0. */
static uint32_t command_read(struct command *command)
{
	const struct virtio_gpu_ctrl_hdr *header;
	int ret;

	if (command->chain.out_bytes < sizeof(*header))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	if (command->chain.out_bytes > COMMAND_BYTES_MAX)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	command->request_bytes = command->chain.out_bytes;
	command->request = malloc(command->request_bytes);
	if (!command->request)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	ret = queue_chain_read(command->queue, &command->chain, 0, command->request,
			       command->request_bytes);
	if (ret) {
		log_warning("a request of %zu bytes cannot be read from the guest's memory: %s",
			    command->request_bytes, strerror(-ret));
		memset(command->request, 0, sizeof(*header));
		return ret == -ENOMEM ? VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY :
					VIRTIO_GPU_RESP_ERR_UNSPEC;
	}
	header = command->request;
	command->header = (struct virtio_gpu_ctrl_hdr){
		.type = le32toh(header->type),
		.flags = le32toh(header->flags),
		.fence_id = le64toh(header->fence_id),
		.ctx_id = le32toh(header->ctx_id),
		.ring_idx = header->ring_idx,
	};
	return 0;
}

int command_pop(struct queue *queue, struct command **command)
{
	for (;;) {
		struct command *new = calloc(1, sizeof(*new));
		int ret;

		if (!new)
			return -ENOMEM;
		new->queue = queue;
		ret = queue_pop(queue, &new->chain);
		if (ret <= 0) {
			free(new);
			return ret;
		}
		new->answer = command_read(new);
		if (new->answer == 0) {
			*command = new;
			return 1;
		}
		ret = command_finish(new);
		if (ret)
			return ret;
	}
}

void *command_response(struct command *command, size_t bytes)
{
	free(command->response);
	command->response = calloc(1, bytes);
	command->response_bytes = command->response ? bytes : 0;
	return command->response;
}

void command_drop(struct command *command)
{
	queue_chain_finish(&command->chain);
	free(command->request);
	free(command->response);
	free(command);
}

int command_finish(struct command *command)
{
	struct virtio_gpu_ctrl_hdr header = { .type = htole32(command->answer) };
	struct queue *queue = command->queue;
	size_t bytes = sizeof(header);
	uint32_t written = 0;
	int ret = 0;

	/* 5.7.6.7: the answer to a fenced request repeats the fence */
	if (command->header.flags & VIRTIO_GPU_FLAG_FENCE) {
		header.flags = htole32(command->header.flags &
				       (VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX));
		header.fence_id = htole64(command->header.fence_id);
		header.ctx_id = htole32(command->header.ctx_id);
		header.ring_idx = command->header.ring_idx;
	}
	if (command->response && command->answer < VIRTIO_GPU_RESP_ERR_UNSPEC) {
		bytes = command->response_bytes;
		memcpy(command->response, &header, sizeof(header));
	}
	/* a guest that left less room gets what fits; the cursor queue's leave none */
	if (bytes > command->chain.in_bytes)
		bytes = command->chain.in_bytes;
	if (bytes) {
		const void *from = command->response &&
			command->answer < VIRTIO_GPU_RESP_ERR_UNSPEC ? command->response : &header;

		ret = queue_chain_write(queue, &command->chain, 0, from, bytes);
		if (ret)
			log_warning("an answer cannot be written to the guest's memory: %s",
				    strerror(-ret));
		else
			written = (uint32_t)bytes;
	}
	/* the descriptors go back in any case; only a broken ring stops the queue */
	ret = queue_push(queue, &command->chain, written);
	command_drop(command);
	return ret;
}
