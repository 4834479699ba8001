/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of the gate share. gate.h is the manual. */
#ifndef OCTAVO_SCHEDULER_GATE_PRIVATE_H
#define OCTAVO_SCHEDULER_GATE_PRIVATE_H

#include <pthread.h>
#include <sys/stat.h>

#include "scheduler/gate.h"

struct gate {
	struct gate_page *page;
	int fd;
	dev_t dev;
	ino_t ino;
	/* the socket that gave the gate away, and the connection that keeps it (join.h) */
	bool joined;
	dev_t join_dev;
	ino_t join_ino;
	int connection;
	unsigned int references;
	struct gate *next;
	pthread_mutex_t slot_mutex; /* registering and reaping, see gate_slot.c */
	_Atomic int slot;	    /* -1: none (an owner, or after a fork) */
	_Atomic bool cancelled;
	_Atomic uint64_t latency_ns;
	bool owner;
	/* the last heartbeat seen and when, for the lease */
	_Atomic uint32_t heartbeat;
	_Atomic uint64_t heartbeat_ns;
	_Atomic bool lapsed;
};

/* gate_map.c */
int gate_map(struct gate *gate, int fd, bool owner);
void gate_unmap(struct gate *gate);

/* gate_slot.c: 0, or -EUSERS */
int gate_register(struct gate *gate);
int gate_slots(const struct gate_page *page);
bool gate_slot_alive(struct gate *gate, int slot);

/* gate_lock.c: the caller has a slot */
void gate_lock(struct gate *gate, _Atomic uint32_t *word);
void gate_unlock(_Atomic uint32_t *word);

/* futex.c */
int futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void futex_wake(_Atomic uint32_t *word, int count);
struct futex_word {
	_Atomic uint32_t *word;
	uint32_t value;
};
/* Wait until any word differs from its value, or until deadline_ns (CLOCK_MONOTONIC). */
int futex_wait_any(const struct futex_word *words, unsigned int count, uint64_t deadline_ns);

#endif
