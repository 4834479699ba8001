// SPDX-License-Identifier: LGPL-2.1-or-later
/* worker.c - a worker, and a stage with all roles on it */
#include "hostile.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/virtio_pci.h>

int session_fd(const uint8_t uuid[16], uint64_t session)
{
	struct octavo_session_open request = { .session = session };

	memcpy(request.uuid, uuid, 16);
	return ioctl(host.control, OCTAVO_SESSION_OPEN, &request);
}

void worker_attach(struct worker *worker, int fd)
{
	memset(worker, 0, sizeof(*worker));
	worker->fd = fd;
	if (ioctl(fd, OCTAVO_SESSION_INFO, &worker->info))
		give_up("no session info");
	worker->generation = worker->info.vgpu.generation;
	worker->guest = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	worker->status = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd,
			      (off_t)OCTAVO_MMAP_STATUS);
	if (worker->guest == MAP_FAILED || worker->status == MAP_FAILED)
		give_up("the session cannot be mapped");
}

void worker_offer(struct worker *worker)
{
	struct octavo_offer offer = { .features = FEATURES, .num_scanouts = 1, .num_capsets = 2 };

	if (ioctl(worker->fd, OCTAVO_OFFER, &offer))
		give_up("the offer failed");
}

void worker_serve(struct worker *worker)
{
	struct octavo_generation generation = { .generation = worker->status->generation };

	worker->generation = generation.generation;
	if (ioctl(worker->fd, OCTAVO_RESET_ACK, &generation))
		give_up("RESET_ACK of %u failed", generation.generation);
}

void worker_close(struct worker *worker)
{
	if (worker->guest)
		munmap((void *)worker->guest, WINDOW_BYTES);
	if (worker->status)
		munmap((void *)worker->status, (size_t)sysconf(_SC_PAGESIZE));
	close(worker->fd);
	worker->fd = -1;
	worker->guest = NULL;
	worker->status = NULL;
}

bool worker_event(struct worker *worker, struct octavo_event *event, int ms)
{
	struct pollfd p = { .fd = worker->fd, .events = POLLIN };

	if (poll(&p, 1, ms) != 1 || !(p.revents & POLLIN))
		return false;
	return read(worker->fd, event, sizeof(*event)) == sizeof(*event);
}

bool worker_event_of(struct worker *worker, uint32_t type, struct octavo_event *event, int ms)
{
	while (worker_event(worker, event, ms))
		if (event->type == type)
			return true;
	return false;
}

int worker_pin(struct worker *worker, uint64_t iova, uint64_t length, bool write)
{
	struct octavo_guest_range range = {
		.generation = worker->generation,
		.flags = write ? OCTAVO_GUEST_WRITE : 0,
		.iova = iova,
		.length = length,
	};

	return ioctl(worker->fd, OCTAVO_GUEST_PIN, &range);
}

void stage_begin(struct stage *stage, unsigned int n)
{
	struct octavo_control_event event;
	uint8_t uuid[16];
	int fd;

	uuid_make(n, uuid);
	control_drain();
	if (vgpu_create("octavo_1_8", uuid))
		give_up("cannot create vGPU %u", n);
	vm_open_begin(&stage->vm, uuid);
	if (!control_wait(OCTAVO_CONTROL_OPENED, uuid, &event, 5000))
		give_up("no OPENED event");
	fd = session_fd(uuid, event.session);
	if (fd < 0)
		give_up("no session fd");
	worker_attach(&stage->worker, fd);
	worker_offer(&stage->worker);
	worker_serve(&stage->worker);
	if (ioctl(fd, OCTAVO_READY))
		give_up("not READY");
	errno = vm_opened(&stage->vm);
	if (errno)
		give_up("the open failed");
}

void stage_end(struct stage *stage)
{
	struct octavo_event event;
	uint8_t uuid[16];

	memcpy(uuid, stage->vm.uuid, 16);
	vm_close(&stage->vm);
	if (stage->worker.fd >= 0) {
		check(worker_event_of(&stage->worker, OCTAVO_EVENT_CLOSED, &event, 2000),
		      "the worker hears that the VM is gone");
		worker_close(&stage->worker);
	}
	check_errno(vgpu_remove(uuid), 0, "the vGPU goes");
}

#define COMMON(field)	offsetof(struct virtio_pci_common_cfg, field)

void guest_drive(struct vm *vm)
{
	const uint32_t bar = VFIO_PCI_BAR0_REGION_INDEX;
	unsigned int q, word;

	vm_write(vm, bar, COMMON(device_status), 0, 1);
	vm_write(vm, bar, COMMON(device_status), 1, 1);
	vm_write(vm, bar, COMMON(device_status), 3, 1);
	for (word = 0; word < 2; word++) {
		vm_write(vm, bar, COMMON(guest_feature_select), word, 4);
		vm_write(vm, bar, COMMON(guest_feature), FEATURES >> (32 * word) & 0xffffffff, 4);
	}
	vm_write(vm, bar, COMMON(device_status), 11, 1);
	vm_write(vm, bar, COMMON(msix_config), 2, 2);
	for (q = 0; q < OCTAVO_QUEUES; q++) {
		vm_write(vm, bar, COMMON(queue_select), q, 2);
		vm_write(vm, bar, COMMON(queue_size), 64, 2);
		vm_write(vm, bar, COMMON(queue_msix_vector), q, 2);
		vm_write(vm, bar, COMMON(queue_desc_lo), 0x10000 * (q + 1), 4);
		vm_write(vm, bar, COMMON(queue_avail_lo), 0x10000 * (q + 1) + 0x4000, 4);
		vm_write(vm, bar, COMMON(queue_used_lo), 0x10000 * (q + 1) + 0x8000, 4);
		vm_write(vm, bar, COMMON(queue_enable), 1, 2);
	}
	vm_write(vm, bar, COMMON(device_status), 15, 1);
}
