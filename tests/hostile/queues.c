// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * hostile-queues UUID SECONDS [SEED]: a VM's driver that keeps no rule of virtio, against a real
 * worker behind a real module. Between its attacks it resets the device and asks for the display
 * info, as an honest driver would: that has to be answered each time.
 */
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

#define RING(queue)	(0x10000u + (queue) * 0x10000u)	/* descriptors; available 0x8000 on */
#define RING_SIZE	64u
#define REQUESTS	0x100000u
#define ANSWERS		0x800000u
#define ANSWER_BYTES	0x1000u
#define ANSWER_S	10	/* an answer is late after this long, and the test has failed */

struct host host;

static struct vm vm;
static int vectors[OCTAVO_QUEUES];
static uint16_t produced[OCTAVO_QUEUES];
static uint64_t random_state;
static unsigned long requests_sent, resets, broken;

bool check(bool ok, const char *format, ...)
{
	va_list args;

	if (!ok) {
		va_start(args, format);
		vfprintf(stderr, format, args);
		va_end(args);
		fputc('\n', stderr);
		exit(1);
	}
	return ok;
}

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

void uuid_text(const uint8_t uuid[16], char text[37])
{
	static const uint8_t dash_before[16] = { [4] = 1, [6] = 1, [8] = 1, [10] = 1 };

	for (unsigned int i = 0; i < 16; i++)
		text += sprintf(text, "%s%02x", dash_before[i] ? "-" : "", uuid[i]);
}

static void uuid_parse(const char *text, uint8_t uuid[16])
{
	for (unsigned int i = 0; i < 16; i++) {
		unsigned int byte;

		if (*text == '-')
			text++;
		if (sscanf(text, "%2x", &byte) != 1)
			give_up("not a UUID");
		uuid[i] = (uint8_t)byte;
		text += 2;
	}
}

/* xorshift64*: the same seed gives the same attack */
static uint32_t random32(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)(random_state * 0x2545f4914f6cdd1dULL >> 32);
}

static uint32_t below(uint32_t limit)
{
	return random32() % limit;
}

/* Numbers at which code that counts goes wrong. */
static uint64_t odd_number(void)
{
	static const uint64_t numbers[] = {
		0, 1, 2, 3, 4, 7, 15, 16, 23, 24, 63, 64, 65, 255, 4095, 4096, 4097, 16384, 16385,
		65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, GUEST_BYTES - 1,
		GUEST_BYTES, ROM_IOVA, 1ULL << 46, 1ULL << 63, UINT64_MAX - 7, UINT64_MAX,
	};

	return below(4) ? numbers[below(sizeof(numbers) / sizeof(numbers[0]))] :
			  (uint64_t)random32() << 32 | random32();
}

static void common_write(size_t offset, uint64_t value, size_t size)
{
	vm_write(&vm, VFIO_PCI_BAR0_REGION_INDEX, OCTAVO_BAR0_COMMON + offset, value, size);
}

static uint64_t common_read(size_t offset, size_t size)
{
	return vm_read(&vm, VFIO_PCI_BAR0_REGION_INDEX, OCTAVO_BAR0_COMMON + offset, size);
}

#define COMMON(field)		offsetof(struct virtio_pci_common_cfg, field)
#define common_set(field, value)                                                                   \
	common_write(COMMON(field), value, sizeof(((struct virtio_pci_common_cfg *)0)->field))
#define common_get(field)                                                                          \
	common_read(COMMON(field), sizeof(((struct virtio_pci_common_cfg *)0)->field))

static void queue_address(size_t low, uint64_t address)
{
	common_write(low, (uint32_t)address, 4);
	common_write(low + 4, address >> 32, 4);
}

/* An honest driver's way to DRIVER_OK, at rings that may be @odd. */
static void drive(bool odd)
{
	uint32_t features[2];

	resets++;
	common_set(device_status, 0);
	check(common_get(device_status) == 0, "the reset did not complete at once");
	memset(vm.memory + RING(0), 0, 0x20000);
	common_set(device_status, VIRTIO_CONFIG_S_ACKNOWLEDGE);
	common_set(device_status, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER);
	for (unsigned int word = 0; word < 2; word++) {
		common_set(device_feature_select, word);
		features[word] = (uint32_t)common_get(device_feature);
		common_set(guest_feature_select, word);
		common_set(guest_feature, features[word]);
	}
	common_set(device_status, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
				  VIRTIO_CONFIG_S_FEATURES_OK);
	check(common_get(device_status) & VIRTIO_CONFIG_S_FEATURES_OK, "features are refused");
	for (unsigned int queue = 0; queue < OCTAVO_QUEUES; queue++) {
		common_set(queue_select, queue);
		common_set(queue_size, RING_SIZE);
		common_set(queue_msix_vector, queue);
		queue_address(COMMON(queue_desc_lo), odd ? odd_number() : RING(queue));
		queue_address(COMMON(queue_avail_lo), odd ? odd_number() : RING(queue) + 0x8000);
		queue_address(COMMON(queue_used_lo), odd ? odd_number() : RING(queue) + 0xc000);
		common_set(queue_enable, 1);
		produced[queue] = 0;
	}
	common_set(device_status, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
				  VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK);
}

static void kick(unsigned int queue)
{
	vm_write(&vm, VFIO_PCI_BAR0_REGION_INDEX,
		 OCTAVO_BAR0_NOTIFY + queue * OCTAVO_NOTIFY_MULTIPLIER, queue, 2);
}

static struct vring_desc *descriptors(unsigned int queue)
{
	return (void *)(vm.memory + RING(queue));
}

static struct vring_avail *available(unsigned int queue)
{
	return (void *)(vm.memory + RING(queue) + 0x8000);
}

static uint16_t used_index(unsigned int queue)
{
	struct vring_used *used = (void *)(vm.memory + RING(queue) + 0xc000);

	return __atomic_load_n(&used->idx, __ATOMIC_ACQUIRE);
}

/* Puts @bytes at REQUESTS into the ring, with room for an answer. */
static void offer(unsigned int queue, uint64_t from, uint32_t bytes, uint64_t to, uint32_t room)
{
	struct vring_avail *avail = available(queue);
	uint16_t slot = (uint16_t)(produced[queue] * 2 % RING_SIZE);

	descriptors(queue)[slot] = (struct vring_desc){ from, bytes, VRING_DESC_F_NEXT,
							(uint16_t)(slot + 1) };
	descriptors(queue)[slot + 1] = (struct vring_desc){ to, room, VRING_DESC_F_WRITE, 0 };
	avail->ring[produced[queue] % RING_SIZE] = slot;
	/* used_event: wants to hear of the next one */
	avail->ring[RING_SIZE] = produced[queue];
	produced[queue]++;
	__atomic_store_n(&avail->idx, produced[queue], __ATOMIC_RELEASE);
	requests_sent++;
}

static bool needs_reset(void)
{
	return common_get(device_status) & VIRTIO_CONFIG_S_NEEDS_RESET;
}

/* Until all that was offered came back, or the device gave up on the ring. */
static bool wait_answers(unsigned int queue)
{
	struct pollfd poll_fd = { .fd = vectors[queue], .events = POLLIN };
	time_t end = time(NULL) + ANSWER_S;
	uint64_t count;

	while (used_index(queue) != produced[queue]) {
		if (needs_reset()) {
			broken++;
			return false;
		}
		check(time(NULL) < end, "queue %u: %u of %u requests answered after %d s", queue,
		      used_index(queue), produced[queue], ANSWER_S);
		poll(&poll_fd, 1, 20);
		if (poll_fd.revents & POLLIN && read(poll_fd.fd, &count, sizeof(count)) < 0)
			continue;
	}
	return true;
}

static void honest(void)
{
	struct virtio_gpu_ctrl_hdr request = { .type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO };
	struct virtio_gpu_resp_display_info answer;

	drive(false);
	memcpy(vm.memory + REQUESTS, &request, sizeof(request));
	memset(vm.memory + ANSWERS, 0, sizeof(answer));
	offer(0, REQUESTS, sizeof(request), ANSWERS, sizeof(answer));
	kick(0);
	check(wait_answers(0), "the device broke on an honest request");
	memcpy(&answer, vm.memory + ANSWERS, sizeof(answer));
	check(answer.hdr.type == VIRTIO_GPU_RESP_OK_DISPLAY_INFO && answer.pmodes[0].enabled,
	      "an honest driver got answer 0x%x", answer.hdr.type);
}

/* Requests whose ring is right and whose content is not. */
static void attack_requests(unsigned int queue)
{
	static const uint16_t first[] = { 0x100, 0x200, 0x300 };
	unsigned int count = 1 + below(24);

	for (unsigned int i = 0; i < count; i++) {
		uint32_t at = REQUESTS + i * 0x1000, bytes = 24 + 4 * below(30);
		uint32_t *words = (uint32_t *)(vm.memory + at);

		for (unsigned int word = 0; word < 0x1000 / 4; word++)
			words[word] = below(3) ? below(70) : (uint32_t)odd_number();
		words[0] = below(20) ? first[below(3)] + below(16) : random32();
		words[1] = below(4);
		/* few contexts and resources, so that requests meet what others made */
		words[4] = below(4);
		if (below(3))
			words[6] = below(5);
		offer(queue, below(30) ? at : odd_number(), below(20) ? bytes : below(0x1000),
		      below(30) ? ANSWERS + i * ANSWER_BYTES : odd_number(),
		      below(20) ? ANSWER_BYTES : below(64));
	}
	kick(queue);
	wait_answers(queue);
}

/* A story that makes sense up to one number. */
static void attack_story(void)
{
	uint32_t id = 1 + below(4), width = 8 + below(100), height = 8 + below(100);
	struct {
		struct virtio_gpu_resource_create_2d create;
		struct virtio_gpu_resource_attach_backing attach;
		struct virtio_gpu_mem_entry entry;
		struct virtio_gpu_set_scanout scanout;
		struct virtio_gpu_transfer_to_host_2d transfer;
		struct virtio_gpu_resource_flush flush;
		struct virtio_gpu_resource_unref unref;
	} story = {
		.create = { { .type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D }, id, 1, width, height },
		.attach = { { .type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING }, id, 1 },
		.entry = { below(4) ? 0x200000 : odd_number(), width * height * 4, 0 },
		.scanout = { { .type = VIRTIO_GPU_CMD_SET_SCANOUT }, { 0, 0, width, height }, 0,
			     id },
		.transfer = { { .type = VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D },
			      { 0, 0, width, height }, 0, id, 0 },
		.flush = { { .type = VIRTIO_GPU_CMD_RESOURCE_FLUSH }, { 0, 0, width, height }, id,
			   0 },
		.unref = { { .type = VIRTIO_GPU_CMD_RESOURCE_UNREF }, id, 0 },
	};
	static const struct {
		size_t at, bytes;
	} parts[] = {
#define PART(field) offsetof(typeof(story), field)
		{ PART(create), sizeof(story.create) },
		{ PART(attach), sizeof(story.attach) + sizeof(story.entry) },
		{ PART(scanout), sizeof(story.scanout) },
		{ PART(transfer), sizeof(story.transfer) },
		{ PART(flush), sizeof(story.flush) },
		{ PART(unref), sizeof(story.unref) },
#undef PART
	};
	uint32_t *words = (uint32_t *)&story;

	words[below(sizeof(story) / 4)] = (uint32_t)odd_number();
	memcpy(vm.memory + REQUESTS, &story, sizeof(story));
	for (unsigned int i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		offer(0, REQUESTS + parts[i].at, (uint32_t)parts[i].bytes,
		      ANSWERS + i * ANSWER_BYTES, ANSWER_BYTES);
	kick(0);
	wait_answers(0);
}

/* Rings of any content, kicked. */
static void attack_rings(void)
{
	for (unsigned int queue = 0; queue < OCTAVO_QUEUES; queue++) {
		struct vring_desc *desc = descriptors(queue);

		for (unsigned int i = 0; i < RING_SIZE; i++)
			desc[i] = (struct vring_desc){
				.addr = below(2) ? REQUESTS + below(0x100000) : odd_number(),
				.len = below(2) ? below(256) : (uint32_t)odd_number(),
				.flags = (uint16_t)(below(10) ? below(8) : random32()),
				.next = (uint16_t)(below(10) ? below(RING_SIZE) : random32()),
			};
		for (unsigned int i = 0; i <= RING_SIZE; i++)
			available(queue)->ring[i] = (uint16_t)(below(10) ? below(RING_SIZE) :
									   random32());
		__atomic_store_n(&available(queue)->idx, (uint16_t)(below(4) ? below(RING_SIZE + 1) :
						random32()), __ATOMIC_RELEASE);
		kick(queue);
	}
	/* nothing to wait for that must come: the reset that follows finds the worker busy */
}

int main(int argc, char **argv)
{
	time_t end;
	uint8_t uuid[16];
	unsigned long rounds = 0;

	if (argc < 3)
		give_up("usage: hostile-queues UUID SECONDS [SEED]");
	uuid_parse(argv[1], uuid);
	random_state = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL);
	printf("seed %llu\n", (unsigned long long)random_state);
	random_state = random_state * 2 + 1;
	vm_open_begin(&vm, uuid);
	if (vm_opened(&vm))
		give_up("the vGPU does not open: %s", strerror(vm.open_errno));
	/* memory and bus master, as firmware sets them */
	vm_write(&vm, VFIO_PCI_CONFIG_REGION_INDEX, 4, 6, 2);
	for (unsigned int queue = 0; queue < OCTAVO_QUEUES; queue++)
		vectors[queue] = vm_eventfd(&vm, VFIO_PCI_MSIX_IRQ_INDEX, queue);

	for (end = time(NULL) + atoi(argv[2]); time(NULL) < end; rounds++) {
		honest();
		switch (below(5)) {
		case 0:
			attack_rings();
			break;
		case 1:
			drive(true);
			kick(0);
			kick(1);
			break;
		case 2:
			for (unsigned int i = 0; i < 5 && !needs_reset(); i++)
				attack_story();
			break;
		default:
			for (unsigned int i = 0; i < 5 && !needs_reset(); i++)
				attack_requests(below(4) == 0);
		}
	}
	honest();
	printf("%lu rounds, %lu resets, %lu requests, %lu broken rings\n", rounds, resets,
	       requests_sent, broken);
	vm_close(&vm);
	return 0;
}
