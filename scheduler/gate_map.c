// SPDX-License-Identifier: LGPL-2.1-or-later
/* The page of a gate: made, found, mapped. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scheduler/gate_private.h"
#include "scheduler/join.h"

#define GATE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* All gates of this process. A second handle of a page would share its record locks: see gate.h. */
static pthread_mutex_t gates_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct gate *gates;

int gate_create(uint64_t share_bytes)
{
	struct gate_page *page;
	int fd = memfd_create("octavo-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, GATE_PAGE_SIZE) || fcntl(fd, F_ADD_SEALS, GATE_SEALS | F_SEAL_SEAL))
		goto fail;
	page = mmap(NULL, GATE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto fail;
	page->version = GATE_VERSION;
	page->open = 1;
	page->lease_ms = GATE_LEASE_MS;
	page->bound_us = GATE_BOUND_US;
	page->share_bytes = share_bytes;
	page->magic = GATE_MAGIC;
	munmap(page, GATE_PAGE_SIZE);
	return fd;
fail:
	close(fd);
	return -errno;
}

/* Takes fd over, also on failure. */
int gate_map(struct gate *gate, int fd, bool owner)
{
	struct stat status;
	void *page;
	int err = -EPROTO, seals;

	gate->fd = fd;
	gate->slot = -1;
	gate->owner = owner;
	pthread_mutex_init(&gate->slot_mutex, NULL);
	if (fstat(fd, &status)) {
		err = -errno;
		goto fail;
	}
	if (status.st_size != GATE_PAGE_SIZE)
		goto fail;
	seals = fcntl(fd, F_GET_SEALS);
	if (owner && (seals < 0 || (seals & GATE_SEALS) != GATE_SEALS))
		goto fail;
	page = mmap(NULL, GATE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		err = -errno;
		goto fail;
	}
	gate->page = page;
	gate->dev = status.st_dev;
	gate->ino = status.st_ino;
	if (gate->page->magic == GATE_MAGIC && gate->page->version == GATE_VERSION)
		return 0;
	munmap(page, GATE_PAGE_SIZE);
fail:
	close(fd);
	pthread_mutex_destroy(&gate->slot_mutex);
	return err;
}

void gate_unmap(struct gate *gate)
{
	/* leaves the slot, if there is one: closing drops the record lock, and others reap it */
	if (gate->slot >= 0)
		gate->page->slots[gate->slot].in_flight = 0;
	munmap(gate->page, GATE_PAGE_SIZE);
	close(gate->fd);
	pthread_mutex_destroy(&gate->slot_mutex);
}

/* Where the gate is: a descriptor number, or a path. */
static int gate_where(const char **where, int *number)
{
	const char *text = *where;
	char *end;
	long value;

	*number = -1;
	if (!text)
		text = getenv("OCTAVO_GATE_FD");
	if (!text || !isdigit((unsigned char)*text)) {
		if (!*where)
			*where = getenv("OCTAVO_GATE");
		return *where && **where ? 0 : -ENOENT;
	}
	value = strtol(text, &end, 10);
	if (*end || value < 0 || value > INT_MAX)
		return -EBADF;
	*number = (int)value;
	return 0;
}

/*
 * The gate that is open already. It is found without opening the file again: closing that second
 * descriptor would drop the process's record locks.
 */
static struct gate *gate_known(const char *where, int number)
{
	struct stat status;

	if (number >= 0 ? fstat(number, &status) : stat(where, &status))
		return NULL;
	for (struct gate *gate = gates; gate; gate = gate->next) {
		if (gate->dev == status.st_dev && gate->ino == status.st_ino)
			return gate;
		if (gate->joined && gate->join_dev == status.st_dev &&
		    gate->join_ino == status.st_ino)
			return gate;
	}
	return NULL;
}

/* A descriptor of our own, above those that programs close on their way up. */
static int gate_find(struct gate *gate, const char *where, int number)
{
	struct stat status;
	int fd;

	if (number >= 0) {
		fd = fcntl(number, F_DUPFD_CLOEXEC, 100);
	} else if (stat(where, &status)) {
		fd = -1;
	} else if (S_ISSOCK(status.st_mode)) {
		gate->joined = true;
		gate->join_dev = status.st_dev;
		gate->join_ino = status.st_ino;
		return join_gate(where, NULL, &gate->connection);
	} else {
		fd = open(where, O_RDWR | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* After a fork the child holds no record lock: its slot is its parent's. */
static void gate_forked(void)
{
	pthread_mutex_init(&gates_mutex, NULL);
	for (struct gate *gate = gates; gate; gate = gate->next) {
		pthread_mutex_init(&gate->slot_mutex, NULL);
		gate->slot = -1;
	}
}

static void gate_watch_forks(void)
{
	pthread_atfork(NULL, NULL, gate_forked);
}

static struct gate *gate_new(const char *where, int number, int *err)
{
	struct gate *gate = calloc(1, sizeof(*gate));
	int fd;

	if (!gate) {
		*err = -ENOMEM;
		return NULL;
	}
	gate->connection = -1;
	fd = gate_find(gate, where, number);
	*err = fd < 0 ? fd : gate_map(gate, fd, false);
	if (*err == 0) {
		*err = gate_register(gate);
		if (*err)
			gate_unmap(gate);
	}
	if (*err) {
		if (gate->connection >= 0)
			close(gate->connection);
		free(gate);
		return NULL;
	}
	return gate;
}

struct gate *gate_open(const char *where, int *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gate *gate = NULL;
	int number, rc;

	pthread_once(&once, gate_watch_forks);
	pthread_mutex_lock(&gates_mutex);
	rc = gate_where(&where, &number);
	if (rc == 0) {
		gate = gate_known(where, number);
		if (gate) {
			rc = gate_register(gate);
			if (rc)
				gate = NULL;
		} else {
			gate = gate_new(where, number, &rc);
			if (gate) {
				gate->next = gates;
				gates = gate;
			}
		}
		if (gate)
			gate->references++;
	}
	pthread_mutex_unlock(&gates_mutex);
	if (err)
		*err = rc;
	return gate;
}

void gate_close(struct gate *gate)
{
	struct gate **at;

	if (!gate)
		return;
	pthread_mutex_lock(&gates_mutex);
	if (--gate->references == 0) {
		for (at = &gates; *at != gate; at = &(*at)->next)
			;
		*at = gate->next;
		gate_unmap(gate);
		if (gate->connection >= 0)
			close(gate->connection);
		free(gate);
	}
	pthread_mutex_unlock(&gates_mutex);
}

struct gate *gate_own(int fd, int *err)
{
	struct gate *gate = calloc(1, sizeof(*gate));
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), rc = 0;

	if (copy < 0)
		rc = -errno;
	else if (!gate)
		rc = -ENOMEM;
	else
		rc = gate_map(gate, copy, true);
	if (copy >= 0 && !gate)
		close(copy);
	if (rc) {
		free(gate);
		gate = NULL;
	}
	if (err)
		*err = rc;
	return gate;
}

void gate_disown(struct gate *gate)
{
	if (!gate)
		return;
	gate_unmap(gate);
	free(gate);
}

struct gate_page *gate_page(struct gate *gate)
{
	return gate->page;
}
