// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/resource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct resource **resource_bucket(struct resource_table *table, uint32_t id)
{
	/* drivers count upwards; one that means harm gets long lists, and the limit bounds them */
	return &table->buckets[(id ^ id >> 10) & (RESOURCE_BUCKETS - 1)];
}

void resource_table_create(struct resource_table *table, const struct resource_limits *limits)
{
	memset(table, 0, sizeof(*table));
	table->limits = *limits;
	pthread_mutex_init(&table->lock, NULL);
}

void resource_table_clear(struct resource_table *table)
{
	for (unsigned int i = 0; i < RESOURCE_BUCKETS; i++) {
		while (table->buckets[i])
			resource_destroy(table, table->buckets[i]);
	}
}

void resource_table_destroy(struct resource_table *table)
{
	resource_table_clear(table);
	pthread_mutex_destroy(&table->lock);
}

struct resource *resource_find(struct resource_table *table, uint32_t id)
{
	struct resource *resource;

	for (resource = *resource_bucket(table, id); resource; resource = resource->next) {
		if (resource->id == id)
			return resource;
	}
	return NULL;
}

int resource_create(struct resource_table *table, uint32_t id, uint64_t bytes,
		    struct resource **resource)
{
	struct resource **bucket = resource_bucket(table, id), *new;

	if (id == 0 || resource_find(table, id))
		return -EEXIST;
	if (table->count == table->limits.resources || bytes > table->limits.resource_bytes ||
	    bytes > table->limits.total_bytes - table->bytes)
		return -ENOSPC;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->id = id;
	new->charged = bytes;

	pthread_mutex_lock(&table->lock);
	table->count++;
	table->bytes += bytes;
	new->next = *bucket;
	*bucket = new;
	pthread_mutex_unlock(&table->lock);
	*resource = new;
	return 0;
}

void resource_destroy(struct resource_table *table, struct resource *resource)
{
	struct resource **at = resource_bucket(table, resource->id);

	resource_detach(table, resource);
	pthread_mutex_lock(&table->lock);
	while (*at != resource)
		at = &(*at)->next;
	*at = resource->next;
	table->count--;
	table->bytes -= resource->charged;
	pthread_mutex_unlock(&table->lock);
	surface_put(resource->surface);
	free(resource);
}

int resource_attach(struct resource_table *table, struct resource *resource,
		    const struct virtio_gpu_mem_entry *entries, uint32_t count)
{
	struct backing *backing;

	if (count > table->limits.backing_entries ||
	    count > table->limits.total_entries - table->entries)
		return -ENOSPC;
	backing = backing_create(entries, count);
	if (!backing)
		return -ENOMEM;
	table->entries += backing->count;
	resource->backing = backing;
	return 0;
}

void resource_detach(struct resource_table *table, struct resource *resource)
{
	if (!resource->backing)
		return;
	table->entries -= resource->backing->count;
	free(resource->backing);
	resource->backing = NULL;
}

struct surface *resource_surface(struct resource_table *table, uint32_t id)
{
	struct surface *surface = NULL;
	struct resource *resource;

	pthread_mutex_lock(&table->lock);
	resource = resource_find(table, id);
	if (resource)
		surface = surface_get(resource->surface);
	pthread_mutex_unlock(&table->lock);
	return surface;
}
