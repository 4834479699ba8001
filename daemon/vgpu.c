// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/vgpu.h"

#include <string.h>
#include <unistd.h>

#include "daemon/device.h"
#include "daemon/manager.h"
#include "daemon/opener.h"

#define VGPU_RETIRE_MS	5000u	/* what a worker gets to end after its VM */
#define VGPU_GONE_MS	1000u	/* what one gets that has already closed its session */
#define VGPU_TRIES	3u	/* workers that an open may lose before it is refused */

struct pci_address vgpu_gpu_address(const struct vgpu *vgpu)
{
	return (struct pci_address){
		.domain = vgpu->info.domain,
		.bus = vgpu->info.bus,
		.devfn = vgpu->info.devfn,
	};
}

struct vgpu *vgpu_new(struct manager *manager, const struct octavo_vgpu *info)
{
	struct vgpu *vgpu = g_new0(struct vgpu, 1);
	struct pci_address address;

	vgpu->manager = manager;
	vgpu->info = *info;
	address = vgpu_gpu_address(vgpu);
	uuid_format(info->uuid, vgpu->uuid);
	vgpu->path = ident_path("vgpu", vgpu->uuid);
	vgpu->type = device_type_id("", &address, info->eighths);
	if (!vgpu->type)
		vgpu->type = g_strdup("");
	vgpu->opener = info->opener_pid ? opener_read((pid_t)info->opener_pid) : g_strdup("");
	vgpu->last_error = g_strdup("");
	return vgpu;
}

static void vgpu_cancel_restart(struct vgpu *vgpu)
{
	if (vgpu->restart)
		g_source_remove(vgpu->restart);
	vgpu->restart = 0;
}

void vgpu_free(struct vgpu *vgpu)
{
	vgpu_cancel_restart(vgpu);
	worker_free(vgpu->worker);
	share_leave(&vgpu->share);
	g_free(vgpu->path);
	g_free(vgpu->type);
	g_free(vgpu->opener);
	g_free(vgpu->last_error);
	g_free(vgpu);
}

const char *vgpu_state_name(uint32_t state)
{
	switch (state) {
	case OCTAVO_VGPU_IDLE:
		return "idle";
	case OCTAVO_VGPU_OPEN:
		return "open";
	case OCTAVO_VGPU_UNSERVED:
		return "unserved";
	case OCTAVO_VGPU_NEEDS_RESET:
		return "needs-reset";
	default:
		return "unknown";
	}
}

bool vgpu_update(struct vgpu *vgpu, const struct octavo_vgpu *info)
{
	struct octavo_vgpu before = vgpu->info;

	vgpu->info = *info;
	if (info->session == vgpu->session &&
	    (info->state == OCTAVO_VGPU_OPEN || info->state == OCTAVO_VGPU_NEEDS_RESET))
		vgpu->served = true;
	if (before.opener_pid != info->opener_pid) {
		g_free(vgpu->opener);
		vgpu->opener = info->opener_pid ? opener_read((pid_t)info->opener_pid) :
						  g_strdup("");
	}
	/* Counters run all the time and are asked for apart */
	before.counters = info->counters;
	return memcmp(&before, info, sizeof(before)) != 0;
}

static void vgpu_worker_ended(struct worker *worker, const char *how, void *data)
{
	struct vgpu *vgpu = data;

	if (worker_pid(worker))
		g_message("vGPU %s: worker %d %s", vgpu->uuid, (int)worker_pid(worker), how);
	else
		g_warning("vGPU %s: no worker: %s", vgpu->uuid, how);
	g_free(vgpu->last_error);
	vgpu->last_error = g_strdup(how);
	worker_free(worker);
	vgpu->worker = NULL;
	manager_changed(vgpu->manager);
}

/* False if no open waits any more. */
static bool vgpu_refuse(struct vgpu *vgpu, const char *reason)
{
	struct control *control = manager_control(vgpu->manager);
	g_autoptr(GError) error = NULL;

	if (!control_session_refuse(control, vgpu->info.uuid, vgpu->session, reason, &error)) {
		g_debug("vGPU %s: %s", vgpu->uuid, error->message);
		return false;
	}
	manager_event(vgpu->manager, MANAGER_EVENT_REFUSED, vgpu, "open refused: %s", reason);
	return true;
}

/* A gate that cannot be had costs order, not the VM. */
static void vgpu_open_share(struct vgpu *vgpu)
{
	struct arbiter *arbiter = manager_arbiter(vgpu->manager, vgpu);
	g_autoptr(GError) error = NULL;

	if (vgpu->share.arbiter || !arbiter)
		return;
	if (!share_open(&vgpu->share, arbiter, vgpu->info.eighths, vgpu->info.vram_bytes, vgpu->uuid,
			&error))
		g_warning("vGPU %s: %s: it shares without order", vgpu->uuid, error->message);
}

static void vgpu_worker_started(struct worker *worker, void *data)
{
	struct vgpu *vgpu = data;

	manager_event(vgpu->manager, MANAGER_EVENT_WORKER, vgpu, "worker %d serves session %" G_GUINT64_FORMAT,
		      (int)worker_pid(worker), vgpu->session);
}

static const struct worker_ops vgpu_worker_ops = {
	.started = vgpu_worker_started,
	.ended = vgpu_worker_ended,
};

static void vgpu_start(struct vgpu *vgpu)
{
	struct control *control = manager_control(vgpu->manager);
	g_autoptr(GError) error = NULL;
	struct worker_setup setup;
	struct worker *worker;
	int fd;

	if (!control)
		return;
	if (manager_is_probing(vgpu->manager, vgpu)) {
		vgpu_refuse(vgpu, "its GPU is being examined, try again in a moment");
		return;
	}
	fd = control_session_open(control, vgpu->info.uuid, vgpu->session, &error);
	if (fd < 0) {
		/* served already by a worker that is not ours, or over */
		g_message("vGPU %s: %s: no worker started", vgpu->uuid, error->message);
		return;
	}
	vgpu_open_share(vgpu);
	manager_worker_setup(vgpu->manager, vgpu, &setup);
	worker = worker_start(&setup, fd, vgpu->share.arbiter ? vgpu->share.fd : -1,
			      &vgpu_worker_ops, vgpu, &error);
	close(fd);
	if (!worker) {
		g_warning("vGPU %s: cannot start its worker: %s", vgpu->uuid, error->message);
		g_free(vgpu->last_error);
		vgpu->last_error = g_strdup(error->message);
		vgpu_refuse(vgpu, "octavod cannot start the worker, see journalctl -u octavod");
		return;
	}
	vgpu->worker = worker;
	vgpu->started_us = g_get_monotonic_time();
}

void vgpu_opened(struct vgpu *vgpu, uint64_t session)
{
	vgpu_cancel_restart(vgpu);
	if (vgpu->worker) {
		if (vgpu->session == session)
			return;
		worker_retire(g_steal_pointer(&vgpu->worker), VGPU_RETIRE_MS);
	}
	share_close(&vgpu->share);
	vgpu->session = session;
	vgpu->served = false;
	vgpu->backoff = (struct backoff){ 0 };
	vgpu_start(vgpu);
}

static gboolean vgpu_replace(void *data)
{
	struct vgpu *vgpu = data;

	vgpu->restart = 0;
	vgpu_start(vgpu);
	return G_SOURCE_REMOVE;
}

void vgpu_worker_gone(struct vgpu *vgpu, uint64_t session)
{
	unsigned int pause_ms;
	int64_t lived_us;

	vgpu_cancel_restart(vgpu);
	if (vgpu->worker)
		worker_retire(g_steal_pointer(&vgpu->worker), VGPU_GONE_MS);
	if (vgpu->session != session) {
		/* found at octavod's start: it may have lived for days */
		vgpu->session = session;
		vgpu->served = true;
		vgpu->started_us = 0;
		vgpu->backoff = (struct backoff){ 0 };
	}
	lived_us = g_get_monotonic_time() - vgpu->started_us;
	pause_ms = backoff_next(&vgpu->backoff, lived_us);
	if (!vgpu->served && vgpu->backoff.failures >= VGPU_TRIES &&
	    vgpu_refuse(vgpu, "its worker ends at once, see journalctl -u 'octavo-vgpu@*'"))
		return;
	vgpu->restarts++;
	manager_event(vgpu->manager, MANAGER_EVENT_WORKER_LOST, vgpu,
		      "worker lost after %" G_GINT64_FORMAT " ms; a replacement starts in %u ms and serves from the guest's next reset",
		      lived_us / 1000, pause_ms);
	vgpu->restart = g_timeout_add(pause_ms, vgpu_replace, vgpu);
}

void vgpu_closed(struct vgpu *vgpu, uint64_t session)
{
	if (vgpu->session != session)
		return;
	vgpu_cancel_restart(vgpu);
	if (vgpu->worker)
		worker_retire(g_steal_pointer(&vgpu->worker), VGPU_RETIRE_MS);
	share_close(&vgpu->share);
	vgpu->session = 0;
	vgpu->served = false;
}

void vgpu_catch_up(struct vgpu *vgpu)
{
	uint64_t session = vgpu->info.session;

	if (vgpu->session && vgpu->session != session)
		vgpu_closed(vgpu, vgpu->session);
	if (!session || vgpu->info.worker_pid)
		return;
	if (vgpu->session != session)
		vgpu_opened(vgpu, session);
	else if (!vgpu->restart)
		vgpu_worker_gone(vgpu, session);
}

/* The worker of an earlier octavod has the gate; without it the worker runs on ungoverned. */
static void vgpu_adopt_share(struct vgpu *vgpu)
{
	struct arbiter *arbiter = manager_arbiter(vgpu->manager, vgpu);
	g_autoptr(GError) error = NULL;

	if (arbiter && !share_adopt(&vgpu->share, arbiter, worker_pidfd(vgpu->worker),
				    vgpu->info.eighths, vgpu->info.vram_bytes, vgpu->uuid, &error))
		g_warning("vGPU %s: %s: it shares without order until its VM starts again",
			  vgpu->uuid, error->message);
}

void vgpu_adopt(struct vgpu *vgpu)
{
	if (vgpu->worker || !vgpu->info.worker_pid)
		return;
	vgpu->session = vgpu->info.session;
	vgpu->served = true;
	vgpu->worker = worker_adopt((pid_t)vgpu->info.worker_pid, &vgpu_worker_ops, vgpu);
	if (!vgpu->worker)
		return;
	vgpu_adopt_share(vgpu);
	manager_event(vgpu->manager, MANAGER_EVENT_WORKER, vgpu, "worker %d adopted",
		      (int)worker_pid(vgpu->worker));
}
