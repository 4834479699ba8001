/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * manager - owns what octavod knows: configuration, GPUs, vGPUs, the module's descriptor
 *
 * It listens to three sources: records of the module, uevents of the kernel (module loaded, GPU
 * plugged or bound), and requests that come through the bus. It writes to one listener, the bus.
 * Everything runs in the main loop's thread.
 */
#ifndef OCTAVO_DAEMON_MANAGER_H
#define OCTAVO_DAEMON_MANAGER_H

#include "daemon/conf.h"
#include "daemon/control.h"
#include "daemon/gpu.h"
#include "daemon/vgpu.h"

enum manager_event_type {
	MANAGER_EVENT_MODULE,		/* octavo.ko came or went */
	MANAGER_EVENT_GPU,		/* a GPU changed its state */
	MANAGER_EVENT_CREATED,
	MANAGER_EVENT_REMOVED,
	MANAGER_EVENT_OPENED,
	MANAGER_EVENT_CLOSED,
	MANAGER_EVENT_WORKER,		/* a worker serves */
	MANAGER_EVENT_WORKER_LOST,
	MANAGER_EVENT_REFUSED,		/* an open was refused */
	MANAGER_EVENT_HANG,		/* the arbiter's watchdog has killed work that did not end */
	MANAGER_EVENT_TYPES,
};

struct manager_event {
	enum manager_event_type type;
	int64_t time_us;		/* CLOCK_REALTIME */
	char *uuid;			/* "" if it is about no vGPU */
	char *gpu;			/* PCI address, or "" */
	char *message;
};

#define MANAGER_EVENTS	256u		/* kept for those who ask later */

struct manager_listener {
	/* Some property of manager, GPUs or vGPUs may have changed. */
	void (*changed)(void *data);
	void (*event)(const struct manager_event *event, void *data);
	/* octavod cannot go on: say why and end. */
	void (*fatal)(const GError *error, void *data);
};

struct manager;

/*
 * @conf_path: the file that conf_load() takes; @control_path: the module's node. Fails if it is wrong, or if another octavod holds
 * the module; not if there is no module yet: then it waits for it.
 */
struct manager *manager_new(const char *conf_path, const char *control_path, GError **error);
void manager_free(struct manager *manager);
void manager_listen(struct manager *manager, const struct manager_listener *listener, void *data);

/* Reads the configuration again; a wrong one changes nothing. */
bool manager_reload(struct manager *manager, GError **error);
/* Calls @fn after each reload that changed the configuration, whoever asked for it. */
void manager_when_reloaded(struct manager *manager, void (*fn)(void *data), void *data);

/* Arrays of struct gpu * and struct vgpu *, the manager's own. */
const GPtrArray *manager_gpus(const struct manager *manager);
const GPtrArray *manager_vgpus(const struct manager *manager);
const struct conf *manager_conf(const struct manager *manager);
const char *manager_conf_path(const struct manager *manager);
/* "loaded", "absent" or "incompatible". */
const char *manager_module_state(const struct manager *manager);
/* The last MANAGER_EVENTS events, oldest first. */
const GQueue *manager_events(const struct manager *manager);
/* How many there were since octavod's start, and when that was (CLOCK_REALTIME). */
uint64_t manager_event_count(const struct manager *manager, enum manager_event_type type);
int64_t manager_started_us(const struct manager *manager);

struct vgpu *manager_find_vgpu(const struct manager *manager, const char *uuid);
struct gpu *manager_find_gpu(const struct manager *manager, const struct pci_address *address);

/* Lists vGPUs and parents again, so that counters are fresh. */
void manager_refresh(struct manager *manager);
bool manager_resize(struct manager *manager, struct vgpu *vgpu, uint32_t width, uint32_t height,
		    GError **error);

/*
 * Creates a vGPU of @type on the GPU at @address ("": the first with room) with @uuid ("": a new
 * one). Returns it, the manager's own.
 */
struct vgpu *manager_create(struct manager *manager, const char *type, const char *address,
			    const char *uuid, GError **error);

/* For vgpu.c. */
struct control *manager_control(struct manager *manager);	/* NULL: no module */
void manager_worker_setup(struct manager *manager, const struct vgpu *vgpu,
			  struct worker_setup *setup);
/* The arbiter of its GPU, or NULL. */
struct arbiter *manager_arbiter(struct manager *manager, const struct vgpu *vgpu);
/* Calls @fn once no GPU is being examined for what it can render: now, or later from the main loop. */
void manager_when_examined(struct manager *manager, void (*fn)(void *data), void *data);
/* Whether it is still being found out what its GPU can render. */
bool manager_is_probing(struct manager *manager, const struct vgpu *vgpu);
void manager_changed(struct manager *manager);
G_GNUC_PRINTF(4, 5)
void manager_event(struct manager *manager, enum manager_event_type type, const struct vgpu *vgpu,
		   const char *format, ...);

const char *manager_event_name(enum manager_event_type type);

#endif /* OCTAVO_DAEMON_MANAGER_H */
