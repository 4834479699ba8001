// SPDX-License-Identifier: LGPL-2.1-or-later
/* doorbell.c - doorbells bound to eventfds: VFIO_DEVICE_IOEVENTFD */
#include "hostile.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/virtio_pci.h>

#define BAR0	VFIO_PCI_BAR0_REGION_INDEX

static uint64_t bar0;

static int bind_raw(struct vm *vm, uint32_t argsz, uint32_t flags, uint64_t offset, uint64_t data,
		    int32_t fd)
{
	struct vfio_device_ioeventfd ioeventfd = {
		.argsz = argsz,
		.flags = flags,
		.offset = offset,
		.data = data,
		.fd = fd,
	};

	return ioctl(vm->device, VFIO_DEVICE_IOEVENTFD, &ioeventfd);
}

/* As a virtio driver kicks: two bytes, the queue's index. */
static int bind_queue(struct vm *vm, uint32_t queue, int32_t fd)
{
	return bind_raw(vm, sizeof(struct vfio_device_ioeventfd), 2,
			bar0 + OCTAVO_BAR0_NOTIFY + 4 * queue, queue, fd);
}

static void ring(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		check(false, "an eventfd is rung: %s", strerror(errno));
}

static bool kicked(struct worker *worker, uint32_t queue)
{
	struct octavo_event event;

	return worker_event(worker, &event, 1000) && event.type == OCTAVO_EVENT_KICK &&
	       event.value == queue && !event.start && !event.length;
}

static bool quiet(struct worker *worker)
{
	struct octavo_event event;

	return !worker_event(worker, &event, 0);
}

static void test_arguments(struct vm *vm, int fd)
{
	const uint32_t size = sizeof(struct vfio_device_ioeventfd);
	const uint64_t notify = bar0 + OCTAVO_BAR0_NOTIFY;
	const uint32_t no_sizes[] = { 0, 3, 5, 6, 7, 8, 9, 15, 16, 18, 1u << 31 | 2, UINT32_MAX };
	const uint64_t no_doorbells[] = {
		bar0, bar0 + OCTAVO_BAR0_ISR, bar0 + OCTAVO_BAR0_DEVICE, bar0 + OCTAVO_BAR0_MSIX_TABLE,
		notify - 4, notify + 1, notify + 2, notify + 3, notify + 4 * OCTAVO_QUEUES,
		notify + 0xffc, bar0 + OCTAVO_BAR0_BYTES, bar0 + (1ull << 32) + OCTAVO_BAR0_NOTIFY,
		vm_region(vm, VFIO_PCI_BAR2_REGION_INDEX, NULL) + OCTAVO_BAR0_NOTIFY,
		vm_region(vm, VFIO_PCI_CONFIG_REGION_INDEX, NULL) + OCTAVO_BAR0_NOTIFY,
		vm_region(vm, VFIO_PCI_NUM_REGIONS, NULL) + OCTAVO_BAR0_NOTIFY,
		1ull << 63, UINT64_MAX, UINT64_MAX - 3,
	};
	unsigned int i;

	check_errno(ioctl(vm->device, VFIO_DEVICE_IOEVENTFD, NULL), EFAULT, "NULL");
	check_errno(bind_raw(vm, 0, 2, notify, 0, fd), EINVAL, "argsz 0");
	check_errno(bind_raw(vm, offsetof(struct vfio_device_ioeventfd, fd) + 3, 2, notify, 0, fd), EINVAL,
		    "an argsz without all of fd");
	for (i = 0; i < sizeof(no_sizes) / sizeof(no_sizes[0]); i++) {
		check_errno(bind_raw(vm, size, no_sizes[i], notify, 0, fd), EINVAL, "flags %#x",
			    no_sizes[i]);
		check_errno(bind_raw(vm, size, no_sizes[i], notify, 0, -1), EINVAL,
			    "flags %#x, to let go", no_sizes[i]);
	}
	for (i = 0; i < sizeof(no_doorbells) / sizeof(no_doorbells[0]); i++) {
		check_errno(bind_raw(vm, size, 2, no_doorbells[i], 0, fd), EINVAL,
			    "no doorbell at %#lx", no_doorbells[i]);
		check_errno(bind_raw(vm, size, 2, no_doorbells[i], 0, -1), EINVAL,
			    "nor one to let go at %#lx", no_doorbells[i]);
	}
	check_errno(bind_queue(vm, 0, -2), EINVAL, "fd -2");
	check_errno(bind_queue(vm, 0, INT32_MIN), EINVAL, "fd INT_MIN");
	check_errno(bind_queue(vm, 0, 9999), EBADF, "no such fd");
	check_errno(bind_queue(vm, 0, vm->memory_fd), EINVAL, "a memfd is no eventfd");
	check_errno(bind_queue(vm, 0, vm->device), EINVAL, "nor is the device itself");
	check_errno(bind_queue(vm, 0, -1), ENODEV, "nothing is bound that could be let go");
	check_errno(bind_raw(vm, size + 64, 2, notify, 0, -1), ENODEV, "a longer argsz is a newer user's");
}

static void test_kicks(struct vm *vm, struct worker *worker, int fd)
{
	struct octavo_kick kick = { .index = 1, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	struct octavo_vgpu before, after;
	uint64_t count;
	int i;

	ring(fd);
	check_errno(bind_queue(vm, 1, fd), 0, "bound");
	check(kicked(worker, 1), "what it held when it was bound is a kick");
	quiet(worker);
	check_errno(bind_queue(vm, 1, fd), EEXIST, "bound twice");
	if (vgpu_info(vm->uuid, &before))
		give_up("no info");
	ring(fd);
	check(kicked(worker, 1), "a signal is a kick");
	check(quiet(worker), "and one only");
	check(read(fd, &count, sizeof(count)) == -1 && errno == EAGAIN, "the module takes the count");
	check(!vgpu_info(vm->uuid, &after) && after.counters.kicks == before.counters.kicks + 1 &&
	      after.counters.registers == before.counters.registers,
	      "it counts as a kick, and not as a trapped access");
	for (i = 0; i < 100000; i++)
		ring(fd);
	check(kicked(worker, 1) && quiet(worker), "100000 signals leave one record");

	check_errno(ioctl(worker->fd, OCTAVO_KICK_SET, &kick), 0, "the worker's own eventfd");
	vm_write(vm, BAR0, OCTAVO_BAR0_NOTIFY + 4, 1, 2);
	check(eventfd_fired(kick.fd, 1000) && quiet(worker), "trapped kicks still come to that one");
	check_errno(bind_queue(vm, 0, kick.fd), 0, "the worker's eventfd as a doorbell");
	vm_write(vm, BAR0, OCTAVO_BAR0_NOTIFY + 4, 1, 2);
	check(kicked(worker, 0), "a kick of one queue that rings the other");
	check_errno(bind_queue(vm, 0, -1), 0, "let go");
	kick.fd = -1;
	check_errno(ioctl(worker->fd, OCTAVO_KICK_SET, &kick), 0, "no eventfd of the worker");

	check_errno(bind_queue(vm, 0, fd), 0, "one eventfd for both queues");
	ring(fd);
	check(kicked(worker, 0) && kicked(worker, 1), "kicks both");
	check_errno(bind_queue(vm, 0, -1), 0, "one of them let go");
	check_errno(bind_queue(vm, 0, -1), ENODEV, "twice");
	ring(fd);
	check(kicked(worker, 1) && quiet(worker), "kicks the other");
	check_errno(bind_queue(vm, 1, -1), 0, "both let go");
	ring(fd);
	check(quiet(worker) && eventfd_fired(fd, 0), "kicks none, and keeps its count");
}

static void test_limit(struct vm *vm, struct worker *worker, int fd)
{
	const uint32_t size = sizeof(struct vfio_device_ioeventfd);
	const uint64_t notify = bar0 + OCTAVO_BAR0_NOTIFY;
	uint32_t i;

	for (i = 0; i < OCTAVO_IOEVENTFDS_MAX; i++)
		check_errno(bind_raw(vm, size, 1u << i % 3, notify, UINT64_MAX - i, fd), 0, "binding %u", i);
	check_errno(bind_raw(vm, size, 2, notify, 1, fd), ENOSPC, "one too many");
	check_errno(bind_raw(vm, size, 2, notify, UINT64_MAX, fd), ENOSPC, "the size is part of the name");
	check_errno(bind_raw(vm, size, 1, notify, UINT64_MAX, fd), EEXIST, "and the data");
	ring(fd);
	check(kicked(worker, 0) && quiet(worker), "all of them are one kick");
	check_errno(bind_raw(vm, size, 1, notify, UINT64_MAX, -1), 0, "one goes");
	check_errno(bind_raw(vm, size, 2, notify, 1, fd), 0, "another takes its place");
	check_errno(bind_raw(vm, size, 2, notify, 1, -1), 0, "and goes");
	for (i = 1; i < OCTAVO_IOEVENTFDS_MAX; i++)
		check_errno(bind_raw(vm, size, 1u << i % 3, notify, UINT64_MAX - i, -1), 0, "%u goes", i);
}

static void test_lives(struct stage *stage, int fd)
{
	struct worker *worker = &stage->worker;
	struct vm *vm = &stage->vm;
	struct octavo_control_event control;
	struct octavo_event event;
	int other = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), next;

	check_errno(bind_queue(vm, 0, fd), 0, "bound");
	ring(fd);
	check_errno(ioctl(vm->device, VFIO_DEVICE_RESET), 0, "reset");
	check(worker_event(worker, &event, 1000) && event.type == OCTAVO_EVENT_RESET && quiet(worker),
	      "a kick before a reset is of the old generation");
	ring(fd);
	check(kicked(worker, 0), "the binding outlives the reset");

	check_errno(bind_queue(vm, 1, other), 0, "bound");
	ring(other);
	close(other);
	check(kicked(worker, 1), "the last signal of an eventfd that is closed");
	other = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	check_errno(bind_queue(vm, 1, other), EEXIST, "its binding waits to be let go");
	check_errno(bind_queue(vm, 1, -1), 0, "let go");
	check_errno(bind_queue(vm, 1, other), 0, "bound to a new one");

	control_drain();
	worker_close(worker);
	check(control_wait(OCTAVO_CONTROL_WORKER_GONE, vm->uuid, &control, 2000), "the worker dies");
	ring(other);
	next = session_fd(vm->uuid, control.session);
	if (next < 0)
		give_up("no session fd");
	worker_attach(worker, next);
	check(worker_event_of(worker, OCTAVO_EVENT_KICK, &event, 1000) && event.value == 1,
	      "its successor gets the kick that nobody read");
	check_errno(bind_queue(vm, 0, -1), 0, "let go at the end");
	check_errno(bind_queue(vm, 1, -1), 0, "both");
	close(other);
}

static atomic_bool race_over;

static void *race_ring(void *data)
{
	const int *fd = data;

	while (!atomic_load(&race_over))
		ring(*fd);
	return NULL;
}

static void *race_read(void *data)
{
	struct worker *worker = data;
	struct octavo_event event;

	while (!atomic_load(&race_over))
		worker_event(worker, &event, 10);
	return NULL;
}

/* Signals while bindings, generations and in the end the device come and go */
static void test_storm(struct stage *stage, int fd)
{
	pthread_t ringer, reader;
	struct vm *vm = &stage->vm;
	unsigned int i, bad = 0;

	if (pthread_create(&ringer, NULL, race_ring, &fd) ||
	    pthread_create(&reader, NULL, race_read, &stage->worker))
		give_up("no threads");
	for (i = 0; i < 300; i++) {
		bad += bind_queue(vm, 0, fd) != 0;
		bad += bind_queue(vm, 1, fd) != 0;
		if (i % 8 == 0)
			vm_write(vm, BAR0, offsetof(struct virtio_pci_common_cfg, device_status), 0, 1);
		bad += bind_queue(vm, 0, -1) != 0;
		bad += bind_queue(vm, 1, -1) != 0;
	}
	check(!bad, "bindings come and go under a storm of signals, %u refused", bad);
	check_errno(bind_queue(vm, 0, fd), 0, "bound while it is signalled");
	vm_close(vm);
	check(true, "the VM goes under a storm of signals");
	atomic_store(&race_over, true);
	pthread_join(ringer, NULL);
	pthread_join(reader, NULL);
}

void test_doorbells(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct octavo_event event;
	struct stage stage;
	uint8_t uuid[16];

	stage_begin(&stage, 23);
	memcpy(uuid, stage.vm.uuid, sizeof(uuid));
	bar0 = vm_region(&stage.vm, BAR0, NULL);
	while (worker_event(&stage.worker, &event, 0))
		;
	test_arguments(&stage.vm, fd);
	test_kicks(&stage.vm, &stage.worker, fd);
	test_limit(&stage.vm, &stage.worker, fd);
	test_lives(&stage, fd);
	test_storm(&stage, fd);
	worker_close(&stage.worker);
	ring(fd);
	check(eventfd_fired(fd, 0), "after the end the eventfd is its owner's alone");
	close(fd);
	check_errno(vgpu_remove(uuid), 0, "the vGPU goes");
}
