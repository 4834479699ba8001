/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * backing.h - the guest memory that stands behind a resource
 *
 * A list of ranges of guest memory, in order; together they are one run of bytes. Neighbours that
 * follow each other in guest memory are joined.
 */
#ifndef OCTAVO_GPU_BACKING_H
#define OCTAVO_GPU_BACKING_H

#include <linux/virtio_gpu.h>
#include <stdint.h>

#include "vfio/guest.h"

struct backing_entry {
	uint64_t iova;
	uint64_t length;	/* not 0 */
	uint64_t offset;	/* of its first byte in the whole */
};

struct backing {
	uint64_t bytes;
	uint32_t count;
	struct backing_entry entries[];
};

/* NULL when memory is short. @entries is a copy, not guest memory. Ends with free(). */
struct backing *backing_create(const struct virtio_gpu_mem_entry *entries, uint32_t count);

/* Copies @length bytes from @offset on; -EINVAL past the end, else the errors of guest.h. */
int backing_read(const struct backing *backing, struct guest *guest, uint64_t offset, void *to,
		 uint64_t length);

/*
 * Looks whether the guest has memory where each range begins: 0, or the errors of guest.h. For what
 * is used later by somebody who has no request to answer with an error.
 */
int backing_check(const struct backing *backing, struct guest *guest);

#endif
