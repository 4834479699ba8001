// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A ring and an indirect table of any content: the walk ends, and what it gives keeps its promises.
 * Input: flags, size exponent, available index, then the descriptor table, the available ring and
 * what indirect descriptors point at.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void check_chain(struct queue *queue, const struct queue_chain *chain)
{
	uint64_t out = 0, in = 0;
	uint8_t bytes[64];

	if (chain->out + chain->in > QUEUE_SEGMENTS_MAX || chain->head >= queue->layout.size)
		abort();
	for (unsigned int i = 0; i < chain->out + chain->in; i++) {
		if (chain->segments[i].length == 0)
			abort();
		*(i < chain->out ? &out : &in) += chain->segments[i].length;
	}
	if (out != chain->out_bytes || in != chain->in_bytes || out + in > UINT32_MAX)
		abort();
	queue_chain_read(queue, chain, out / 2, bytes, sizeof(bytes));
	queue_chain_write(queue, chain, in / 2, bytes, sizeof(bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake_guest fake;
	static struct queue queue;
	struct fake_driver driver;
	struct queue_chain chain;
	uint16_t ring_size, idx;
	size_t part;

	if (size < 4)
		return 0;
	if (!fake.guest.base)
		fake_guest_create(&fake);
	memset(fake.guest.base + FAKE_QUEUE, 0, 0x10000);
	ring_size = (uint16_t)(1 << (data[1] % 11));
	fake_driver_create(&driver, &fake, &queue, 0, ring_size, data[0] & 1);
	queue.layout.indirect = !(data[0] & 2);
	memcpy(&idx, data + 2, sizeof(idx));
	data += 4;
	size -= 4;

	part = ring_size * sizeof(struct vring_desc);
	part = part < size ? part : size;
	memcpy(driver.desc, data, part);
	data += part;
	size -= part;
	part = ring_size * sizeof(__virtio16);
	part = part < size ? part : size;
	memcpy(driver.avail->ring, data, part);
	data += part;
	size -= part;
	memcpy(fake.guest.base + FAKE_DATA, data, size < 0x10000 ? size : 0x10000);
	driver.avail->idx = idx;

	for (unsigned int i = 0; i <= ring_size && queue_pop(&queue, &chain) == 1; i++) {
		check_chain(&queue, &chain);
		queue_push(&queue, &chain, 1);
		queue_chain_finish(&chain);
		queue_signal(&queue);
		queue_wait(&queue);
	}
	queue_destroy(&queue);
	return 0;
}
