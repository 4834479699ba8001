// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/guest-programs/vq.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/virtio_config.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RING_SIZE	16u
#define NO_VECTOR	0xffffu

enum { PAGE_DESC, PAGE_AVAIL, PAGE_USED, PAGE_REQUEST, PAGE_ANSWER, PAGE_SPARE, PAGES };

struct vq_buffer vq_request, vq_answer, vq_spare;

static volatile struct virtio_pci_common_cfg *common;
static volatile uint16_t *doorbell;
static uint8_t *memory;
static uint64_t physical[PAGES];
static bool indexes;

void vq_die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

uint64_t vq_now_ns(void)
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
		vq_die("%s: %s", path, strerror(errno));
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
	vq_die("the function has no virtio capability %u", type);
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
		vq_die("cannot read the configuration space of %s", address);
	memcpy(&command, config + PCI_COMMAND, sizeof(command));
	command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	if (pwrite(fd, &command, sizeof(command), PCI_COMMAND) != sizeof(command))
		vq_die("cannot enable %s", address);
	close(fd);

	cap = find_cap(config, VIRTIO_PCI_CAP_COMMON_CFG);
	notify = find_cap(config, VIRTIO_PCI_CAP_NOTIFY_CFG);
	if (cap.cap.bar != notify.cap.bar)
		vq_die("registers and doorbells are in different BARs");
	snprintf(name, sizeof(name), "resource%u", cap.cap.bar);
	fd = file_of(address, name, O_RDWR);
	bar = mmap(NULL, notify.cap.offset + notify.cap.length, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, 0);
	if (bar == MAP_FAILED)
		vq_die("cannot map BAR%u: %s (is its driver unbound?)", cap.cap.bar, strerror(errno));
	close(fd);
	common = (volatile void *)(bar + cap.cap.offset);
	common->queue_select = 0;
	doorbell = (volatile void *)(bar + notify.cap.offset +
				     common->queue_notify_off * notify.notify_off_multiplier);
}

static void map_memory(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	memory = mmap(NULL, PAGES * VQ_PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
	if (fd < 0 || memory == MAP_FAILED)
		vq_die("no memory to share with the device: %s", strerror(errno));
	for (unsigned int i = 0; i < PAGES; i++) {
		off_t at = (off_t)(((uintptr_t)memory / VQ_PAGE + i) * sizeof(uint64_t));
		uint64_t entry;

		if (pread(fd, &entry, sizeof(entry), at) != sizeof(entry) || !(entry >> 63))
			vq_die("where page %u lies is not known: this needs root", i);
		physical[i] = (entry & ((1ull << 55) - 1)) * VQ_PAGE;
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

bool vq_start(bool event_idx)
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
		vq_die("the device refuses the features 0x%llx", (unsigned long long)features);
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
	memset(memory, 0, (size_t)PAGE_REQUEST * VQ_PAGE);
	common->device_status |= VIRTIO_CONFIG_S_DRIVER_OK;
	indexes = features >> VIRTIO_RING_F_EVENT_IDX & 1;
	return indexes;
}

void vq_map(const char *address)
{
	map_device(address);
	map_memory();
	vq_request = (struct vq_buffer){ physical[PAGE_REQUEST], memory + PAGE_REQUEST * VQ_PAGE };
	vq_answer = (struct vq_buffer){ physical[PAGE_ANSWER], memory + PAGE_ANSWER * VQ_PAGE };
	vq_spare = (struct vq_buffer){ physical[PAGE_SPARE], memory + PAGE_SPARE * VQ_PAGE };
}

uint64_t vq_bar(const char *address, unsigned int index, uint64_t *bytes)
{
	unsigned long long first = 0, last = 0, flags;
	char text[1024] = "", *line = text;
	int fd = file_of(address, "resource", O_RDONLY);

	if (read(fd, text, sizeof(text) - 1) <= 0)
		vq_die("cannot read the BARs of %s", address);
	close(fd);
	for (unsigned int i = 0; i < index && line; i++)
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	if (!line || sscanf(line, "%llx %llx %llx", &first, &last, &flags) != 3 || !first)
		vq_die("%s has no BAR%u", address, index);
	*bytes = last - first + 1;
	return first;
}

void vq_stop(void)
{
	common->device_status = 0;
	while (common->device_status)
		;
}

bool vq_needs_reset(void)
{
	return common->device_status & VIRTIO_CONFIG_S_NEEDS_RESET;
}

bool vq_send(uint64_t request, uint32_t out, unsigned long *kicks, uint64_t *spent_ns)
{
	struct vring_desc *desc = (void *)(memory + PAGE_DESC * VQ_PAGE);
	struct vring_avail *avail = (void *)(memory + PAGE_AVAIL * VQ_PAGE);
	struct vring_used *used = (void *)(memory + PAGE_USED * VQ_PAGE);
	const uint16_t *avail_event = (const uint16_t *)(const void *)&used->ring[RING_SIZE];
	uint16_t before = avail->idx;
	uint64_t begin = vq_now_ns(), looked = begin, now;
	bool kick;

	memset(vq_answer.bytes, 0, sizeof(struct virtio_gpu_ctrl_hdr));
	desc[0] = (struct vring_desc){ request, out, VRING_DESC_F_NEXT, 1 };
	desc[1] = (struct vring_desc){ physical[PAGE_ANSWER], VQ_PAGE, VRING_DESC_F_WRITE, 0 };
	avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	avail->ring[before % RING_SIZE] = 0;
	__atomic_store_n(&avail->idx, (uint16_t)(before + 1), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (indexes)
		kick = vring_need_event(__atomic_load_n(avail_event, __ATOMIC_RELAXED),
					(uint16_t)(before + 1), before);
	else
		kick = !(__atomic_load_n(&used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY);
	if (kick) {
		*doorbell = 0;
		++*kicks;
	}
	while (__atomic_load_n(&used->idx, __ATOMIC_ACQUIRE) == before) {
		now = vq_now_ns();
		if (now - looked > 50000000u) {
			looked = now;
			if (vq_needs_reset())
				return false;
		}
		if (now - begin > VQ_LATE_NS)
			vq_die("no answer to request %u after 5 s (%s)", before,
			       kick ? "kicked" : "not kicked");
	}
	*spent_ns = vq_now_ns() - begin;
	return true;
}
