/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fake_guest.h - guest memory that is an array, and the driver's side of a virtqueue in it
 *
 * A hole can be put into the memory: accesses to it are counted as the module counts them, and
 * pinning it gives the error that was asked for.
 */
#ifndef OCTAVO_TESTS_FAKE_GUEST_H
#define OCTAVO_TESTS_FAKE_GUEST_H

#include <linux/virtio_ring.h>

#include "vfio/guest.h"
#include "vfio/queue.h"

#define FAKE_BYTES	(64ULL << 20)
#define FAKE_QUEUE	0x10000		/* where the first ring lies; the next 0x10000 further */
#define FAKE_DATA	0x100000	/* free for a test's use from here on */

struct fake_guest {
	struct guest guest;
	uint64_t hole;		/* IOVA, page aligned */
	uint64_t hole_bytes;	/* 0: none */
	int hole_error;		/* what pinning it gives, negative errno */
	uint64_t errors;
	unsigned int pins;	/* calls */
	unsigned int calm;	/* looks at the error counter that find no new error */
};

void fake_guest_create(struct fake_guest *fake);
void fake_guest_destroy(struct fake_guest *fake);

struct fake_driver {
	struct fake_guest *fake;
	struct queue_layout layout;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t next_desc;
	uint16_t seen;		/* entries of the used ring that the test looked at */
};

/* A ring of @size in place @number, and @queue enabled on it. */
void fake_driver_create(struct fake_driver *driver, struct fake_guest *fake, struct queue *queue,
			unsigned int number, uint16_t size, bool event_idx);

/* Adds a descriptor; @flags as VRING_DESC_F_*, NEXT chains it to the one that is added after it. */
uint16_t fake_desc(struct fake_driver *driver, uint64_t iova, uint32_t length, uint16_t flags);
/* Makes a chain available. */
void fake_offer(struct fake_driver *driver, uint16_t head);
/* Request at @iova and room for an answer at @answer; makes them available. */
void fake_request(struct fake_driver *driver, uint64_t iova, uint32_t length, uint64_t answer,
		  uint32_t answer_length);
/* The next used element; false when there is none. */
bool fake_used(struct fake_driver *driver, struct vring_used_elem *elem);

#endif
