// SPDX-License-Identifier: LGPL-2.1-or-later
/* window.c - BAR2 and the console */
#include "hostile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/udmabuf.h>

#define BAR2	VFIO_PCI_BAR2_REGION_INDEX
#define PAGE	4096ull
#define HUGE	(2ull << 20)
#define BLOB	(8ull << 20)

static int window(struct worker *worker, unsigned long request, uint64_t offset, uint64_t length,
		  const volatile void *addr)
{
	struct octavo_window map = {
		.generation = worker->generation,
		.offset = offset,
		.length = length,
		.addr = (uintptr_t)addr,
	};

	return ioctl(worker->fd, request, &map);
}

static uint8_t *shared(size_t length)
{
	uint8_t *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		give_up("no memory");
	return at;
}

static void test_bad_maps(struct stage *stage, uint8_t *blob, volatile uint8_t *bar, uint64_t size)
{
	struct octavo_window map = { .generation = stage->worker.generation, .caching = 2,
				     .length = PAGE, .addr = (uintptr_t)blob };
	struct worker *worker = &stage->worker;
	uint8_t *other;

	check_errno(ioctl(worker->fd, OCTAVO_WINDOW_MAP, &map), EINVAL, "unknown caching");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, 0, blob), EINVAL, "nothing");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 1, PAGE, blob), EINVAL, "crooked offset");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE + 1, blob), EINVAL, "crooked length");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, blob + 1), EINVAL, "crooked address");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, size, PAGE, blob), ERANGE, "past the window");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, size - PAGE, 2 * PAGE, blob), ERANGE,
		    "across its end");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, -PAGE, 2 * PAGE, blob), ERANGE, "overflow");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, -PAGE, blob), ERANGE, "endless");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, NULL), EFAULT, "address 0");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, (void *)(-PAGE)), EFAULT,
		    "a kernel address");
	other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, other), EPERM, "private memory");
	munmap(other, PAGE);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, other), EFAULT, "no memory");
	other = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, other), EFAULT, "read-only memory");
	munmap(other, PAGE);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, worker->guest), EPERM,
		    "guest memory's window");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, bar), EPERM, "a BAR2");
	other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, worker->fd,
		     (off_t)OCTAVO_MMAP_CONSOLE);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, other), EPERM, "the console");
	munmap(other, PAGE);
	other = shared(3 * PAGE);
	munmap(other + PAGE, PAGE);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, 3 * PAGE, other), EFAULT, "a hole in memory");
	munmap(other, 3 * PAGE);
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, 0, PAGE, NULL), ENOENT, "unmap of nothing");
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, 0, PAGE, blob), EINVAL, "unmap with an address");
}

static void test_mappings(struct stage *stage, uint8_t *blob, volatile uint8_t *bar)
{
	struct worker *worker = &stage->worker;
	struct octavo_vgpu info;
	uint64_t i, value;
	bool same = true;

	for (i = 0; i < BLOB; i += PAGE)
		blob[i] = (uint8_t)(i >> 12);
	check(bar[0] == 0, "a hole is scratch");
	bar[0] = 0x77;
	check(bar[PAGE] == 0x77, "the same page everywhere");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE, BLOB, blob), 0, "8 MiB mapped");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE, BLOB, blob), EEXIST, "again");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE - PAGE, 2 * PAGE, blob), EEXIST, "overlapping");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE + BLOB - PAGE, PAGE, blob), EEXIST,
		    "its last page");
	for (i = 0; i < BLOB; i += PAGE)
		same &= bar[HUGE + i] == (uint8_t)(i >> 12);
	check(same, "the guest reads it");
	bar[HUGE + 5 * PAGE + 1] = 0x42;
	check(blob[5 * PAGE + 1] == 0x42, "and writes it");
	check(bar[0] == 0x77, "the hole is as it was");
	value = vm_read(&stage->vm, BAR2, HUGE + 3 * PAGE, 8);
	check((uint8_t)value == 3, "read() finds it too");
	vm_write(&stage->vm, BAR2, HUGE + 3 * PAGE + 8, 0x1234, 4);
	check(blob[3 * PAGE + 8] == 0x34, "write() as well");
	check(!vgpu_info(stage->vm.uuid, &info) && info.counters.window_mapped == BLOB, "counted");
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, HUGE, BLOB - PAGE, NULL), ENOENT, "unmap of a part");
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, HUGE + PAGE, PAGE, NULL), ENOENT, "of the middle");
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, HUGE, BLOB, NULL), 0, "unmap");
	check(bar[HUGE + PAGE] == 0x77, "scratch at once");

	/* the worker's mapping may go */
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, PAGE, blob), 0, "one page");
	check(bar[0] == 0, "which the guest had touched as a hole");
	munmap(blob, PAGE);
	blob[PAGE] = 9;
	bar[0] = 0x55;
	check(bar[0] == 0x55, "its page stays when the worker unmaps it");
	check_errno(ioctl(stage->vm.device, VFIO_DEVICE_RESET), 0, "reset");
	check(bar[0] == 0, "leaves only scratch, and that clean");
	worker_serve(worker);
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, 0, PAGE, NULL), ENOENT, "nothing to unmap");
	check(!vgpu_info(stage->vm.uuid, &info) && !info.counters.window_mapped, "nothing mapped");
}

/* Descriptors that point at a BAR2: the VM maps its BAR as memory for DMA, as QEMU does. */
static void test_bar_pins(struct stage *stage, uint8_t *blob, volatile uint8_t *bar)
{
	const uint64_t iova = 6ull << 32;
	struct worker *worker = &stage->worker;

	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE, HUGE, blob + HUGE), 0, "a blob");
	if (vm_map(&stage->vm, iova, 2 * HUGE, (void *)bar, true)) {
		check(true, "a BAR is not taken as guest memory");
	} else {
		check_errno(worker_pin(worker, iova, PAGE, true), EFAULT, "pin of a hole");
		check_errno(worker_pin(worker, iova + HUGE, PAGE, true), EFAULT, "pin of a blob");
		check(worker->guest[iova + HUGE] == 0, "an access is scratch");
		check_errno(vm_unmap(&stage->vm, iova, 2 * HUGE), 0, "unmapped");
	}
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, HUGE, HUGE, NULL), 0, "the blob goes");
}

static void test_huge(struct stage *stage, volatile uint8_t *bar)
{
	struct worker *worker = &stage->worker;
	struct octavo_vgpu before, after;
	uint8_t *blob;
	uint64_t i;

	blob = shared(3 * HUGE);
	blob = (uint8_t *)(((uintptr_t)blob + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	madvise(blob, HUGE, MADV_HUGEPAGE);
	memset(blob, 0x3c, HUGE);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, HUGE, blob), 0, "2 MiB, aligned");
	vgpu_info(stage->vm.uuid, &before);
	for (i = 0; i < HUGE; i += PAGE)
		if (bar[i] != 0x3c)
			break;
	vgpu_info(stage->vm.uuid, &after);
	check(i == HUGE, "read right (%u faults)",
	      (unsigned int)(after.counters.window_faults - before.counters.window_faults));
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, 0, HUGE, NULL), 0, "unmapped");
	check(bar[PAGE] == 0, "scratch again");
}

/* Memory of a device, as lavapipe and drivers have it: a dma-buf. */
static uint8_t *dmabuf_map(size_t bytes)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = bytes };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;
	uint8_t *at;

	if (device < 0)
		return NULL;
	create.memfd = (uint32_t)memfd_create("blob", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (ftruncate((int)create.memfd, (off_t)bytes) ||
	    fcntl((int)create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		give_up("no sealed memfd");
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (fd < 0)
		give_up("no udmabuf");
	/* something that is no memory follows it */
	at = mmap(NULL, bytes + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED ||
	    mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		give_up("the udmabuf cannot be mapped");
	close(fd);
	close((int)create.memfd);
	close(device);
	return at;
}

struct remap {
	struct worker *worker;
	uint8_t *blob;
};

/* Waits for WINDOW_LOST and captures the memory again, as a worker does. */
static void *remap_thread(void *data)
{
	struct remap *remap = data;
	struct octavo_event event;

	if (!worker_event_of(remap->worker, OCTAVO_EVENT_WINDOW_LOST, &event, 2000) ||
	    event.start != HUGE || event.length != HUGE)
		return (void *)1;
	return (void *)(intptr_t)window(remap->worker, OCTAVO_WINDOW_MAP, HUGE, HUGE, remap->blob);
}

static void test_dmabuf(struct stage *stage, volatile uint8_t *bar)
{
	struct worker *worker = &stage->worker;
	struct octavo_window combined = { .generation = worker->generation, .length = HUGE,
					  .caching = OCTAVO_WRITE_COMBINED };
	struct octavo_event event;
	struct remap remap = { .worker = worker };
	pthread_t thread;
	void *result;
	uint8_t *blob;

	blob = dmabuf_map(HUGE);
	if (!blob) {
		check(true, "SKIPPED: no /dev/udmabuf");
		return;
	}
	combined.addr = (uintptr_t)blob;
	check_errno(ioctl(worker->fd, OCTAVO_WINDOW_MAP, &combined), EINVAL,
		    "a dma-buf that is cached, as write-combined");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE, HUGE, blob), 0, "a dma-buf, untouched");
	blob[3 * PAGE] = 0x33;
	check(bar[HUGE + 3 * PAGE] == 0x33, "the guest reads it");
	bar[HUGE + 4 * PAGE] = 0x44;
	check(blob[4 * PAGE] == 0x44, "and writes it");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE - PAGE, 2 * PAGE, blob), EEXIST, "overlapping");
	check_errno(window(worker, OCTAVO_WINDOW_MAP, 0, HUGE + PAGE, blob), EFAULT,
		    "a dma-buf and what follows it");

	/* it moves (its mapping changes), and the worker captures it again */
	while (worker_event(worker, &event, 0))
		;
	remap.blob = blob;
	mprotect(blob, HUGE, PROT_READ);
	mprotect(blob, HUGE, PROT_READ | PROT_WRITE);
	pthread_create(&thread, NULL, remap_thread, &remap);
	check(bar[HUGE + 3 * PAGE] == 0x33, "an access waits until the worker has captured it again");
	pthread_join(thread, &result);
	check(!result, "which it was asked for");

	/* it goes for good */
	munmap(blob, HUGE);
	check(bar[HUGE + 3 * PAGE] == 0, "memory that does not come back becomes scratch");
	check(worker_event_of(worker, OCTAVO_EVENT_WINDOW_LOST, &event, 1000) && event.start == HUGE &&
	      event.length == HUGE, "WINDOW_LOST tells the range");
	check_errno(window(worker, OCTAVO_WINDOW_UNMAP, HUGE, HUGE, NULL), 0, "it is unmapped as ever");

	/* still mapped when all ends */
	blob = dmabuf_map(HUGE);
	check_errno(window(worker, OCTAVO_WINDOW_MAP, HUGE, HUGE, blob), 0, "another, left behind");
	bar[HUGE] = 1;
}

void test_window(void)
{
	struct stage stage;
	volatile uint8_t *bar;
	uint64_t base, size;
	uint8_t *blob;

	stage_begin(&stage, 50);
	base = vm_region(&stage.vm, BAR2, &size);
	check(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, stage.vm.device, (off_t)base) == MAP_FAILED,
	      "no private mapping of BAR2");
	check(mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, stage.vm.device,
		   (off_t)(base + size - PAGE)) == MAP_FAILED, "none past its end");
	check(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, stage.vm.device,
		   (off_t)vm_region(&stage.vm, VFIO_PCI_BAR0_REGION_INDEX, NULL)) == MAP_FAILED,
	      "none of BAR0");
	bar = mmap(NULL, size + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bar = (void *)(((uintptr_t)bar + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	bar = mmap((void *)bar, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, stage.vm.device,
		   (off_t)base);
	if (bar == MAP_FAILED)
		give_up("BAR2 cannot be mapped");
	blob = shared(BLOB);
	test_bad_maps(&stage, blob, bar, size);
	test_mappings(&stage, blob, bar);
	test_bar_pins(&stage, blob, bar);
	test_huge(&stage, bar);
	test_dmabuf(&stage, bar);
	munmap((void *)bar, size);
	munmap(blob, BLOB);
	stage_end(&stage);
}

static int console_set(struct worker *worker, uint32_t width, uint32_t height, uint32_t stride)
{
	struct octavo_console console = {
		.generation = worker->generation, .width = width, .height = height, .stride = stride,
	};

	return ioctl(worker->fd, OCTAVO_CONSOLE_SET, &console);
}

static int query(struct vm *vm, uint32_t flags, struct vfio_device_gfx_plane_info *plane)
{
	memset(plane, 0, sizeof(*plane));
	plane->argsz = sizeof(*plane);
	plane->flags = flags;
	return ioctl(vm->device, VFIO_DEVICE_QUERY_GFX_PLANE, plane);
}

void test_console(void)
{
	const uint32_t region = VFIO_GFX_PLANE_TYPE_REGION, probe = VFIO_GFX_PLANE_TYPE_PROBE;
	struct vfio_device_gfx_plane_info plane;
	volatile uint32_t *worker_pixels, *vm_pixels;
	struct octavo_session_info info;
	struct octavo_event event;
	struct stage stage;
	uint64_t base;

	stage_begin(&stage, 60);
	check_errno(query(&stage.vm, probe | region, &plane), 0, "region planes are there");
	check_errno(query(&stage.vm, probe | VFIO_GFX_PLANE_TYPE_DMABUF, &plane), EINVAL, "no dma-bufs");
	check_errno(query(&stage.vm, VFIO_GFX_PLANE_TYPE_DMABUF, &plane), EINVAL, "none at all");
	check_errno(query(&stage.vm, 0, &plane), EINVAL, "no kind");
	check_errno(query(&stage.vm, 0xffffffff, &plane), EINVAL, "all kinds");
	check(!ioctl(stage.worker.fd, OCTAVO_SESSION_INFO, &info) &&
	      !(info.flags & OCTAVO_SESSION_CONSOLE), "nobody looks");
	check(!query(&stage.vm, region, &plane) && !plane.drm_format && !plane.size, "no plane");
	check(worker_event_of(&stage.worker, OCTAVO_EVENT_CONSOLE, &event, 1000),
	      "the worker hears that somebody looks");
	check(!ioctl(stage.worker.fd, OCTAVO_SESSION_INFO, &info) &&
	      (info.flags & OCTAVO_SESSION_CONSOLE), "and can ask");

	check_errno(console_set(&stage.worker, 640, 0, 2560), EINVAL, "no height");
	check_errno(console_set(&stage.worker, 0, 0, 4), EINVAL, "a stride of nothing");
	check_errno(console_set(&stage.worker, 640, 480, 2556), EINVAL, "a short stride");
	check_errno(console_set(&stage.worker, 640, 480, 2562), EINVAL, "a crooked stride");
	check_errno(console_set(&stage.worker, OCTAVO_MODE_WIDTH_MAX + 1, 480, 65536), EINVAL, "too wide");
	check_errno(console_set(&stage.worker, 640, OCTAVO_MODE_HEIGHT_MAX + 1, 2560), EINVAL, "too high");
	check_errno(console_set(&stage.worker, 640, 2160, UINT32_MAX - 3), EINVAL, "more than the region");
	check_errno(console_set(&stage.worker, OCTAVO_MODE_WIDTH_MAX, OCTAVO_MODE_HEIGHT_MAX,
				OCTAVO_MODE_WIDTH_MAX * 4), 0, "all of it");
	check_errno(console_set(&stage.worker, 640, 480, 2560), 0, "640x480");

	base = vm_region(&stage.vm, VFIO_PCI_NUM_REGIONS, NULL);
	vm_pixels = mmap(NULL, OCTAVO_CONSOLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			 stage.vm.device, (off_t)base);
	worker_pixels = mmap(NULL, OCTAVO_CONSOLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     stage.worker.fd, (off_t)OCTAVO_MMAP_CONSOLE);
	if (vm_pixels == MAP_FAILED || worker_pixels == MAP_FAILED)
		give_up("the console cannot be mapped");
	check(vm_pixels[0] == 0 && vm_pixels[OCTAVO_CONSOLE_BYTES / 4 - 1] == 0, "it begins black");
	worker_pixels[12345] = 0xabcdef;
	check(vm_pixels[12345] == 0xabcdef, "both see the same pixels");
	check(vm_read(&stage.vm, VFIO_PCI_NUM_REGIONS, 12345 * 4, 4) == 0xabcdef, "read() too");
	check(!query(&stage.vm, region, &plane) && plane.width == 640 && plane.height == 480 &&
	      plane.stride == 2560 && plane.size == 2560 * 480 &&
	      plane.region_index == VFIO_PCI_NUM_REGIONS && plane.drm_format == 0x34325258, "the plane");
	check_errno(ioctl(stage.vm.device, VFIO_DEVICE_RESET), 0, "reset");
	check(vm_pixels[12345] == 0, "clears it");
	check(!query(&stage.vm, region, &plane) && !plane.drm_format, "and shows none");
	check_errno(console_set(&stage.worker, 640, 480, 2560), ESTALE, "until it is acknowledged");
	munmap((void *)vm_pixels, OCTAVO_CONSOLE_BYTES);
	stage_end(&stage);
	worker_pixels[1] = 1;
	check(worker_pixels[1] == 1, "the worker's mapping outlives the VM");
	munmap((void *)worker_pixels, OCTAVO_CONSOLE_BYTES);
}
