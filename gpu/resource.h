/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * resource.h - the resources of one device by number, and what they may cost
 *
 * Every number a guest can send has a bound: how many resources, bytes of one, bytes of all, entries
 * of backing of one and of all. What host memory a resource takes is charged before it is taken.
 *
 * Threads: one thread creates, changes and destroys; another may look up under the lock and take a
 * reference of what it finds there.
 */
#ifndef OCTAVO_GPU_RESOURCE_H
#define OCTAVO_GPU_RESOURCE_H

#include <pthread.h>
#include <stdint.h>

#include "gpu/backing.h"
#include "gpu/surface.h"

#define RESOURCE_BUCKETS	1024	/* a power of two */

struct resource_limits {
	uint32_t resources;
	uint64_t resource_bytes;	/* host memory of one */
	uint64_t total_bytes;		/* host memory of all */
	uint32_t backing_entries;	/* of one */
	uint32_t total_entries;		/* of all */
};

struct resource {
	struct resource *next;
	uint32_t id;
	uint32_t format;
	uint32_t width;			/* pixels */
	uint32_t height;
	uint64_t charged;		/* bytes of host memory */
	struct surface *surface;	/* a reference; NULL for the renderer's resources */
	struct backing *backing;	/* owned; NULL when none is attached */
	struct render_resource *render;	/* render.c's own; it ends it before the resource */
};

struct resource_table {
	pthread_mutex_t lock;
	struct resource_limits limits;
	uint32_t count;
	uint32_t entries;		/* of backing, charged */
	uint64_t bytes;			/* of host memory, charged */
	struct resource *buckets[RESOURCE_BUCKETS];
};

void resource_table_create(struct resource_table *table, const struct resource_limits *limits);
/* Destroys what is in it. */
void resource_table_destroy(struct resource_table *table);
void resource_table_clear(struct resource_table *table);

struct resource *resource_find(struct resource_table *table, uint32_t id);

/*
 * Makes an entry that is charged @bytes. -EEXIST: the number is taken, or 0; -ENOSPC: a limit.
 */
int resource_create(struct resource_table *table, uint32_t id, uint64_t bytes,
		    struct resource **resource);
void resource_destroy(struct resource_table *table, struct resource *resource);

/* -ENOSPC: a limit. -ENOMEM: memory is short. */
int resource_attach(struct resource_table *table, struct resource *resource,
		    const struct virtio_gpu_mem_entry *entries, uint32_t count);
void resource_detach(struct resource_table *table, struct resource *resource);

/* From any thread: a reference to the surface of a resource, or NULL. */
struct surface *resource_surface(struct resource_table *table, uint32_t id);

#endif
