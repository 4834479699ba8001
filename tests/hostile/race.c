// SPDX-License-Identifier: LGPL-2.1-or-later
/* race.c - everything at once; what must hold is that it ends, and that nothing is left */
#include "hostile.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <linux/virtio_pci.h>

#define BAR0	VFIO_PCI_BAR0_REGION_INDEX
#define BAR2	VFIO_PCI_BAR2_REGION_INDEX
#define COMMON(field)	offsetof(struct virtio_pci_common_cfg, field)
#define RACE_SECONDS	6

static struct stage stage;
static volatile uint8_t *bar;
static atomic_bool stop;
static atomic_uint unexpected;
static atomic_ulong rounds[6];

static void expect(long result, const int *errors)
{
	if (result >= 0)
		return;
	for (; *errors; errors++)
		if (errno == *errors)
			return;
	atomic_fetch_add(&unexpected, 1);
}

static void *race_reset(void *data)
{
	while (!atomic_load(&stop)) {
		struct octavo_generation ack = { .generation = stage.worker.status->generation };
		static const int errors[] = { ESTALE, 0 };

		vm_write(&stage.vm, BAR0, COMMON(device_status), 0, 1);
		vm_write(&stage.vm, BAR0, COMMON(device_status), 1, 1);
		ack.generation = stage.worker.status->generation;
		expect(ioctl(stage.worker.fd, OCTAVO_RESET_ACK, &ack), errors);
		atomic_fetch_add(&rounds[0], 1);
		usleep(500);
	}
	return data;
}

static void *race_unmap(void *data)
{
	const uint64_t iova = 7ull << 30, bytes = 4ull << 20;
	uint8_t *more = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	while (!atomic_load(&stop)) {
		if (vm_map(&stage.vm, iova, bytes, more, true) || vm_unmap(&stage.vm, iova, bytes))
			atomic_fetch_add(&unexpected, 1);
		atomic_fetch_add(&rounds[1], 1);
	}
	munmap(more, bytes);
	return data;
}

static void *race_touch(void *data)
{
	const uint64_t iova = 7ull << 30;
	unsigned int seed = 1;
	uint64_t at;

	while (!atomic_load(&stop)) {
		at = (uint64_t)rand_r(&seed) % (4u << 20);
		stage.worker.guest[iova + at] = 1;
		stage.worker.guest[at] = 2;
		atomic_fetch_add(&rounds[2], 1);
	}
	return data;
}

static void *race_pin(void *data)
{
	static const int errors[] = { ESTALE, EFAULT, 0 };
	unsigned int seed = 2;

	while (!atomic_load(&stop)) {
		struct octavo_guest_range range = {
			.generation = stage.worker.status->generation,
			.flags = rand_r(&seed) & 1,
			.iova = (7ull << 30) + (uint64_t)rand_r(&seed) % (4u << 20),
			.length = 65536,
		};

		expect(ioctl(stage.worker.fd, OCTAVO_GUEST_PIN, &range), errors);
		range.flags = 0;
		if (!(rand_r(&seed) & 3))
			expect(ioctl(stage.worker.fd, OCTAVO_GUEST_DROP, &range), errors);
		atomic_fetch_add(&rounds[3], 1);
	}
	return data;
}

static void *race_window(void *data)
{
	static const int errors[] = { ESTALE, EEXIST, ENOENT, EFAULT, 0 };
	const size_t bytes = 1 << 20;

	while (!atomic_load(&stop)) {
		struct octavo_window map = { .offset = 4 << 20, .length = bytes };
		uint8_t *blob = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		map.generation = stage.worker.status->generation;
		map.addr = (uintptr_t)blob;
		expect(ioctl(stage.worker.fd, OCTAVO_WINDOW_MAP, &map), errors);
		munmap(blob, bytes);
		map.addr = 0;
		map.generation = stage.worker.status->generation;
		expect(ioctl(stage.worker.fd, OCTAVO_WINDOW_UNMAP, &map), errors);
		atomic_fetch_add(&rounds[4], 1);
	}
	return data;
}

static void *race_bar(void *data)
{
	unsigned int seed = 3;

	while (!atomic_load(&stop)) {
		bar[(4u << 20) + (unsigned int)rand_r(&seed) % (1u << 20)] = 1;
		vm_read(&stage.vm, BAR0, (uint64_t)rand_r(&seed) % OCTAVO_BAR0_BYTES & ~7ull, 8);
		atomic_fetch_add(&rounds[5], 1);
	}
	return data;
}

static void *race_events(void *data)
{
	struct octavo_event event;

	while (!atomic_load(&stop))
		worker_event(&stage.worker, &event, 10);
	return data;
}

/* Opens and is killed at a random moment, with or without somebody who answers. */
static void test_kills(void)
{
	unsigned int seed = 4, i, served = 0;
	struct octavo_vgpu info;
	uint8_t uuid[16];

	uuid_make(71, uuid);
	if (vgpu_create("octavo_1_8", uuid))
		give_up("no vGPU");
	for (i = 0; i < 20; i++) {
		struct octavo_control_event event;
		pid_t pid;
		int fd = -1;

		control_drain();
		pid = fork();
		if (!pid) {
			struct vm vm;

			vm_open_begin(&vm, uuid);
			if (!vm_opened(&vm))
				pause();
			_exit(0);
		}
		if (control_wait(OCTAVO_CONTROL_OPENED, uuid, &event, 5000) && i & 1) {
			struct octavo_offer offer = { .features = FEATURES, .num_scanouts = 1 };

			fd = session_fd(uuid, event.session);
			served += fd >= 0 && !ioctl(fd, OCTAVO_OFFER, &offer) && !ioctl(fd, OCTAVO_READY);
		}
		usleep((useconds_t)rand_r(&seed) % 3000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (!control_wait(OCTAVO_CONTROL_CLOSED, uuid, &event, 5000))
			check(false, "no CLOSED after the kill of opener %u", i);
		if (fd >= 0)
			close(fd);
	}
	check(served == 10, "20 openers killed, 10 of them served");
	check(!vgpu_info(uuid, &info) && info.state == OCTAVO_VGPU_IDLE && !info.counters.guest_pinned,
	      "the vGPU is idle");
	check_errno(vgpu_remove(uuid), 0, "and goes");
}

void test_race(void)
{
	static void *(*const actors[])(void *) = {
		race_reset, race_unmap, race_touch, race_pin, race_window, race_bar, race_events,
	};
	const size_t count = sizeof(actors) / sizeof(actors[0]);
	pthread_t threads[sizeof(actors) / sizeof(actors[0])];
	struct octavo_vgpu info;
	uint64_t base, size;
	size_t i;

	stage_begin(&stage, 70);
	base = vm_region(&stage.vm, BAR2, &size);
	bar = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, stage.vm.device, (off_t)base);
	if (bar == MAP_FAILED)
		give_up("BAR2 cannot be mapped");
	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, actors[i], NULL))
			give_up("no thread");
	nanosleep(&(struct timespec) { .tv_sec = RACE_SECONDS }, NULL);
	atomic_store(&stop, true);
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	check(!atomic_load(&unexpected), "all at once: no unexpected error");
	for (i = 0; i < 6; i++)
		check(atomic_load(&rounds[i]) > 0, "actor %zu went %lu rounds", i,
		      atomic_load(&rounds[i]));
	munmap((void *)bar, size);
	vm_close(&stage.vm);
	check(!vgpu_info(stage.vm.uuid, &info) && !info.counters.guest_pinned &&
	      !info.counters.window_mapped, "nothing is pinned or mapped afterwards");
	worker_close(&stage.worker);
	check_errno(vgpu_remove(stage.vm.uuid), 0, "the vGPU goes");
	test_kills();
}
