/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * snapshot - what this host looks like at one moment, for those who watch it
 *
 * collect.c fills it from a running octavod, metrics.c and status.c write it as text; a test fills it
 * by hand. Strings and events are borrowed: they are good until the main loop runs again.
 */
#ifndef OCTAVO_DAEMON_SNAPSHOT_H
#define OCTAVO_DAEMON_SNAPSHOT_H

#include <glib.h>

#include "daemon/gpu.h"
#include "daemon/manager.h"

#define SNAPSHOT_SLICES	1024u	/* of each GPU: a second of the shortest */

struct snapshot_gpu {
	const char *address;
	const char *name;
	const char *driver;		/* "": none is bound */
	const char *policy;
	const char *renderer;
	const char *reason;		/* "", or what is wrong and what to do */
	enum gpu_state state;
	uint64_t memory_bytes;
	uint64_t slice_ns;
	uint32_t eighths_used;
	uint32_t vgpus;
	struct arbiter_gpu_stats arbiter;	/* zero before the first open */
	struct arbiter_slice *slices;	/* oldest first; the snapshot's own */
	size_t n_slices;
};

struct snapshot_vgpu {
	const char *uuid;
	const char *gpu;		/* PCI address */
	const char *type;		/* "1/4" */
	const char *vm;			/* who has it open, or "" */
	const char *last_error;
	uint32_t state;			/* OCTAVO_VGPU_* */
	uint32_t eighths;
	uint32_t promised;		/* of its GPU's time, POLICY_WHOLE-ths; 0: nothing is promised */
	uint64_t memory_limit_bytes;
	struct octavo_counters counters;
	struct arbiter_stats arbiter;	/* of this open; zero without one */
	uint32_t worker_restarts;
};

struct snapshot {
	const char *host;
	const char *version;
	const char *module;		/* manager_module_state() */
	int64_t time_us;		/* CLOCK_REALTIME, likewise: */
	int64_t started_us;
	uint64_t now_ns;		/* the clock of slices */
	uint64_t event_counts[MANAGER_EVENT_TYPES];
	const GQueue *events;		/* struct manager_event *, oldest first; or NULL */
	GArray *gpus;			/* struct snapshot_gpu */
	GArray *vgpus;			/* struct snapshot_vgpu */
};

/* With room for what follows; snapshot_free() it. */
struct snapshot *snapshot_new(void);
void snapshot_free(struct snapshot *snapshot);

/*
 * What @policy promises to a vGPU of @eighths while @open vGPUs share its GPU, in POLICY_WHOLE-ths.
 */
uint32_t snapshot_promise(enum conf_policy policy, uint32_t eighths, uint32_t open);

/* "1/2", "1/4", "1/8"; "" for any other number of eighths. */
const char *snapshot_type_name(uint32_t eighths);

#endif /* OCTAVO_DAEMON_SNAPSHOT_H */
