// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/collect.h"

#include "config.h"

static uint32_t collect_open_vgpus(const GPtrArray *vgpus, const struct gpu *gpu)
{
	uint32_t open = 0;

	for (unsigned int i = 0; i < vgpus->len; i++) {
		const struct vgpu *vgpu = g_ptr_array_index(vgpus, i);
		struct pci_address address = vgpu_gpu_address(vgpu);

		open += vgpu->share.arbiter && pci_address_equal(&address, &gpu->address);
	}
	return open;
}

static void collect_gpu(struct snapshot *snapshot, const struct gpu *gpu, bool detailed)
{
	struct snapshot_gpu entry = {
		.address = gpu->address_text,
		.name = gpu->name,
		.driver = gpu->driver ? gpu->driver : "",
		.policy = conf_policy_name(gpu->conf.policy),
		.renderer = conf_renderer_name(gpu->conf.renderer),
		.reason = gpu->reason,
		.state = gpu->state,
		.memory_bytes = gpu->vram_bytes,
		.slice_ns = gpu->conf.slice_us * 1000ULL,
		.eighths_used = gpu->eighths_used,
		.vgpus = gpu->vgpus,
	};

	if (gpu->arbiter)
		arbiter_gpu_stats(gpu->arbiter, &entry.arbiter);
	if (gpu->arbiter && detailed) {
		uint64_t cursor = entry.arbiter.slices > SNAPSHOT_SLICES ?
					  entry.arbiter.slices - SNAPSHOT_SLICES + 1 : 0;

		entry.slices = g_new(struct arbiter_slice, SNAPSHOT_SLICES);
		entry.n_slices = arbiter_read_log(gpu->arbiter, &cursor, entry.slices,
						  SNAPSHOT_SLICES);
	}
	g_array_append_val(snapshot->gpus, entry);
}

static void collect_vgpu(struct snapshot *snapshot, struct manager *manager,
			 const struct vgpu *vgpu)
{
	struct pci_address address = vgpu_gpu_address(vgpu);
	const struct gpu *gpu = manager_find_gpu(manager, &address);
	struct snapshot_vgpu entry = {
		.uuid = vgpu->uuid,
		.gpu = gpu ? gpu->address_text : "",
		.type = snapshot_type_name(vgpu->info.eighths),
		.vm = vgpu->opener,
		.last_error = vgpu->last_error,
		.state = vgpu->info.state,
		.eighths = vgpu->info.eighths,
		.memory_limit_bytes = vgpu->info.vram_bytes,
		.counters = vgpu->info.counters,
		.worker_restarts = vgpu->restarts,
	};

	if (gpu)
		entry.promised = snapshot_promise(
			gpu->conf.policy, entry.eighths,
			collect_open_vgpus(manager_vgpus(manager), gpu));
	if (vgpu->share.arbiter)
		arbiter_stats(vgpu->share.arbiter, vgpu->share.id, &entry.arbiter);
	g_array_append_val(snapshot->vgpus, entry);
}

struct snapshot *collect(struct manager *manager, bool detailed)
{
	struct snapshot *snapshot = snapshot_new();
	const GPtrArray *gpus = manager_gpus(manager);
	const GPtrArray *vgpus = manager_vgpus(manager);

	manager_refresh(manager);
	snapshot->host = g_get_host_name();
	snapshot->version = PACKAGE_VERSION;
	snapshot->module = manager_module_state(manager);
	snapshot->time_us = g_get_real_time();
	snapshot->started_us = manager_started_us(manager);
	snapshot->now_ns = (uint64_t)g_get_monotonic_time() * 1000;
	for (unsigned int type = 0; type < MANAGER_EVENT_TYPES; type++)
		snapshot->event_counts[type] = manager_event_count(manager, type);
	if (detailed)
		snapshot->events = manager_events(manager);
	for (unsigned int i = 0; i < gpus->len; i++)
		collect_gpu(snapshot, g_ptr_array_index(gpus, i), detailed);
	for (unsigned int i = 0; i < vgpus->len; i++)
		collect_vgpu(snapshot, manager, g_ptr_array_index(vgpus, i));
	return snapshot;
}
