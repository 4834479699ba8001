// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vq_ping PCI-ADDRESS ROUNDS PAUSE_US[-UP_TO] [no-event-idx]: round trips of an empty request through the
 * control queue of a virtio-gpu, driven from user space so that nothing of DRM is in the way
 *
 * Runs as root in a guest without IOMMU, after virtio-pci has been unbound from the function. Each
 * round sends GET_DISPLAY_INFO, kicks if the device asks for it, spins until the answer is there and
 * then pauses (PAUSE_US 0: back to back; with UP_TO: a random time of that range, spinning, so that
 * it is exact). A request without an answer for 5 s ends it: a kick was lost. Prints "rounds N kicks N p50 NS p99 NS mean NS".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096u
#define RING_SIZE	16u
#define LATE_NS		5000000000ull	/* no answer after this long is a lost kick */
#define NO_VECTOR	0xffffu

enum { PAGE_DESC, PAGE_AVAIL, PAGE_USED, PAGE_REQUEST, PAGE_ANSWER, PAGES };

static volatile struct virtio_pci_common_cfg *common;
static volatile uint16_t *doorbell;
static uint8_t *memory;
static uint64_t physical[PAGES];

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	fputs("vq_ping: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int file_of(const char *address, const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", address, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	return fd;
}

/* Finds the capability of @type; the function's BAR0 holds all that are looked for. */
static struct virtio_pci_notify_cap find_cap(const uint8_t config[256], uint8_t type)
{
	struct virtio_pci_notify_cap cap;

	for (unsigned int at = config[PCI_CAPABILITY_LIST]; at && at < 256 - sizeof(cap);
	     at = config[at + PCI_CAP_LIST_NEXT]) {
		memcpy(&cap, config + at, sizeof(cap));
		if (cap.cap.cap_vndr == PCI_CAP_ID_VNDR && cap.cap.cfg_type == type)
			return cap;
	}
	die("the function has no virtio capability %u", type);
}

static void map_device(const char *address)
{
	uint8_t config[256];
	struct virtio_pci_notify_cap cap, notify;
	uint16_t command;
	uint8_t *bar;
	char name[16];
	int fd;

	fd = file_of(address, "config", O_RDWR);
	if (pread(fd, config, sizeof(config), 0) != sizeof(config))
		die("cannot read the configuration space of %s", address);
	memcpy(&command, config + PCI_COMMAND, sizeof(command));
	command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	if (pwrite(fd, &command, sizeof(command), PCI_COMMAND) != sizeof(command))
		die("cannot enable %s", address);
	close(fd);

	cap = find_cap(config, VIRTIO_PCI_CAP_COMMON_CFG);
	notify = find_cap(config, VIRTIO_PCI_CAP_NOTIFY_CFG);
	if (cap.cap.bar != notify.cap.bar)
		die("registers and doorbells are in different BARs");
	snprintf(name, sizeof(name), "resource%u", cap.cap.bar);
	fd = file_of(address, name, O_RDWR);
	bar = mmap(NULL, notify.cap.offset + notify.cap.length, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, 0);
	if (bar == MAP_FAILED)
		die("cannot map BAR%u: %s (is its driver unbound?)", cap.cap.bar, strerror(errno));
	close(fd);
	common = (volatile void *)(bar + cap.cap.offset);
	common->queue_select = 0;
	doorbell = (volatile void *)(bar + notify.cap.offset +
				     common->queue_notify_off * notify.notify_off_multiplier);
}

static void map_memory(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
	if (fd < 0 || memory == MAP_FAILED)
		die("no memory to share with the device: %s", strerror(errno));
	for (unsigned int i = 0; i < PAGES; i++) {
		off_t at = (off_t)(((uintptr_t)memory / PAGE + i) * sizeof(uint64_t));
		uint64_t entry;

		if (pread(fd, &entry, sizeof(entry), at) != sizeof(entry) || !(entry >> 63))
			die("where page %u lies is not known: this needs root", i);
		physical[i] = (entry & ((1ull << 55) - 1)) * PAGE;
	}
	close(fd);
}

static uint64_t features_offered(void)
{
	uint64_t features;

	common->device_feature_select = 1;
	features = (uint64_t)common->device_feature << 32;
	common->device_feature_select = 0;
	return features | common->device_feature;
}

/* True if event indexes were agreed on. */
static bool start(bool event_idx)
{
	uint64_t features = 1ull << VIRTIO_F_VERSION_1;

	common->device_status = 0;
	while (common->device_status)
		;
	common->device_status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;
	if (event_idx)
		features |= 1ull << VIRTIO_RING_F_EVENT_IDX;
	features |= 1ull << VIRTIO_F_ACCESS_PLATFORM;
	features &= features_offered();
	common->guest_feature_select = 0;
	common->guest_feature = (uint32_t)features;
	common->guest_feature_select = 1;
	common->guest_feature = (uint32_t)(features >> 32);
	common->device_status |= VIRTIO_CONFIG_S_FEATURES_OK;
	if (!(common->device_status & VIRTIO_CONFIG_S_FEATURES_OK))
		die("the device refuses the features 0x%llx", (unsigned long long)features);
	common->msix_config = NO_VECTOR;
	common->queue_select = 0;
	common->queue_size = RING_SIZE;
	common->queue_msix_vector = NO_VECTOR;
	common->queue_desc_lo = (uint32_t)physical[PAGE_DESC];
	common->queue_desc_hi = (uint32_t)(physical[PAGE_DESC] >> 32);
	common->queue_avail_lo = (uint32_t)physical[PAGE_AVAIL];
	common->queue_avail_hi = (uint32_t)(physical[PAGE_AVAIL] >> 32);
	common->queue_used_lo = (uint32_t)physical[PAGE_USED];
	common->queue_used_hi = (uint32_t)(physical[PAGE_USED] >> 32);
	common->queue_enable = 1;
	common->device_status |= VIRTIO_CONFIG_S_DRIVER_OK;
	return features >> VIRTIO_RING_F_EVENT_IDX & 1;
}

/* One round trip, ns. */
static uint64_t ping(bool event_idx, unsigned long *kicks)
{
	struct vring_desc *desc = (void *)(memory + PAGE_DESC * PAGE);
	struct vring_avail *avail = (void *)(memory + PAGE_AVAIL * PAGE);
	struct vring_used *used = (void *)(memory + PAGE_USED * PAGE);
	struct virtio_gpu_ctrl_hdr *request = (void *)(memory + PAGE_REQUEST * PAGE);
	struct virtio_gpu_resp_display_info *answer = (void *)(memory + PAGE_ANSWER * PAGE);
	const uint16_t *avail_event = (const uint16_t *)(const void *)&used->ring[RING_SIZE];
	uint16_t before = avail->idx;
	uint64_t begin = now_ns();
	bool kick;

	request->type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO;
	answer->hdr.type = 0;
	desc[0] = (struct vring_desc){ physical[PAGE_REQUEST], sizeof(*request), VRING_DESC_F_NEXT, 1 };
	desc[1] = (struct vring_desc){ physical[PAGE_ANSWER], sizeof(*answer), VRING_DESC_F_WRITE, 0 };
	avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	avail->ring[before % RING_SIZE] = 0;
	__atomic_store_n(&avail->idx, (uint16_t)(before + 1), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (event_idx)
		kick = vring_need_event(__atomic_load_n(avail_event, __ATOMIC_RELAXED),
					(uint16_t)(before + 1), before);
	else
		kick = !(__atomic_load_n(&used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY);
	if (kick) {
		*doorbell = 0;
		++*kicks;
	}
	while (__atomic_load_n(&used->idx, __ATOMIC_ACQUIRE) == before) {
		if (now_ns() - begin > LATE_NS)
			die("no answer to request %u after 5 s (%s)", before, kick ? "kicked" : "not kicked");
	}
	if (answer->hdr.type != VIRTIO_GPU_RESP_OK_DISPLAY_INFO)
		die("answer 0x%x to request %u", answer->hdr.type, before);
	return now_ns() - begin;
}

/* By spinning: a sleep of a guest wakes up when the host's timers please. */
static void wait_us(unsigned long us)
{
	uint64_t end = now_ns() + us * 1000u;

	while (now_ns() < end)
		;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	unsigned long rounds, pause_us, up_to_us = 0, kicks = 0;
	uint64_t *spent, sum = 0;
	bool event_idx;
	char *end;

	if (argc < 4)
		die("it takes PCI-ADDRESS ROUNDS PAUSE_US[-UP_TO] [no-event-idx]");
	rounds = strtoul(argv[2], NULL, 10);
	pause_us = strtoul(argv[3], &end, 10);
	if (*end == '-')
		up_to_us = strtoul(end + 1, NULL, 10);
	spent = rounds ? calloc(rounds, sizeof(*spent)) : NULL;
	if (!spent)
		die("'%s' is no number of rounds", argv[2]);
	map_device(argv[1]);
	map_memory();
	event_idx = start(argc < 5);
	/* what is touched for the first time is not what is measured */
	ping(event_idx, &kicks);
	kicks = 0;
	for (unsigned long i = 0; i < rounds; i++) {
		if (up_to_us > pause_us)
			wait_us(pause_us + (unsigned long)random() % (up_to_us - pause_us));
		else if (pause_us)
			usleep((useconds_t)pause_us);
		spent[i] = ping(event_idx, &kicks);
		sum += spent[i];
	}
	common->device_status = 0;
	qsort(spent, rounds, sizeof(*spent), compare);
	printf("rounds %lu kicks %lu p50 %llu p99 %llu mean %llu\n", rounds, kicks,
	       (unsigned long long)spent[rounds / 2], (unsigned long long)spent[rounds * 99 / 100],
	       (unsigned long long)(sum / rounds));
	free(spent);
	return 0;
}
