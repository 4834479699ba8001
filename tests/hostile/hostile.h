/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hostile.h - a client of octavo.ko that plays every role and keeps no rule
 *
 * The program is octavod (holds /dev/octavo), a worker (holds the session fd) and the VM's owner
 * (holds the VFIO device) at once; octavod must be stopped. Every check prints a line; the run ends
 * with "N passed, N failed".
 */
#ifndef OCTAVO_HOSTILE_H
#define OCTAVO_HOSTILE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/vfio.h>

#include "mdev/octavo.h"

/* ---- checks; the text says what must hold ---- */
bool check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* @result of a system call: must be -1 with @error, or success when @error is 0 */
bool check_errno(long result, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void group(const char *name);
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));
int summary(void);

/* ---- the host ---- */
extern struct host {
	char parent[32];		/* 0000:00:01.0 */
	char types[256];		/* .../mdev_supported_types */
	struct octavo_parent wish;
	int control;
	bool cdev;			/* iommufd instead of group and container */
} host;

void host_setup(const char *parent);
void host_teardown(void);
int type_write(const char *type, const char *file, const char *text);
int type_available(const char *type);
void uuid_text(const uint8_t uuid[16], char text[37]);
void uuid_make(unsigned int n, uint8_t uuid[16]);
int vgpu_create(const char *type, const uint8_t uuid[16]);
int vgpu_remove(const uint8_t uuid[16]);
int vgpu_info(const uint8_t uuid[16], struct octavo_vgpu *out);
/* Reads control events until one of this type for this vGPU, at most @ms; false when none comes. */
bool control_wait(uint32_t type, const uint8_t uuid[16], struct octavo_control_event *event, int ms);
void control_drain(void);

/* ---- a VM's owner ---- */
#define GUEST_BYTES	(64ull << 20)	/* guest memory at IOVA 0, read-write */
#define ROM_IOVA	(1ull << 32)	/* 1 MiB read-only for devices */
#define ROM_BYTES	(1ull << 20)

struct vm {
	uint8_t uuid[16];
	int container;			/* or iommufd */
	int group;
	int device;
	uint32_t ioas;
	int open_errno;
	uint8_t *memory;
	int memory_fd;
	pthread_t thread;
};

/* Opens the device in a thread; vm_opened() waits for its end and returns 0 or its errno. */
void vm_open_begin(struct vm *vm, const uint8_t uuid[16]);
int vm_opened(struct vm *vm);
void vm_close(struct vm *vm);
int vm_map(struct vm *vm, uint64_t iova, uint64_t length, void *at, bool write);
int vm_unmap(struct vm *vm, uint64_t iova, uint64_t length);
uint64_t vm_region(struct vm *vm, uint32_t index, uint64_t *size);
void vm_write(struct vm *vm, uint32_t region, uint64_t offset, uint64_t value, size_t size);
uint64_t vm_read(struct vm *vm, uint32_t region, uint64_t offset, size_t size);
int vm_eventfd(struct vm *vm, uint32_t index, uint32_t vector);

/* ---- a worker ---- */
struct worker {
	int fd;
	uint32_t generation;
	struct octavo_session_info info;
	volatile uint8_t *guest;	/* guest-memory window from IOVA 0, WINDOW_BYTES */
	volatile struct octavo_status *status;
};
#define WINDOW_BYTES	(32ull << 30)

#define FEATURES	((1ull << 32) | (1ull << 28) | (1ull << 29) | 3ull)

int session_fd(const uint8_t uuid[16], uint64_t session);
void worker_attach(struct worker *worker, int fd);
void worker_offer(struct worker *worker);
void worker_serve(struct worker *worker);	/* RESET_ACK of the current generation */
void worker_close(struct worker *worker);
bool worker_event(struct worker *worker, struct octavo_event *event, int ms);
bool worker_event_of(struct worker *worker, uint32_t type, struct octavo_event *event, int ms);
int worker_pin(struct worker *worker, uint64_t iova, uint64_t length, bool write);

/* A vGPU of 1/8 that is open and served. */
struct stage {
	struct vm vm;
	struct worker worker;
};
void stage_begin(struct stage *stage, unsigned int n);
void stage_end(struct stage *stage);
/* The guest's driver as far as DRIVER_OK, with vector n for queue n and 2 for configuration. */
void guest_drive(struct vm *vm);

/* NULL that the compiler does not see */
extern void *volatile nowhere;
bool eventfd_fired(int fd, int ms);

/* ---- groups ---- */
void test_control(void);
void test_create(void);
void test_parent(void);
void test_open(void);
void test_device(void);
void test_registers(void);
void test_session(void);
void test_interrupts(void);
void test_doorbells(void);
void test_guest(void);
void test_window(void);
void test_console(void);
void test_reset(void);
void test_race(void);

#endif /* OCTAVO_HOSTILE_H */
