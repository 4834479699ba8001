// SPDX-License-Identifier: LGPL-2.1-or-later
/* guest.c - the guest-memory window: edges, permissions, limits, memory that comes and goes */
#include "hostile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>

#define PAGE	4096ull
#define LIMITED_IOVA	(2ull << 32)
#define LIMITED_BYTES	(16ull << 20)

static void lock_capability(bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		give_up("no capabilities");
	if (on)
		data[0].effective |= 1u << CAP_IPC_LOCK;
	else
		data[0].effective &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, data))
		give_up("cannot change capabilities");
}

static void test_ranges(struct worker *worker)
{
	struct octavo_guest_range range = { .generation = worker->generation };

	check_errno(worker_pin(worker, 0, 0, false), EINVAL, "a pin of nothing");
	check_errno(worker_pin(worker, 0, OCTAVO_GUEST_PIN_MAX + 1, false), E2BIG, "too much");
	check_errno(worker_pin(worker, 0, UINT64_MAX, false), E2BIG, "everything");
	check_errno(worker_pin(worker, GUEST_BYTES - PAGE, PAGE + 1, false), EFAULT, "across the end");
	check_errno(worker_pin(worker, GUEST_BYTES, 1, false), EFAULT, "past the end");
	check_errno(worker_pin(worker, UINT64_MAX, 1, false), EFAULT, "at the end of addresses");
	check_errno(worker_pin(worker, UINT64_MAX - 10, 100, false), EFAULT, "a range that overflows");
	check_errno(worker_pin(worker, OCTAVO_GUEST_BYTES, 1, false), EFAULT, "past the window");
	check_errno(worker_pin(worker, 4095, 2, true), 0, "two bytes of two pages");
	check_errno(worker_pin(worker, 0x123, OCTAVO_GUEST_PIN_MAX, true), 0, "as much as goes");
	check_errno(worker_pin(worker, ROM_IOVA, PAGE, false), 0, "read-only memory for reading");
	check_errno(worker_pin(worker, ROM_IOVA, PAGE, true), EACCES, "and not for writing");
	check_errno(worker_pin(worker, ROM_IOVA + 0x80000, PAGE, true), EACCES, "not afresh either");
	range.flags = 2;
	range.length = 1;
	check_errno(ioctl(worker->fd, OCTAVO_GUEST_PIN, &range), EINVAL, "unknown flag");
	check_errno(ioctl(worker->fd, OCTAVO_GUEST_DROP, &range), EINVAL, "flags of DROP");
	range = (struct octavo_guest_range) { .generation = worker->generation, .iova = PAGE };
	check_errno(ioctl(worker->fd, OCTAVO_GUEST_DROP, &range), EINVAL, "a drop of nothing");
	range.length = UINT64_MAX;
	check_errno(ioctl(worker->fd, OCTAVO_GUEST_DROP, &range), EINVAL, "a drop that overflows");
	range.iova = 12345;
	range.length = 6789;
	check_errno(ioctl(worker->fd, OCTAVO_GUEST_DROP, &range), 0, "a crooked drop");
	range.iova = range.length = 0;
	check_errno(ioctl(worker->fd, OCTAVO_GUEST_DROP, &range), 0, "a drop of all");
}

static void drop_all(struct worker *worker)
{
	struct octavo_guest_range range = { .generation = worker->generation };

	if (ioctl(worker->fd, OCTAVO_GUEST_DROP, &range))
		give_up("cannot drop");
}

static void test_access(struct stage *stage)
{
	volatile uint8_t *guest = stage->worker.guest;
	uint64_t errors, i;
	bool same = true;

	for (i = 0; i < GUEST_BYTES; i += PAGE)
		stage->vm.memory[i + i / PAGE % PAGE] = (uint8_t)(i / PAGE + 1);
	errors = stage->worker.status->guest_errors;
	for (i = 0; i < GUEST_BYTES; i += PAGE)
		same &= guest[i + i / PAGE % PAGE] == (uint8_t)(i / PAGE + 1);
	check(same && stage->worker.status->guest_errors == errors, "all of guest memory reads right");
	for (i = 0; i < GUEST_BYTES; i += PAGE)
		guest[i] = 0xa5;
	for (i = 0; i < GUEST_BYTES; i += PAGE)
		same &= stage->vm.memory[i] == 0xa5;
	check(same, "and is written");

	check(guest[GUEST_BYTES] == 0 && stage->worker.status->guest_errors == errors + 1,
	      "beyond it is scratch, and counted");
	guest[GUEST_BYTES] = 7;
	check(guest[GUEST_BYTES] == 7, "that can be written");
	check_errno(worker_pin(&stage->worker, GUEST_BYTES, PAGE, false), EFAULT, "and not pinned");

	check(guest[ROM_IOVA] == 0xa5, "read-only memory reads");
	guest[ROM_IOVA] = 0x11;
	check(stage->vm.memory[0] == 0xa5 && stage->worker.status->guest_errors >= errors + 2,
	      "a write to it reaches scratch, and is counted");
	guest[ROM_IOVA + 0x90000] = 0x22;
	check(stage->vm.memory[0x90000] == 0xa5, "a write first as well");
	drop_all(&stage->worker);
	check(guest[ROM_IOVA] == 0xa5, "after a drop it reads right again");
}

static void test_vanishing(struct stage *stage)
{
	volatile uint8_t *guest = stage->worker.guest;
	const uint64_t iova = 3ull << 30, bytes = 8ull << 20;
	struct octavo_event event;
	struct octavo_vgpu info;
	uint64_t errors;
	uint8_t *more;

	more = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (more == MAP_FAILED)
		give_up("no memory");
	more[0] = 1;
	errors = stage->worker.status->guest_errors;
	guest[iova] = 0;
	check(guest[iova] == 0 && more[0] == 1 && stage->worker.status->guest_errors == errors + 1,
	      "memory that is not there yet is scratch");
	check_errno(vm_map(&stage->vm, iova, bytes, more, true), 0, "it comes");
	check_errno(worker_pin(&stage->worker, iova, 2 * PAGE, true), 0, "a pin finds it");
	check(guest[iova] == 1, "and it is seen");
	check_errno(worker_pin(&stage->worker, iova, 1 << 20, true), 0, "more of it");
	while (worker_event(&stage->worker, &event, 0))
		;
	check_errno(vm_unmap(&stage->vm, iova, bytes), 0, "it goes while pinned");
	check(worker_event(&stage->worker, &event, 1000) && event.type == OCTAVO_EVENT_UNMAPPED &&
	      event.start == iova && event.length == bytes, "UNMAPPED tells the range");
	errors = stage->worker.status->guest_errors;
	guest[iova] = 2;
	check(more[0] == 1 && stage->worker.status->guest_errors == errors + 1, "scratch again");
	check_errno(worker_pin(&stage->worker, iova, PAGE, false), EFAULT, "not to be pinned");
	munmap(more, bytes);

	drop_all(&stage->worker);
	check(!vgpu_info(stage->vm.uuid, &info) && !info.counters.guest_pinned, "a drop unpins all");
	check_errno(worker_pin(&stage->worker, 0, PAGE, false), 0, "one page");
	check(!vgpu_info(stage->vm.uuid, &info) && info.counters.guest_pinned >= 1 &&
	      info.counters.guest_pinned <= 32, "is at most a chunk");
}

static void test_eviction(struct stage *stage)
{
	static const char path[] = "/sys/module/octavo/parameters/guest_pin_pages";
	volatile uint8_t *guest = stage->worker.guest;
	struct octavo_vgpu info;
	bool same = true;
	uint64_t i;
	FILE *file;
	char was[32] = "";

	file = fopen(path, "r+");
	if (!file || !fgets(was, sizeof(was), file))
		give_up("no %s", path);
	rewind(file);
	fprintf(file, "2048\n");
	fclose(file);
	for (i = 0; i < GUEST_BYTES; i += PAGE)
		stage->vm.memory[i] = (uint8_t)(i >> 16);
	drop_all(&stage->worker);
	for (i = 0; i < GUEST_BYTES; i += PAGE)
		same &= guest[i] == (uint8_t)(i >> 16);
	check(same, "64 MiB read right through 8 MiB of pins");
	if (vgpu_info(stage->vm.uuid, &info))
		give_up("the vGPU is not listed");
	check(info.counters.guest_pinned > 1024 && info.counters.guest_pinned <= 2048,
	      "%u pages pinned", (unsigned int)info.counters.guest_pinned);
	check_errno(worker_pin(&stage->worker, 0x1fff, OCTAVO_GUEST_PIN_MAX, true), 0,
		    "a full pin under the limit");
	file = fopen(path, "w");
	if (file) {
		fputs(was, file);
		fclose(file);
	}
}

static void test_memlock(struct stage *stage)
{
	struct rlimit was, low;
	struct octavo_vgpu info;
	uint64_t errors, i;
	bool same = true;
	uint8_t *more;
	int ret = 0;

	getrlimit(RLIMIT_MEMLOCK, &was);
	low = was;
	low.rlim_cur = 4ull << 20;
	more = mmap(NULL, LIMITED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	drop_all(&stage->worker);
	lock_capability(false);
	setrlimit(RLIMIT_MEMLOCK, &low);
	if (more == MAP_FAILED || vm_map(&stage->vm, LIMITED_IOVA, LIMITED_BYTES, more, true))
		give_up("cannot map");
	for (i = 0; i < LIMITED_BYTES && !ret; i += 1ull << 20)
		ret = worker_pin(&stage->worker, LIMITED_IOVA + i, 1ull << 20, true);
	check_errno(ret, 0, "the opener's memlock limit makes room, %u MiB pinned",
		    (unsigned int)(i >> 20));
	for (i = 0; i < LIMITED_BYTES; i += PAGE)
		stage->worker.guest[LIMITED_IOVA + i] = (uint8_t)(i >> 14);
	for (i = 0; i < LIMITED_BYTES; i += PAGE)
		same &= more[i] == (uint8_t)(i >> 14);
	check(same, "16 MiB written right through a limit of 4 MiB");
	check(!vgpu_info(stage->vm.uuid, &info) && info.counters.guest_pinned <= 1024,
	      "%u pages pinned", (unsigned int)info.counters.guest_pinned);

	low.rlim_cur = 256ull << 10;
	setrlimit(RLIMIT_MEMLOCK, &low);
	drop_all(&stage->worker);
	check_errno(worker_pin(&stage->worker, LIMITED_IOVA, 1ull << 20, true), ENOMEM,
		    "a range that it does not hold");
	check_errno(worker_pin(&stage->worker, LIMITED_IOVA, 64ull << 10, true), 0,
		    "one that it does");
	low.rlim_cur = 0;
	setrlimit(RLIMIT_MEMLOCK, &low);
	drop_all(&stage->worker);
	errors = stage->worker.status->guest_errors;
	more[0] = 7;
	stage->worker.guest[LIMITED_IOVA] = 1;
	check(more[0] == 7 && stage->worker.status->guest_errors == errors + 1,
	      "with a limit of 0 an access is scratch");
	lock_capability(true);
	setrlimit(RLIMIT_MEMLOCK, &was);
	check_errno(vm_unmap(&stage->vm, LIMITED_IOVA, LIMITED_BYTES), 0, "unmapped");
	munmap(more, LIMITED_BYTES);
}

/* The worker's own window as guest memory: a pin that would wait for itself. */
static void test_loop(struct stage *stage)
{
	const uint64_t iova = 5ull << 32;

	if (vm_map(&stage->vm, iova, 1 << 20, (void *)(stage->worker.guest + (1 << 20)), true)) {
		check(true, "a window is not taken as guest memory");
		return;
	}
	check_errno(worker_pin(&stage->worker, iova, PAGE, true), EFAULT, "the window in itself");
	check(stage->worker.guest[1 << 20] == stage->vm.memory[1 << 20], "a page of it is touched");
	check_errno(worker_pin(&stage->worker, iova, PAGE, true), EFAULT, "and it stays EFAULT");
	check_errno(vm_unmap(&stage->vm, iova, 1 << 20), 0, "unmapped");
}

void test_guest(void)
{
	struct stage stage;

	stage_begin(&stage, 40);
	test_ranges(&stage.worker);
	test_access(&stage);
	test_vanishing(&stage);
	test_eviction(&stage);
	test_memlock(&stage);
	test_loop(&stage);
	stage_end(&stage);
}
