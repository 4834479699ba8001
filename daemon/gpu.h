/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gpu - a GPU as octavod sees it: the device, what the configuration wants, what the module does
 */
#ifndef OCTAVO_DAEMON_GPU_H
#define OCTAVO_DAEMON_GPU_H

#include "daemon/conf.h"
#include "daemon/control.h"
#include "daemon/device.h"
#include "daemon/probe.h"
#include "scheduler/arbiter.h"
#include "scheduler/join.h"

enum gpu_state {
	GPU_DISABLED,		/* enable = false */
	GPU_UNUSABLE,		/* octavod cannot offer it to the module: see reason */
	GPU_WAITING,		/* no such device, no driver, or no module yet */
	GPU_REGISTERED,		/* its types can be created */
	GPU_REFUSED,		/* by the module: see reason */
};

struct gpu {
	struct pci_address address;
	char *address_text;
	char *path;		/* D-Bus object */
	bool present;		/* the device is there */
	uint16_t vendor_id;
	uint16_t device_id;
	char *name;
	char *driver;		/* NULL: none */
	char **nodes;		/* what renders on it opens in /dev */

	uint64_t vram_bytes;	/* to share out; 0: not known */
	const char *vram_source; /* "configuration", "driver", "bar", "vulkan", "unknown" */
	struct conf_gpu conf;	/* vulkan_device is the gpu's own copy */

	enum gpu_state state;
	char *reason;		/* "" or what is wrong and what to do */
	unsigned int eighths_used;
	unsigned int vgpus;
	GPtrArray *types;	/* struct device_type * */

	struct probe_facts *facts; /* what can be rendered; NULL: not known */
	char *probed;		/* what facts were asked for, gpu_wanted_probe(); or NULL */
	struct arbiter *arbiter; /* from the first open, or gpu_open_joins() on */
	struct join_server *joins; /* host processes with a share of it; NULL: cannot join */
	char *joins_path;
};

struct gpu *gpu_new(const struct pci_address *address);
void gpu_free(struct gpu *gpu);

/* Takes over what was found; @device NULL: it is not there. */
void gpu_set_device(struct gpu *gpu, const struct device *device);
void gpu_set_conf(struct gpu *gpu, const struct conf_gpu *conf);

/*
 * Makes the module's parent be what the configuration wants, state and reason included. @control
 * may be NULL (no module). Calling it again changes nothing that is right already.
 */
void gpu_reconcile(struct gpu *gpu, struct control *control);

/* Takes over what the module says; @parent NULL: it knows no such parent. */
void gpu_set_parent(struct gpu *gpu, const struct octavo_parent *parent);

/*
 * What the result of a probe that is still needed depends on; the caller's. NULL: none is (2d, no
 * driver, disabled, done). Until then the GPU is no parent: its memory may not be known yet, and no
 * VM must get a vGPU that renders less than the next one will.
 */
char *gpu_wanted_probe(const struct gpu *gpu);
/* Takes over the result for @key; @facts becomes the gpu's own, NULL: the probe failed. */
void gpu_set_facts(struct gpu *gpu, const char *key, struct probe_facts *facts);

/* At run time, until gpu_set_conf(). */
void gpu_set_order(struct gpu *gpu, enum conf_policy policy, unsigned int slice_us);

/* Its arbiter, made at the first call. NULL: cannot be made, which is logged. */
struct arbiter *gpu_arbiter(struct gpu *gpu,
			    void (*killed)(const struct arbiter_kill *kill, void *data), void *data);

/*
 * Lets host processes and containers join its arbiter (octavo-run) at gpu_joins_path(): those who
 * may open its render node. Needs the arbiter; again is no error.
 */
void gpu_open_joins(struct gpu *gpu);
void gpu_close_joins(struct gpu *gpu);

const char *gpu_state_name(enum gpu_state state);

#endif /* OCTAVO_DAEMON_GPU_H */
