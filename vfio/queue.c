// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfio/queue.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_ring.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static uint64_t avail_idx(const struct queue *queue)
{
	return queue->layout.driver + offsetof(struct vring_avail, idx);
}

static uint64_t avail_entry(const struct queue *queue, uint32_t entry)
{
	return queue->layout.driver + sizeof(struct vring_avail) + entry * sizeof(__virtio16);
}

static uint64_t used_idx(const struct queue *queue)
{
	return queue->layout.device + offsetof(struct vring_used, idx);
}

static uint64_t used_entry(const struct queue *queue, uint32_t entry)
{
	return queue->layout.device + sizeof(struct vring_used) +
	       entry * sizeof(struct vring_used_elem);
}

void queue_create(struct queue *queue, struct guest *guest)
{
	memset(queue, 0, sizeof(*queue));
	queue->guest = guest;
	pthread_mutex_init(&queue->lock, NULL);
}

void queue_destroy(struct queue *queue)
{
	pthread_mutex_destroy(&queue->lock);
}

int queue_enable(struct queue *queue, const struct queue_layout *layout)
{
	uint64_t size = layout->size;

	pthread_mutex_lock(&queue->lock);
	queue->layout = *layout;
	queue->avail = 0;
	queue->used = 0;
	queue->signalled = 0;
	queue->enabled = true;
	queue->broken = size == 0 || size > QUEUE_SIZE_MAX || (size & (size - 1)) ||
		layout->desc % VRING_DESC_ALIGN_SIZE || layout->driver % VRING_AVAIL_ALIGN_SIZE ||
		layout->device % VRING_USED_ALIGN_SIZE ||
		!guest_address(queue->guest, layout->desc, size * sizeof(struct vring_desc)) ||
		!guest_address(queue->guest, layout->driver, 6 + 2 * size) ||
		!guest_address(queue->guest, layout->device, 6 + 8 * size);
	pthread_mutex_unlock(&queue->lock);
	return queue->broken ? -EINVAL : 0;
}

void queue_disable(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->enabled = false;
	pthread_mutex_unlock(&queue->lock);
}

/* A chain being gathered in queue->walk. */
struct walk {
	struct queue_segment *segments;
	unsigned int out;
	unsigned int in;
	uint64_t out_bytes;
	uint64_t in_bytes;
};

static int walk_add(struct walk *walk, const struct vring_desc *desc)
{
	uint32_t length = le32toh(desc->len);
	bool in = le16toh(desc->flags) & VRING_DESC_F_WRITE;

	/* 2.7.4.2: all that the device reads comes before all that it writes */
	if (!in && walk->in)
		return -EINVAL;
	if (length == 0)
		return 0;
	if (walk->out + walk->in == QUEUE_SEGMENTS_MAX)
		return -EINVAL;
	walk->segments[walk->out + walk->in] = (struct queue_segment){
		.iova = le64toh(desc->addr), .length = length,
	};
	if (in) {
		walk->in++;
		walk->in_bytes += length;
	} else {
		walk->out++;
		walk->out_bytes += length;
	}
	/* 2.7.4: a chain longer than 2^32 bytes is not allowed */
	return walk->in_bytes + walk->out_bytes > UINT32_MAX ? -EINVAL : 0;
}

static int walk_indirect(struct queue *queue, struct walk *walk, const struct vring_desc *desc)
{
	uint32_t length = le32toh(desc->len), count = length / (uint32_t)sizeof(*desc);
	struct vring_desc *table;
	uint32_t index = 0, steps;
	int ret;

	if (!queue->layout.indirect || length % sizeof(*desc) || count == 0 ||
	    count > QUEUE_SEGMENTS_MAX)
		return -EINVAL;
	table = malloc(length);
	if (!table)
		return -ENOMEM;
	/* the table is copied whole: the guest cannot change it under the walk */
	ret = guest_read(queue->guest, table, le64toh(desc->addr), length);
	for (steps = 0; !ret; steps++) {
		uint16_t flags = le16toh(table[index].flags);

		if (steps == count || flags & VRING_DESC_F_INDIRECT) {
			ret = -EINVAL;
			break;
		}
		ret = walk_add(walk, &table[index]);
		if (ret || !(flags & VRING_DESC_F_NEXT))
			break;
		index = le16toh(table[index].next);
		if (index >= count)
			ret = -EINVAL;
	}
	free(table);
	return ret;
}

static int walk_chain(struct queue *queue, struct walk *walk, uint16_t head)
{
	uint32_t index = head, steps;

	for (steps = 0; steps < queue->layout.size; steps++) {
		struct vring_desc desc;
		uint16_t flags;
		int ret;

		ret = guest_read(queue->guest, &desc, queue->layout.desc + index * sizeof(desc),
				 sizeof(desc));
		if (ret)
			return ret;
		flags = le16toh(desc.flags);
		if (flags & VRING_DESC_F_INDIRECT)
			return flags & VRING_DESC_F_NEXT ? -EINVAL :
							   walk_indirect(queue, walk, &desc);
		ret = walk_add(walk, &desc);
		if (ret || !(flags & VRING_DESC_F_NEXT))
			return ret;
		index = le16toh(desc.next);
		if (index >= queue->layout.size)
			return -EINVAL;
	}
	return -EINVAL;		/* a loop */
}

static int queue_pop_head(struct queue *queue, uint16_t *head)
{
	uint16_t idx, value, waiting;
	int ret;

	ret = guest_load16(queue->guest, avail_idx(queue), &idx);
	if (ret)
		return ret;
	waiting = (uint16_t)(le16toh(idx) - queue->avail);
	if (waiting == 0)
		return 0;
	if (waiting > queue->layout.size)
		return -EINVAL;
	ret = guest_load16(queue->guest,
			   avail_entry(queue, queue->avail & (queue->layout.size - 1)), &value);
	if (ret)
		return ret;
	*head = le16toh(value);
	return *head < queue->layout.size ? 1 : -EINVAL;
}

int queue_pop(struct queue *queue, struct queue_chain *chain)
{
	struct walk walk = { .segments = queue->walk };
	size_t bytes;
	uint16_t head = 0;
	int ret;

	if (!queue->enabled || queue->broken)
		return 0;
	ret = queue_pop_head(queue, &head);
	if (ret == 0)
		return 0;
	if (ret > 0)
		ret = walk_chain(queue, &walk, head);
	if (ret < 0)
		goto broken;

	*chain = (struct queue_chain){
		.head = head,
		.out = walk.out,
		.in = walk.in,
		.out_bytes = walk.out_bytes,
		.in_bytes = walk.in_bytes,
	};
	bytes = (walk.out + walk.in) * sizeof(*chain->segments);
	chain->segments = malloc(bytes ? bytes : 1);
	if (!chain->segments) {
		ret = -ENOMEM;
		goto broken;
	}
	memcpy(chain->segments, queue->walk, bytes);
	queue->avail++;
	return 1;

broken:
	queue->broken = true;
	return ret;
}

int queue_push(struct queue *queue, const struct queue_chain *chain, uint32_t written)
{
	struct vring_used_elem elem = { .id = htole32(chain->head), .len = htole32(written) };
	int ret = 0;

	pthread_mutex_lock(&queue->lock);
	if (queue->enabled && !queue->broken) {
		uint32_t entry = queue->used & (queue->layout.size - 1);

		ret = guest_write(queue->guest, used_entry(queue, entry), &elem, sizeof(elem));
		if (!ret) {
			queue->used++;
			ret = guest_store16(queue->guest, used_idx(queue), htole16(queue->used));
		}
		if (ret)
			queue->broken = true;
	}
	pthread_mutex_unlock(&queue->lock);
	return ret;
}

bool queue_signal(struct queue *queue)
{
	uint16_t event = 0, flags = 0;
	bool wanted = false;

	pthread_mutex_lock(&queue->lock);
	if (!queue->enabled || queue->broken || queue->used == queue->signalled)
		goto out;
	/* the guest writes what it wants, then looks at the index: here the other way round */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (queue->layout.event_idx) {
		if (guest_load16(queue->guest, avail_entry(queue, queue->layout.size), &event) == 0)
			wanted = vring_need_event(le16toh(event), queue->used, queue->signalled);
	} else if (guest_load16(queue->guest, queue->layout.driver, &flags) == 0) {
		wanted = !(le16toh(flags) & VRING_AVAIL_F_NO_INTERRUPT);
	}
	queue->signalled = queue->used;
out:
	pthread_mutex_unlock(&queue->lock);
	return wanted;
}

bool queue_pending(struct queue *queue)
{
	uint16_t idx = 0;

	if (!queue->enabled || queue->broken || guest_load16(queue->guest, avail_idx(queue), &idx))
		return false;
	return le16toh(idx) != queue->avail;
}

int queue_wait(struct queue *queue)
{
	uint16_t idx = 0;
	int ret = 0;

	if (!queue->enabled || queue->broken)
		return 0;
	if (queue->layout.event_idx)
		ret = guest_store16(queue->guest, used_entry(queue, queue->layout.size),
				    htole16(queue->avail));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!ret)
		ret = guest_load16(queue->guest, avail_idx(queue), &idx);
	if (ret) {
		queue->broken = true;
		return ret;
	}
	return le16toh(idx) != queue->avail;
}

static int chain_copy(struct queue *queue, const struct queue_segment *segments, unsigned int count,
		      uint64_t offset, void *to, const void *from, size_t length)
{
	for (unsigned int i = 0; i < count && length; i++) {
		const struct queue_segment *segment = &segments[i];
		size_t step;
		int ret;

		if (offset >= segment->length) {
			offset -= segment->length;
			continue;
		}
		step = segment->length - offset;
		if (step > length)
			step = length;
		if (segment->iova > UINT64_MAX - offset)
			return -EFAULT;
		if (to) {
			ret = guest_read(queue->guest, to, segment->iova + offset, step);
			to = (uint8_t *)to + step;
		} else {
			ret = guest_write(queue->guest, segment->iova + offset, from, step);
			from = (const uint8_t *)from + step;
		}
		if (ret)
			return ret;
		length -= step;
		offset = 0;
	}
	return length ? -EINVAL : 0;
}

int queue_chain_read(struct queue *queue, const struct queue_chain *chain, uint64_t offset,
		     void *to, size_t length)
{
	return chain_copy(queue, chain->segments, chain->out, offset, to, NULL, length);
}

int queue_chain_write(struct queue *queue, const struct queue_chain *chain, uint64_t offset,
		      const void *from, size_t length)
{
	return chain_copy(queue, chain->segments + chain->out, chain->in, offset, NULL, from,
			  length);
}

void queue_chain_finish(struct queue_chain *chain)
{
	free(chain->segments);
	chain->segments = NULL;
}
