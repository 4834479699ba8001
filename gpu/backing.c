// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/backing.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

struct backing *backing_create(const struct virtio_gpu_mem_entry *entries, uint32_t count)
{
	struct backing *backing, *smaller;

	backing = malloc(sizeof(*backing) + count * sizeof(backing->entries[0]));
	if (!backing)
		return NULL;
	backing->bytes = 0;
	backing->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t iova = le64toh(entries[i].addr), length = le32toh(entries[i].length);
		struct backing_entry *last = &backing->entries[backing->count];

		if (length == 0)
			continue;
		if (backing->count && last[-1].iova + last[-1].length == iova)
			last[-1].length += length;
		else
			backing->entries[backing->count++] = (struct backing_entry){
				.iova = iova, .length = length, .offset = backing->bytes,
			};
		backing->bytes += length;
	}
	smaller = realloc(backing, sizeof(*backing) + backing->count * sizeof(backing->entries[0]));
	return smaller ? smaller : backing;
}

/* The entry that holds @offset, which lies within the whole. */
static uint32_t backing_find(const struct backing *backing, uint64_t offset)
{
	uint32_t low = 0, high = backing->count - 1;

	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (backing->entries[middle].offset <= offset)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

int backing_read(const struct backing *backing, struct guest *guest, uint64_t offset, void *to,
		 uint64_t length)
{
	uint8_t *at = to;
	uint32_t i;

	if (length > backing->bytes || offset > backing->bytes - length)
		return -EINVAL;
	if (length == 0)
		return 0;
	for (i = backing_find(backing, offset); length; i++) {
		const struct backing_entry *entry = &backing->entries[i];
		uint64_t skip = offset - entry->offset, step = entry->length - skip;
		int ret;

		if (step > length)
			step = length;
		if (entry->iova > UINT64_MAX - skip)
			return -EFAULT;
		ret = guest_read(guest, at, entry->iova + skip, step);
		if (ret)
			return ret;
		at += step;
		offset += step;
		length -= step;
	}
	return 0;
}

int backing_check(const struct backing *backing, struct guest *guest)
{
	uint8_t byte;
	int ret = 0;

	for (uint32_t i = 0; i < backing->count && !ret; i++)
		ret = guest_read(guest, &byte, backing->entries[i].iova, 1);
	return ret;
}
