/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * command.h - one request of a guest on its way through the device
 *
 * command_pop() copies the whole request out of guest memory; from then on only the copy is looked
 * at. The answer is written, and the descriptors given back, by command_finish(), from whichever
 * thread is done with it, at once or much later (a fence).
 */
#ifndef OCTAVO_GPU_COMMAND_H
#define OCTAVO_GPU_COMMAND_H

#include <linux/virtio_gpu.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio/queue.h"

/*
 * Bytes of one request. The longest that drivers send list the pages of a resource, 16 bytes each,
 * or are command buffers.
 */
#define COMMAND_BYTES_MAX	(8u << 20)

struct command {
	struct command *next;		/* for whoever keeps it */
	struct queue *queue;
	struct queue_chain chain;
	struct virtio_gpu_ctrl_hdr header;	/* in host byte order */
	void *request;			/* header included; in the guest's byte order */
	size_t request_bytes;
	void *response;			/* begins with a header, filled by command_finish() */
	size_t response_bytes;
	uint32_t answer;		/* enum virtio_gpu_ctrl_type */
};

/*
 * 1 and a command, 0 when there is none, or an error that breaks the queue. A request that cannot
 * be read is answered here and not returned (the next one is).
 */
int command_pop(struct queue *queue, struct command **command);

/* Room for a response of @bytes, zeroed; NULL when memory is short (answer OUT_OF_MEMORY). */
void *command_response(struct command *command, size_t bytes);

/* Writes the answer, gives the descriptors back, frees the command. Raises no interrupt. */
int command_finish(struct command *command);
/* Frees it only: the device was reset. */
void command_drop(struct command *command);

#endif
