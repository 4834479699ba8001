// SPDX-License-Identifier: LGPL-2.1-or-later
/* session.c - opening, session fd, resets and workers that die */
#include "hostile.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/virtio_pci.h>

#define BAR0	VFIO_PCI_BAR0_REGION_INDEX
#define COMMON(field)	offsetof(struct virtio_pci_common_cfg, field)

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void control_reopen(void)
{
	host.control = open("/dev/octavo", O_RDWR | O_CLOEXEC);
	if (host.control < 0)
		give_up("cannot open /dev/octavo again");
}

static void *remove_thread(void *data)
{
	return (void *)(intptr_t)(vgpu_remove(data) ? errno : 0);
}

/* The module's limit for an open; the default of 2000 where it cannot be read. */
static int64_t open_timeout_ms(void)
{
	FILE *file = fopen("/sys/module/octavo/parameters/open_timeout_ms", "r");
	int ms = 2000;

	if (file) {
		if (fscanf(file, "%d", &ms) != 1)
			ms = 2000;
		fclose(file);
	}
	return ms;
}

void test_open(void)
{
	struct octavo_session_refuse refuse = { .reason = "the renderer is on holiday" };
	struct octavo_control_event event;
	struct octavo_vgpu info;
	uint8_t uuid[16];
	pthread_t remover;
	int64_t start;
	int fd, request;
	void *result;
	struct vm vm;

	uuid_make(30, uuid);
	if (vgpu_create("octavo_1_8", uuid))
		give_up("no vGPU");

	close(host.control);
	start = now_ms();
	vm_open_begin(&vm, uuid);
	check(vm_opened(&vm) == EIO, "an open without octavod fails with EIO");
	check(now_ms() - start < 1500, "at once (%d ms)", (int)(now_ms() - start));
	vm_close(&vm);
	control_reopen();

	vm_open_begin(&vm, uuid);
	check(control_wait(OCTAVO_CONTROL_OPENED, uuid, &event, 5000) && event.session &&
	      event.pid == (uint32_t)getpid(), "OPENED tells session and opener");
	check(!vgpu_info(uuid, &info) && info.state == OCTAVO_VGPU_UNSERVED, "it is unserved");
	memcpy(refuse.uuid, uuid, 16);
	refuse.session = event.session + 1;
	check_errno(ioctl(host.control, OCTAVO_SESSION_REFUSE, &refuse), ESTALE, "refusal of another open");
	check_errno(session_fd(uuid, event.session + 1), ESTALE, "a session of another open");
	check_errno(session_fd(uuid, 0), ESTALE, "session 0");
	refuse.session = event.session;
	check_errno(ioctl(host.control, OCTAVO_SESSION_REFUSE, &refuse), 0, "refusal");
	check(vm_opened(&vm) == ECONNREFUSED, "the open is refused");
	vm_close(&vm);
	check(control_wait(OCTAVO_CONTROL_CLOSED, uuid, &event, 1000), "CLOSED follows");
	check_errno(ioctl(host.control, OCTAVO_SESSION_REFUSE, &refuse), ESTALE, "refusal of what is over");
	check_errno(session_fd(uuid, event.session), ESTALE, "a session of what is over");

	start = now_ms();
	vm_open_begin(&vm, uuid);
	check(control_wait(OCTAVO_CONTROL_OPENED, uuid, &event, 5000), "OPENED");
	fd = session_fd(uuid, event.session);
	check(fd >= 0, "a worker that is never ready");
	check_errno(session_fd(uuid, event.session), EBUSY, "a second worker");
	check_errno(ioctl(fd, OCTAVO_READY), EINVAL, "READY before an offer");
	check(vm_opened(&vm) == ETIMEDOUT, "the open times out");
	check(now_ms() - start < open_timeout_ms() + 4000, "when its time is over (%d ms)",
	      (int)(now_ms() - start));
	vm_close(&vm);
	check_errno(ioctl(fd, OCTAVO_READY), ENODEV, "the session is over");
	close(fd);

	/* octavod comes late: it hears of the open that waits */
	control_drain();
	vm_open_begin(&vm, uuid);
	check(control_wait(OCTAVO_CONTROL_OPENED, uuid, &event, 5000), "OPENED");
	close(host.control);
	control_reopen();
	check(control_wait(OCTAVO_CONTROL_OPENED, uuid, &event, 1000),
	      "OPENED again for an octavod that starts late");
	fd = session_fd(uuid, event.session);
	if (fd >= 0) {
		struct octavo_offer offer = { .features = FEATURES, .num_scanouts = 1 };

		check(!ioctl(fd, OCTAVO_OFFER, &offer) && !ioctl(fd, OCTAVO_READY), "it serves");
	}
	check(vm_opened(&vm) == 0, "the open succeeds");

	/* a removal asks, and waits for the answer */
	request = vm_eventfd(&vm, VFIO_PCI_REQ_IRQ_INDEX, 0);
	if (pthread_create(&remover, NULL, remove_thread, uuid))
		give_up("no thread");
	check(eventfd_fired(request, 5000), "a removal under a VM asks it to let go");
	vm_close(&vm);
	pthread_join(remover, &result);
	check(!result, "and completes when it does");
	close(request);
	close(fd);
	control_drain();
}

static void test_offers(struct worker *worker)
{
	struct octavo_offer offer = { .features = FEATURES, .num_scanouts = 1 };

	offer.features = FEATURES & ~(1ull << 32);
	check_errno(ioctl(worker->fd, OCTAVO_OFFER, &offer), EINVAL, "no VERSION_1");
	offer.features = FEATURES | 1ull << 34;
	check_errno(ioctl(worker->fd, OCTAVO_OFFER, &offer), EINVAL, "packed rings");
	offer.features = FEATURES | 1ull << 40;
	check_errno(ioctl(worker->fd, OCTAVO_OFFER, &offer), EINVAL, "ring reset");
	offer.features = FEATURES | 1ull << 41;
	check_errno(ioctl(worker->fd, OCTAVO_OFFER, &offer), EINVAL, "admin queue");
	offer.features = FEATURES;
	offer.num_scanouts = 0;
	check_errno(ioctl(worker->fd, OCTAVO_OFFER, &offer), EINVAL, "no scanouts");
	offer.num_scanouts = 2;
	check_errno(ioctl(worker->fd, OCTAVO_OFFER, &offer), EINVAL, "more scanouts than heads");
	offer.num_scanouts = 1;
	offer.num_capsets = 2;
	check_errno(ioctl(worker->fd, OCTAVO_OFFER, &offer), 0, "a good offer");
}

static void test_ioctls(struct worker *worker)
{
	static const unsigned long requests[] = {
		OCTAVO_SESSION_INFO, OCTAVO_OFFER, OCTAVO_RESET_ACK, OCTAVO_FAIL,
		OCTAVO_CONFIG_EVENT, OCTAVO_QUEUE_GET, OCTAVO_KICK_SET, OCTAVO_INTERRUPT,
		OCTAVO_WINDOW_MAP, OCTAVO_WINDOW_UNMAP, OCTAVO_GUEST_PIN, OCTAVO_GUEST_DROP,
		OCTAVO_CONSOLE_SET,
	};
	struct octavo_generation generation = { .generation = worker->generation, .reserved = 1 };
	struct octavo_config_event display = { .generation = worker->generation };
	struct octavo_queue queue = { .generation = worker->generation, .index = OCTAVO_QUEUES };
	uint8_t buffer[512];
	unsigned int i;

	check(ioctl(worker->fd, OCTAVO_GET_ABI) == OCTAVO_ABI_VERSION, "ABI version");
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		check_errno(ioctl(worker->fd, requests[i], NULL), EFAULT, "request %#lx of NULL",
			    requests[i]);
		check_errno(ioctl(worker->fd, requests[i] ^ (1ul << 18), buffer), ENOTTY,
			    "request %#lx of another size", requests[i]);
	}
	check_errno(ioctl(worker->fd, OCTAVO_VGPU_LIST, buffer), ENOTTY, "a control request");
	check_errno(ioctl(worker->fd, OCTAVO_RESET_ACK, &generation), EINVAL, "reserved field");
	check_errno(ioctl(worker->fd, OCTAVO_FAIL, &generation), EINVAL, "reserved field");
	generation.reserved = 0;
	generation.generation++;
	check_errno(ioctl(worker->fd, OCTAVO_RESET_ACK, &generation), ESTALE, "a generation to come");
	generation.generation -= 2;
	check_errno(ioctl(worker->fd, OCTAVO_RESET_ACK, &generation), ESTALE, "a generation gone");
	check_errno(ioctl(worker->fd, OCTAVO_CONFIG_EVENT, &display), EINVAL, "no event");
	display.events = 2;
	check_errno(ioctl(worker->fd, OCTAVO_CONFIG_EVENT, &display), EINVAL, "unknown event");
	check_errno(ioctl(worker->fd, OCTAVO_QUEUE_GET, &queue), EINVAL, "queue 2");
	queue.index = 0;
	queue.generation++;
	check_errno(ioctl(worker->fd, OCTAVO_QUEUE_GET, &queue), ESTALE, "queue of another generation");
}

static void mmap_fails(struct worker *worker, size_t length, int prot, int flags, uint64_t offset,
		       const char *what)
{
	void *at = mmap(NULL, length, prot, flags, worker->fd, (off_t)offset);

	check(at == MAP_FAILED, "mmap of %s fails", what);
	if (at != MAP_FAILED)
		munmap(at, length);
}

static void test_mmaps(struct worker *worker)
{
	const int rw = PROT_READ | PROT_WRITE;
	void *at;

	mmap_fails(worker, 4096, rw, MAP_PRIVATE, 0, "private guest memory");
	mmap_fails(worker, 8192, rw, MAP_SHARED, OCTAVO_GUEST_BYTES - 4096, "guest memory past its end");
	mmap_fails(worker, 4096, rw, MAP_SHARED, OCTAVO_GUEST_BYTES, "what lies after guest memory");
	mmap_fails(worker, 4096, rw, MAP_SHARED, OCTAVO_MMAP_STATUS, "a writable status page");
	mmap_fails(worker, 8192, PROT_READ, MAP_SHARED, OCTAVO_MMAP_STATUS, "two status pages");
	mmap_fails(worker, 4096, PROT_READ, MAP_SHARED, OCTAVO_MMAP_STATUS + 4096, "after the status");
	mmap_fails(worker, 4096, rw, MAP_SHARED, OCTAVO_MMAP_CONSOLE - 4096, "before the console");
	mmap_fails(worker, 4096, rw, MAP_SHARED, OCTAVO_MMAP_CONSOLE + OCTAVO_CONSOLE_BYTES,
		   "after the console");
	mmap_fails(worker, OCTAVO_CONSOLE_BYTES + 4096, rw, MAP_SHARED, OCTAVO_MMAP_CONSOLE,
		   "more than the console");
	check_errno(mprotect((void *)worker->status, 4096, rw), EACCES, "the status page stays read-only");
	at = mmap(NULL, OCTAVO_GUEST_BYTES, rw, MAP_SHARED | MAP_NORESERVE, worker->fd, 0);
	check(at != MAP_FAILED, "all of guest memory in one mapping");
	if (at != MAP_FAILED)
		check_errno(munmap(at, OCTAVO_GUEST_BYTES), 0, "and away");
}

void test_session(void)
{
	struct octavo_vgpu_mode mode = { .width = 1024, .height = 768 };
	struct octavo_event event, events[16];
	struct octavo_vgpu info;
	struct stage stage;
	struct pollfd p;
	uint8_t uuid[16];
	unsigned int i;

	stage_begin(&stage, 31);
	memcpy(uuid, stage.vm.uuid, 16);
	check(!vgpu_info(uuid, &info) && info.state == OCTAVO_VGPU_OPEN &&
	      info.worker_pid == (uint32_t)getpid() && info.counters.workers == 1, "listed as open");
	test_offers(&stage.worker);
	test_ioctls(&stage.worker);
	test_mmaps(&stage.worker);

	check(worker_event(&stage.worker, &event, 1000) && event.type == OCTAVO_EVENT_RESET &&
	      event.generation == stage.worker.generation, "the first event is RESET");
	check(!worker_event(&stage.worker, &event, 0), "and the only one");
	fcntl(stage.worker.fd, F_SETFL, O_NONBLOCK);
	check_errno(read(stage.worker.fd, &event, sizeof(event)), EAGAIN, "nothing to read");
	fcntl(stage.worker.fd, F_SETFL, 0);
	check_errno(read(stage.worker.fd, &event, sizeof(event) - 1), EINVAL, "short buffer");
	check_errno(write(stage.worker.fd, &event, sizeof(event)), EINVAL, "write");
	memcpy(mode.uuid, uuid, 16);
	check_errno(ioctl(host.control, OCTAVO_VGPU_SET_MODE, &mode), 0, "a new mode");
	mode.width = 1280;
	check_errno(ioctl(host.control, OCTAVO_VGPU_SET_MODE, &mode), 0, "and another");
	check_errno(read(stage.worker.fd, nowhere, sizeof(event)), EFAULT, "read to NULL");
	check(worker_event(&stage.worker, &event, 1000) && event.type == OCTAVO_EVENT_MODE &&
	      event.start == 1280 && event.length == 768, "loses nothing; only the last mode counts");

	for (i = 0; i < 20000; i++)
		vm_write(&stage.vm, BAR0, COMMON(device_status), i & 1 ? 3 : 0, 1);
	check(read(stage.worker.fd, events, sizeof(events)) == 2 * sizeof(event) &&
	      events[0].type == OCTAVO_EVENT_RESET && events[1].type == OCTAVO_EVENT_STATUS &&
	      events[1].value == 3, "20000 status writes leave one RESET and one STATUS");

	vm_close(&stage.vm);
	p = (struct pollfd) { .fd = stage.worker.fd, .events = POLLIN };
	check(poll(&p, 1, 1000) == 1 && (p.revents & POLLIN), "close wakes the worker");
	check(worker_event_of(&stage.worker, OCTAVO_EVENT_CLOSED, &event, 1000), "CLOSED");
	check(read(stage.worker.fd, &event, sizeof(event)) == 0, "then the end");
	check(poll(&p, 1, 0) == 1 && (p.revents & POLLHUP), "and POLLHUP");
	check_errno(ioctl(stage.worker.fd, OCTAVO_SESSION_INFO, &stage.worker.info), ENODEV,
		    "the session is over");
	check(stage.worker.guest[0] == 0 && stage.worker.status->guest_errors > 0,
	      "guest memory shows scratch, and counts it");
	worker_close(&stage.worker);
	check(!vgpu_info(uuid, &info) && info.state == OCTAVO_VGPU_IDLE && !info.session, "idle");
	check_errno(vgpu_remove(uuid), 0, "the vGPU goes");
}

static void test_stale(struct stage *stage)
{
	struct octavo_interrupt interrupt = { .generation = stage->worker.generation };
	struct octavo_config_event display = { .generation = stage->worker.generation, .events = 1 };
	struct octavo_generation fail = { .generation = stage->worker.generation };
	struct octavo_queue queue = { .generation = stage->worker.generation };
	struct octavo_console console = { .generation = stage->worker.generation };
	struct octavo_window window = {
		.generation = stage->worker.generation,
		.length = 4096,
		.addr = (uintptr_t)stage->vm.memory,
	};
	struct octavo_guest_range drop = { .generation = stage->worker.generation };

	check_errno(ioctl(stage->worker.fd, OCTAVO_INTERRUPT, &interrupt), ESTALE, "INTERRUPT");
	check_errno(ioctl(stage->worker.fd, OCTAVO_CONFIG_EVENT, &display), ESTALE, "CONFIG_EVENT");
	check_errno(ioctl(stage->worker.fd, OCTAVO_FAIL, &fail), ESTALE, "FAIL");
	check_errno(ioctl(stage->worker.fd, OCTAVO_QUEUE_GET, &queue), ESTALE, "QUEUE_GET");
	check_errno(ioctl(stage->worker.fd, OCTAVO_CONSOLE_SET, &console), ESTALE, "CONSOLE_SET");
	check_errno(ioctl(stage->worker.fd, OCTAVO_WINDOW_MAP, &window), ESTALE, "WINDOW_MAP");
	check_errno(worker_pin(&stage->worker, 0, 4096, false), ESTALE, "GUEST_PIN");
	check_errno(ioctl(stage->worker.fd, OCTAVO_GUEST_DROP, &drop), ESTALE, "GUEST_DROP");
}

/* A worker in a process of its own is killed under a running guest. */
static void test_worker_killed(struct stage *stage)
{
	struct octavo_generation generation = { .generation = 0 };
	struct octavo_control_event event;
	struct octavo_event worker_told;
	struct octavo_vgpu info;
	struct worker next;
	int vector, status, fd;
	char byte;
	pid_t pid;
	int pipes[2];

	guest_drive(&stage->vm);
	worker_serve(&stage->worker);
	vector = vm_eventfd(&stage->vm, VFIO_PCI_MSIX_IRQ_INDEX, 2);
	check(worker_pin(&stage->worker, 0x10000, 0x10000, true) == 0, "pages are pinned");
	if (pipe(pipes))
		give_up("no pipe");
	pid = fork();
	if (!pid) {
		write(pipes[1], "x", 1);
		pause();
		_exit(0);
	}
	if (read(pipes[0], &byte, 1) != 1)
		give_up("no child");
	worker_close(&stage->worker);
	check(!vgpu_info(stage->vm.uuid, &info) && info.state != OCTAVO_VGPU_UNSERVED,
	      "the forked child still holds the session");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(pipes[0]);
	close(pipes[1]);
	check(control_wait(OCTAVO_CONTROL_WORKER_GONE, stage->vm.uuid, &event, 2000),
	      "WORKER_GONE after SIGKILL");
	check(vm_read(&stage->vm, BAR0, COMMON(device_status), 1) == (15 | 0x40),
	      "the guest finds DEVICE_NEEDS_RESET");
	check(eventfd_fired(vector, 1000), "and a configuration interrupt");
	check(!vgpu_info(stage->vm.uuid, &info) && info.state == OCTAVO_VGPU_UNSERVED &&
	      !info.counters.guest_pinned, "unserved, nothing pinned");
	check(vm_read(&stage->vm, BAR0, COMMON(num_queues), 2) == OCTAVO_QUEUES, "registers answer");

	fd = session_fd(stage->vm.uuid, event.session);
	if (fd < 0)
		give_up("no session for a replacement");
	worker_attach(&next, fd);
	check(next.info.offered_features == FEATURES && next.info.num_capsets == 2,
	      "a replacement learns what was offered");
	generation.generation = next.generation;
	check_errno(ioctl(fd, OCTAVO_RESET_ACK, &generation), ESTALE,
		    "it cannot serve the generation of the dead");
	check(!worker_event(&next, &worker_told, 0), "and hears nothing");
	worker_offer(&next);
	check(!vgpu_info(stage->vm.uuid, &info) && info.state == OCTAVO_VGPU_NEEDS_RESET,
	      "the guest must reset");
	check(control_wait(OCTAVO_CONTROL_STATE, stage->vm.uuid, &event, 1000), "STATE tells so");
	vm_write(&stage->vm, BAR0, COMMON(device_status), 0, 1);
	check(worker_event(&next, &worker_told, 1000) && worker_told.type == OCTAVO_EVENT_RESET,
	      "after the reset it hears RESET");
	worker_serve(&next);
	check(!ioctl(fd, OCTAVO_READY), "READY again is harmless");
	check(!vgpu_info(stage->vm.uuid, &info) && info.state == OCTAVO_VGPU_OPEN &&
	      info.counters.workers == 2, "and serves");
	check(control_wait(OCTAVO_CONTROL_STATE, stage->vm.uuid, &event, 1000), "STATE tells so");
	close(vector);
	stage->worker = next;
}

/* A guest that makes its worker fail and resets, without end, takes no record of another vGPU. */
static void test_state_flood(struct stage *stage)
{
	struct octavo_control_event event;

	control_drain();
	for (unsigned int i = 0; i < 300; i++) {
		struct octavo_generation generation = { .generation = stage->worker.generation };

		if (ioctl(stage->worker.fd, OCTAVO_FAIL, &generation))
			give_up("FAIL of %u", generation.generation);
		vm_write(&stage->vm, BAR0, COMMON(device_status), 0, 1);
		worker_serve(&stage->worker);
	}
	check(control_wait(OCTAVO_CONTROL_STATE, stage->vm.uuid, &event, 1000) && !event.lost,
	      "600 changes of state lose no record");
	check(!control_wait(OCTAVO_CONTROL_STATE, stage->vm.uuid, &event, 0), "and are told once");
}

void test_reset(void)
{
	struct octavo_generation generation = { .generation = 0 };
	struct octavo_event event;
	struct stage stage;
	uint32_t before;

	stage_begin(&stage, 32);
	before = stage.worker.generation;
	guest_drive(&stage.vm);
	worker_serve(&stage.worker);
	check(stage.worker.generation == before + 1, "the guest's reset is a generation");
	stage.vm.memory[0x100] = 0x5a;
	check(stage.worker.guest[0x100] == 0x5a, "guest memory is there");
	check_errno(ioctl(stage.vm.device, VFIO_DEVICE_RESET), 0, "VFIO_DEVICE_RESET");
	check(stage.worker.status->generation == before + 2, "is one too");
	check(vm_read(&stage.vm, BAR0, COMMON(device_status), 1) == 0, "status is 0");
	test_stale(&stage);
	check(stage.worker.guest[0x100] == 0, "guest memory shows scratch until RESET_ACK");
	stage.worker.guest[0x100] = 1;
	check(stage.vm.memory[0x100] == 0x5a, "a late write does not reach the guest");
	generation.generation = stage.worker.generation;
	check_errno(ioctl(stage.worker.fd, OCTAVO_RESET_ACK, &generation), ESTALE, "an old RESET_ACK");
	check(worker_event_of(&stage.worker, OCTAVO_EVENT_RESET, &event, 1000) &&
	      event.generation == before + 2, "RESET tells the generation");
	worker_serve(&stage.worker);
	check(stage.worker.guest[0x100] == 0x5a, "then memory is there again");
	test_worker_killed(&stage);
	test_state_flood(&stage);
	stage_end(&stage);
}
