/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * queue.h - the device's side of a split virtqueue (virtio 1.3, 2.7)
 *
 * queue_pop() copies a descriptor chain once and checks the copy: what it returns cannot change any
 * more, although the memory it names can. Every walk is bounded. A ring that breaks the rules gives
 * an error and the queue stays broken until the next queue_enable(); the device then asks for a reset.
 *
 * Threads: one thread pops, any thread may push; a lock inside orders them.
 */
#ifndef OCTAVO_VFIO_QUEUE_H
#define OCTAVO_VFIO_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vfio/guest.h"

#define QUEUE_SIZE_MAX		1024	/* descriptors of a ring */
#define QUEUE_SEGMENTS_MAX	1024	/* of one chain, indirect ones included */

struct queue_segment {
	uint64_t iova;
	uint32_t length;	/* bytes, not 0 */
};

/* A request: @out segments the device reads, then @in segments it writes. */
struct queue_chain {
	uint16_t head;
	unsigned int out;
	unsigned int in;
	uint64_t out_bytes;
	uint64_t in_bytes;
	struct queue_segment *segments;	/* owned; queue_chain_finish() */
};

/* Where the guest put the ring. All addresses are IOVAs. */
struct queue_layout {
	uint32_t size;		/* descriptors, a power of two */
	uint64_t desc;
	uint64_t driver;
	uint64_t device;
	bool event_idx;		/* VIRTIO_RING_F_EVENT_IDX was negotiated */
	bool indirect;		/* VIRTIO_RING_F_INDIRECT_DESC was */
};

struct queue {
	struct guest *guest;
	struct queue_layout layout;
	pthread_mutex_t lock;	/* over the used ring's state */
	uint16_t avail;		/* next entry of the available ring */
	uint16_t used;		/* next entry of the used ring */
	uint16_t signalled;	/* value of @used at the last queue_signal() */
	bool enabled;
	bool broken;
	struct queue_segment walk[QUEUE_SEGMENTS_MAX];
};

void queue_create(struct queue *queue, struct guest *guest);
void queue_destroy(struct queue *queue);

/* Begins at index 0. -EINVAL: size, alignment or range; the queue is broken then. */
int queue_enable(struct queue *queue, const struct queue_layout *layout);
void queue_disable(struct queue *queue);

/*
 * 1 and a chain, 0 when there is none now, or an error: -EINVAL for a ring or chain that breaks the
 * rules, else one of guest.h. After an error the queue is broken and gives 0.
 */
int queue_pop(struct queue *queue, struct queue_chain *chain);

/* Gives the chain back, @written bytes were put into its in segments. */
int queue_push(struct queue *queue, const struct queue_chain *chain, uint32_t written);

/*
 * Whether the guest wants an interrupt for what was pushed since the last call. Push all that is
 * ready, then ask once: that is the coalescing.
 */
bool queue_signal(struct queue *queue);

/* Whether a request is there, without asking for a kick; cheap. A broken queue has none. */
bool queue_pending(struct queue *queue);

/*
 * Asks for a kick with the next request; 1 if one is there already, which would not kick: pop
 * again. 0 to wait, or an error that broke the queue.
 */
int queue_wait(struct queue *queue);

/* Copies out of or into a chain at a byte offset; -EINVAL past its end. */
int queue_chain_read(struct queue *queue, const struct queue_chain *chain, uint64_t offset,
		     void *to, size_t length);
int queue_chain_write(struct queue *queue, const struct queue_chain *chain, uint64_t offset,
		      const void *from, size_t length);
void queue_chain_finish(struct queue_chain *chain);

#endif
