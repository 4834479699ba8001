// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/fake_guest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int fake_pin(void *context, uint64_t iova, uint64_t length, bool write)
{
	struct fake_guest *fake = context;

	(void)write;
	fake->pins++;
	if (length == 0 || length > GUEST_PIN_MAX)
		return -E2BIG;
	if (fake->hole_bytes && iova < fake->hole + fake->hole_bytes && fake->hole < iova + length)
		return fake->hole_error;
	fake->calm = 2;		/* the two looks at the counter around the copy that follows */
	return 0;
}

static void fake_drop(void *context, uint64_t iova, uint64_t length)
{
	(void)context;
	(void)iova;
	(void)length;
}

static uint64_t fake_errors(void *context)
{
	struct fake_guest *fake = context;

	/* an array cannot tell who touched it: with a hole every access is suspect and gets explained */
	if (fake->calm)
		fake->calm--;
	else if (fake->hole_bytes)
		fake->errors++;
	return fake->errors;
}

static const struct guest_ops fake_ops = {
	.pin = fake_pin,
	.drop = fake_drop,
	.errors = fake_errors,
};

void fake_guest_create(struct fake_guest *fake)
{
	memset(fake, 0, sizeof(*fake));
	fake->guest.base = calloc(1, FAKE_BYTES);
	if (!fake->guest.base)
		abort();
	fake->guest.bytes = FAKE_BYTES;
	fake->guest.ops = &fake_ops;
	fake->guest.context = fake;
	fake->hole_error = -EFAULT;
}

void fake_guest_destroy(struct fake_guest *fake)
{
	free(fake->guest.base);
}

void fake_driver_create(struct fake_driver *driver, struct fake_guest *fake, struct queue *queue,
			unsigned int number, uint16_t size, bool event_idx)
{
	uint64_t at = FAKE_QUEUE + number * 0x10000ULL;

	memset(driver, 0, sizeof(*driver));
	driver->fake = fake;
	driver->layout = (struct queue_layout){
		.size = size,
		.desc = at,
		.driver = at + 0x8000,
		.device = at + 0xc000,
		.event_idx = event_idx,
		.indirect = true,
	};
	driver->desc = (void *)(fake->guest.base + driver->layout.desc);
	driver->avail = (void *)(fake->guest.base + driver->layout.driver);
	driver->used = (void *)(fake->guest.base + driver->layout.device);
	queue_create(queue, &fake->guest);
	queue_enable(queue, &driver->layout);
}

uint16_t fake_desc(struct fake_driver *driver, uint64_t iova, uint32_t length, uint16_t flags)
{
	uint16_t index = (uint16_t)(driver->next_desc & (driver->layout.size - 1));

	driver->desc[index] = (struct vring_desc){
		.addr = iova,
		.len = length,
		.flags = flags,
		.next = (uint16_t)((index + 1) & (int)(driver->layout.size - 1)),
	};
	driver->next_desc++;
	return index;
}

void fake_offer(struct fake_driver *driver, uint16_t head)
{
	driver->avail->ring[driver->avail->idx & (driver->layout.size - 1)] = head;
	driver->avail->idx++;
}

void fake_request(struct fake_driver *driver, uint64_t iova, uint32_t length, uint64_t answer,
		  uint32_t answer_length)
{
	uint16_t head = fake_desc(driver, iova, length, answer_length ? VRING_DESC_F_NEXT : 0);

	if (answer_length)
		fake_desc(driver, answer, answer_length, VRING_DESC_F_WRITE);
	fake_offer(driver, head);
}

bool fake_used(struct fake_driver *driver, struct vring_used_elem *elem)
{
	if (driver->seen == driver->used->idx)
		return false;
	*elem = driver->used->ring[driver->seen & (driver->layout.size - 1)];
	driver->seen++;
	return true;
}
