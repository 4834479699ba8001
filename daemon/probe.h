/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe - what this host can render for a GPU, asked of the worker program ahead of any open
 *
 * Starting OpenGL and Vulkan to see whether they work can take longer than a VFIO open may wait. So
 * it is done once per GPU, and workers are told the result.
 */
#ifndef OCTAVO_DAEMON_PROBE_H
#define OCTAVO_DAEMON_PROBE_H

#include <glib.h>
#include <stdint.h>

struct probe_facts {
	char *capsets;		/* "none", "virgl,virgl2,venus" ... */
	char *render_node;	/* or NULL, likewise: */
	char *vulkan_device;	/* 32 hexadecimal digits */
	char *vulkan_name;
	char *vulkan_ids;	/* "1002:73bf" */
	uint64_t vram_bytes;	/* of the Vulkan device's own memory; 0: not known */
};

/* Out of the lines that the worker program prints; NULL if there are no capsets among them. */
struct probe_facts *probe_parse(const char *text);
void probe_facts_free(struct probe_facts *facts);

/* @facts: the receiver's, or NULL with an error. Called from the main loop. */
typedef void (*probe_done_fn)(struct probe_facts *facts, const GError *error, void *data);

/*
 * Facts are kept for as long as the host is up, so that a restarted octavod serves at once: a key
 * file, one group a GPU. Reading gives NULL if there is nothing for @key; errors are no matter.
 */
#define PROBE_CACHE "/run/octavo/probe"
struct probe_facts *probe_cache_read(const char *path, const char *gpu, const char *key);
/* @facts NULL: forget what is there. */
void probe_cache_write(const char *path, const char *gpu, const char *key,
		       const struct probe_facts *facts);

struct probe;
struct unit_socket;

struct probe_setup {
	/* for a worker's sandbox, as octavo-vgpu@probe-GPU.service; NULL: octavod's own child */
	struct unit_socket *units;
	const char *program;		/* of a child: absolute path */
	const char *gpu;		/* PCI address */
	const char *renderer;
	const char *vulkan_device;	/* or NULL */
	const char *const *devices;	/* nodes it may open in the sandbox, NULL at the end */
};

struct probe *probe_start(const struct probe_setup *setup, probe_done_fn fn, void *data,
			  GError **error);
/* Ends it if it still runs, without calling the probe_done_fn; also after that was called. */
void probe_free(struct probe *probe);

#endif /* OCTAVO_DAEMON_PROBE_H */
