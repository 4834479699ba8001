/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vgpu - one existing vGPU and the worker that serves its open
 *
 * The module's records drive everything: OPENED starts a worker, WORKER_GONE a replacement,
 * CLOSED lets the worker go. The end of the process itself is only logged: an adopted worker is no
 * child, and a worker whose descriptor is closed serves nobody even if it lives.
 */
#ifndef OCTAVO_DAEMON_VGPU_H
#define OCTAVO_DAEMON_VGPU_H

#include "daemon/backoff.h"
#include "daemon/control.h"
#include "daemon/ident.h"
#include "daemon/share.h"
#include "daemon/worker.h"

struct manager;

struct vgpu {
	struct manager *manager;
	struct octavo_vgpu info;	/* as last listed by the module */
	char uuid[UUID_TEXT_BYTES];
	char *path;			/* D-Bus object */
	char *type;			/* "amdgpu-octavo_1_4"; "" if its GPU is gone */
	char *opener;			/* VM or program that holds it, or "" */
	bool listed;			/* manager.c: met in the list under way */

	uint64_t session;		/* the open that is served, 0: none */
	bool served;			/* this open has had a worker that was ready */
	struct share share;		/* of this open */
	struct worker *worker;
	int64_t started_us;
	struct backoff backoff;
	guint restart;			/* GSource of a replacement that waits, or 0 */
	unsigned int restarts;		/* workers replaced since octavod knows it */
	char *last_error;		/* why the last worker ended, or "" */
};

struct vgpu *vgpu_new(struct manager *manager, const struct octavo_vgpu *info);
/* Its worker, if any, lives on. */
void vgpu_free(struct vgpu *vgpu);

/* Takes over what the module lists; true if something an operator sees has changed. */
bool vgpu_update(struct vgpu *vgpu, const struct octavo_vgpu *info);

/* A VFIO open waits for a worker. */
void vgpu_opened(struct vgpu *vgpu, uint64_t session);
/* The session fd of a running open is closed. */
void vgpu_worker_gone(struct vgpu *vgpu, uint64_t session);
/* The open has ended. */
void vgpu_closed(struct vgpu *vgpu, uint64_t session);
/* An earlier octavod's worker serves it. */
void vgpu_adopt(struct vgpu *vgpu);

/* Records were lost: does what those about its open, as last listed, would have asked for. */
void vgpu_catch_up(struct vgpu *vgpu);

struct pci_address vgpu_gpu_address(const struct vgpu *vgpu);

const char *vgpu_state_name(uint32_t state);

#endif /* OCTAVO_DAEMON_VGPU_H */
