// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "tests/unit/fake_guest.h"
#include "tests/unit/suite.h"

static struct fake_guest fake;
static struct fake_driver driver;
static struct queue queue;

static void start(uint16_t size, bool event_idx)
{
	fake_guest_create(&fake);
	fake_driver_create(&driver, &fake, &queue, 0, size, event_idx);
}

static void stop(void)
{
	queue_destroy(&queue);
	fake_guest_destroy(&fake);
}

/* What pop gives for a ring that breaks the rules; it must stay so. */
static void expect_broken(int error)
{
	struct queue_chain chain;

	CU_ASSERT_EQUAL(queue_pop(&queue, &chain), error);
	CU_ASSERT_TRUE(queue.broken);
	CU_ASSERT_EQUAL(queue_pop(&queue, &chain), 0);
	CU_ASSERT_EQUAL(queue_wait(&queue), 0);
	CU_ASSERT_FALSE(queue_signal(&queue));
}

static void test_round_trip(void)
{
	char text[] = "request", back[8] = "";
	struct queue_chain chain;
	struct vring_used_elem elem;

	start(8, false);
	memcpy(fake.guest.base + FAKE_DATA, text, sizeof(text));
	/* many more rounds than the ring has entries, and past the wrap of its indices */
	for (unsigned int i = 0; i < 70000; i++) {
		uint16_t head = fake_desc(&driver, FAKE_DATA, 3, VRING_DESC_F_NEXT);

		fake_desc(&driver, FAKE_DATA + 3, 5, VRING_DESC_F_NEXT);
		fake_desc(&driver, FAKE_DATA + 0x1000, 2, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE);
		fake_desc(&driver, FAKE_DATA + 0x2000, 9, VRING_DESC_F_WRITE);
		fake_offer(&driver, head);
		CU_ASSERT_EQUAL_FATAL(queue_pop(&queue, &chain), 1);
		CU_ASSERT_EQUAL_FATAL(chain.out_bytes, 8);
		CU_ASSERT_EQUAL_FATAL(chain.in_bytes, 11);
		queue_chain_read(&queue, &chain, 0, back, 8);
		queue_chain_write(&queue, &chain, 1, "ab", 2);
		CU_ASSERT_EQUAL_FATAL(queue_push(&queue, &chain, 3), 0);
		queue_chain_finish(&chain);
		CU_ASSERT_FATAL(fake_used(&driver, &elem));
		CU_ASSERT_EQUAL_FATAL(elem.id, head);
		CU_ASSERT_EQUAL_FATAL(elem.len, 3);
	}
	CU_ASSERT_STRING_EQUAL(back, text);
	CU_ASSERT_EQUAL(fake.guest.base[FAKE_DATA + 0x1001], 'a');
	CU_ASSERT_EQUAL(fake.guest.base[FAKE_DATA + 0x2000], 'b');
	CU_ASSERT_EQUAL(queue_pop(&queue, &chain), 0);
	stop();
}

static void test_chain_bounds(void)
{
	struct queue_chain chain;
	uint8_t bytes[32];

	start(8, false);
	fake_request(&driver, FAKE_DATA, 16, FAKE_DATA + 64, 16);
	CU_ASSERT_EQUAL_FATAL(queue_pop(&queue, &chain), 1);
	CU_ASSERT_EQUAL(queue_chain_read(&queue, &chain, 0, bytes, 17), -EINVAL);
	CU_ASSERT_EQUAL(queue_chain_read(&queue, &chain, 16, bytes, 1), -EINVAL);
	CU_ASSERT_EQUAL(queue_chain_write(&queue, &chain, 15, bytes, 2), -EINVAL);
	CU_ASSERT_EQUAL(queue_chain_write(&queue, &chain, UINT64_MAX, bytes, 1), -EINVAL);
	queue_chain_finish(&chain);
	stop();
}

static void test_indirect(void)
{
	struct vring_desc *table;
	struct queue_chain chain;

	start(8, false);
	table = (void *)(fake.guest.base + FAKE_DATA);
	for (uint16_t i = 0; i < 100; i++)
		table[i] = (struct vring_desc){
			.addr = FAKE_DATA + 0x10000, .len = 16,
			.flags = (uint16_t)((i < 99 ? VRING_DESC_F_NEXT : 0) |
					    (i >= 60 ? VRING_DESC_F_WRITE : 0)),
			.next = (uint16_t)(i + 1),
		};
	fake_offer(&driver, fake_desc(&driver, FAKE_DATA, 100 * 16, VRING_DESC_F_INDIRECT));
	CU_ASSERT_EQUAL_FATAL(queue_pop(&queue, &chain), 1);
	CU_ASSERT_EQUAL(chain.out, 60);
	CU_ASSERT_EQUAL(chain.in, 40);
	queue_chain_finish(&chain);

	/* zero-length segments are nothing */
	table[1].len = 0;
	fake_offer(&driver, fake_desc(&driver, FAKE_DATA, 100 * 16, VRING_DESC_F_INDIRECT));
	CU_ASSERT_EQUAL_FATAL(queue_pop(&queue, &chain), 1);
	CU_ASSERT_EQUAL(chain.out, 59);
	queue_chain_finish(&chain);
	stop();
}

static void test_bad_indirect(void)
{
	static const struct {
		uint32_t length;
		uint16_t flags;
	} heads[] = {
		{ 0, VRING_DESC_F_INDIRECT },
		{ 15, VRING_DESC_F_INDIRECT },
		{ 16 * (QUEUE_SEGMENTS_MAX + 1), VRING_DESC_F_INDIRECT },
		{ UINT32_MAX & ~15u, VRING_DESC_F_INDIRECT },
		{ 32, VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT },
	};
	struct vring_desc *table;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		start(8, false);
		fake_offer(&driver, fake_desc(&driver, FAKE_DATA, heads[i].length, heads[i].flags));
		expect_broken(-EINVAL);
		stop();
	}
	for (unsigned int kind = 0; kind < 4; kind++) {
		start(8, false);
		table = (void *)(fake.guest.base + FAKE_DATA);
		table[0] = (struct vring_desc){ .addr = FAKE_DATA, .len = 16,
						.flags = VRING_DESC_F_NEXT, .next = 1 };
		if (kind == 0)		/* a loop */
			table[1] = (struct vring_desc){ .len = 1, .flags = VRING_DESC_F_NEXT };
		else if (kind == 1)	/* a table in a table */
			table[1].flags = VRING_DESC_F_INDIRECT;
		else if (kind == 2)	/* out of the table */
			table[0].next = 2;
		else			/* not negotiated */
			queue.layout.indirect = false;
		fake_offer(&driver, fake_desc(&driver, FAKE_DATA, 32, VRING_DESC_F_INDIRECT));
		expect_broken(-EINVAL);
		stop();
	}
	start(8, false);
	fake_offer(&driver, fake_desc(&driver, FAKE_BYTES - 16, 32, VRING_DESC_F_INDIRECT));
	expect_broken(-EFAULT);
	stop();
}

static void test_bad_ring(void)
{
	/* a head outside the ring */
	start(8, false);
	fake_offer(&driver, 8);
	expect_broken(-EINVAL);
	stop();

	/* more requests than the ring has entries */
	start(8, false);
	driver.avail->idx = 9;
	expect_broken(-EINVAL);
	stop();

	/* a chain that leads back to itself */
	start(8, false);
	fake_desc(&driver, FAKE_DATA, 1, VRING_DESC_F_NEXT);
	driver.desc[0].next = 0;
	fake_offer(&driver, 0);
	expect_broken(-EINVAL);
	stop();

	/* a next outside the ring */
	start(8, false);
	fake_desc(&driver, FAKE_DATA, 1, VRING_DESC_F_NEXT);
	driver.desc[0].next = 65535;
	fake_offer(&driver, 0);
	expect_broken(-EINVAL);
	stop();

	/* something to read behind something to write */
	start(8, false);
	fake_desc(&driver, FAKE_DATA, 1, VRING_DESC_F_WRITE | VRING_DESC_F_NEXT);
	fake_desc(&driver, FAKE_DATA, 1, 0);
	fake_offer(&driver, 0);
	expect_broken(-EINVAL);
	stop();

	/* more than 4 GiB */
	start(8, false);
	fake_desc(&driver, FAKE_DATA, UINT32_MAX, VRING_DESC_F_NEXT);
	fake_desc(&driver, FAKE_DATA, 1, 0);
	fake_offer(&driver, 0);
	expect_broken(-EINVAL);
	stop();
}

static void test_layout(void)
{
	static const struct queue_layout layouts[] = {
		{ .size = 0, .desc = 0x1000, .driver = 0x2000, .device = 0x3000 },
		{ .size = 3, .desc = 0x1000, .driver = 0x2000, .device = 0x3000 },
		{ .size = 2048, .desc = 0x10000, .driver = 0x20000, .device = 0x30000 },
		{ .size = 8, .desc = 0x1008, .driver = 0x2000, .device = 0x3000 },
		{ .size = 8, .desc = 0x1000, .driver = 0x2001, .device = 0x3000 },
		{ .size = 8, .desc = 0x1000, .driver = 0x2000, .device = 0x3002 },
		{ .size = 8, .desc = FAKE_BYTES - 16, .driver = 0x2000, .device = 0x3000 },
		{ .size = 8, .desc = 0x1000, .driver = FAKE_BYTES, .device = 0x3000 },
		{ .size = 8, .desc = 0x1000, .driver = 0x2000, .device = UINT64_MAX - 3 },
	};
	struct queue_chain chain;

	start(8, false);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		CU_ASSERT_EQUAL(queue_enable(&queue, &layouts[i]), -EINVAL);
		CU_ASSERT_EQUAL(queue_pop(&queue, &chain), 0);
	}
	CU_ASSERT_EQUAL(queue_enable(&queue, &driver.layout), 0);
	queue_disable(&queue);
	fake_request(&driver, FAKE_DATA, 1, 0, 0);
	CU_ASSERT_EQUAL(queue_pop(&queue, &chain), 0);
	stop();
}

static void test_hole(void)
{
	struct queue_chain chain = { 0 };

	start(8, false);
	fake.hole = driver.layout.driver;
	fake.hole_bytes = 4096;
	fake.hole_error = -ENOMEM;
	expect_broken(-ENOMEM);
	stop();

	start(8, true);
	fake.hole = driver.layout.device;
	fake.hole_bytes = 4096;
	fake.hole_error = -EACCES;
	CU_ASSERT_EQUAL(queue_push(&queue, &chain, 0), -EACCES);
	CU_ASSERT_TRUE(queue.broken);
	stop();

	start(8, true);
	fake.hole = driver.layout.device;
	fake.hole_bytes = 4096;
	CU_ASSERT_EQUAL(queue_wait(&queue), -EFAULT);
	CU_ASSERT_TRUE(queue.broken);
	stop();
}

static void push_one(void)
{
	struct queue_chain chain;

	fake_request(&driver, FAKE_DATA, 8, 0, 0);
	CU_ASSERT_EQUAL_FATAL(queue_pop(&queue, &chain), 1);
	queue_push(&queue, &chain, 0);
	queue_chain_finish(&chain);
}

static void test_signals(void)
{
	__virtio16 *used_event;

	start(8, false);
	CU_ASSERT_FALSE(queue_signal(&queue));
	push_one();
	push_one();
	CU_ASSERT_TRUE(queue_signal(&queue));
	CU_ASSERT_FALSE(queue_signal(&queue));
	driver.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	push_one();
	CU_ASSERT_FALSE(queue_signal(&queue));
	stop();

	start(8, true);
	used_event = &driver.avail->ring[8];
	*used_event = 1;	/* wants to hear of the second */
	push_one();
	CU_ASSERT_FALSE(queue_signal(&queue));
	push_one();
	CU_ASSERT_TRUE(queue_signal(&queue));
	push_one();
	CU_ASSERT_FALSE(queue_signal(&queue));
	stop();
}

static void test_wait(void)
{
	__virtio16 *avail_event;

	start(8, true);
	avail_event = (__virtio16 *)&driver.used->ring[8];
	push_one();
	CU_ASSERT_EQUAL(queue_wait(&queue), 0);
	CU_ASSERT_EQUAL(*avail_event, 1);
	fake_request(&driver, FAKE_DATA, 8, 0, 0);
	CU_ASSERT_EQUAL(queue_wait(&queue), 1);
	stop();
}

SUITE_RUN("queue",
	  { "a chain's bytes arrive and its descriptors come back, 70000 times", test_round_trip },
	  { "copies past a chain's end are refused", test_chain_bounds },
	  { "an indirect table may be longer than the ring", test_indirect },
	  { "a bad indirect table breaks the queue", test_bad_indirect },
	  { "a ring or chain that breaks the rules breaks the queue", test_bad_ring },
	  { "a ring of bad size, alignment or place is refused", test_layout },
	  { "a ring in memory that the guest does not have breaks the queue", test_hole },
	  { "one interrupt for what was pushed, when the driver wants it", test_signals },
	  { "before it sleeps the device asks for a kick and looks once more", test_wait })
