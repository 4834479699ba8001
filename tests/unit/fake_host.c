// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/fake_host.h"

#define MS	1000000ull
#define SECOND	(1000 * MS)
#define MIB	(1ull << 20)
#define BEGIN	1793404800000000ll	/* us since the epoch */

static const struct {
	const char *uuid;
	unsigned int gpu;
	uint32_t eighths;
	const char *vm;
	uint32_t state;
	unsigned int memory;	/* percent in use */
	unsigned int got;	/* POLICY_WHOLE-ths of the GPU */
} guests[FAKE_HOST_VGPUS] = {
	{ "1c6a5f0e-3a44-4f3b-9d53-0b1f5c9e7a01", 0, 4, "render-01", OCTAVO_VGPU_OPEN, 61, 502 },
	{ "2f0b9d17-88c1-4a7e-b0f6-52f3f1d0be02", 0, 2, "cad-lisa", OCTAVO_VGPU_OPEN, 94, 249 },
	{ "3d7e2a90-5b6f-49f2-8c1d-9a60e2c4d703", 0, 1, "desk \"Ö\"", OCTAVO_VGPU_OPEN, 22, 61 },
	{ "4a91c3be-7702-4d5c-a3ef-c18b40f69e04", 0, 1, "ci-runner", OCTAVO_VGPU_OPEN, 40, 124 },
	{ "5be82d46-1f09-4c8a-9e72-07d95a3b1c05", 1, 2, "train-a", OCTAVO_VGPU_OPEN, 83, 0 },
	{ "6c053fa1-e4d8-4b19-b6a4-f2c7708de506", 1, 1, "desk-12", OCTAVO_VGPU_NEEDS_RESET, 5, 125 },
	{ "7d2f60b9-93ab-4e06-8d47-6be1f90c2a07", 1, 1, "desk-13", OCTAVO_VGPU_UNSERVED, 0, 0 },
	{ "8e4d71c2-06fe-43d7-a95b-31a8c57f0d08", 1, 1, "", OCTAVO_VGPU_IDLE, 0, 0 },
};

/* Whose slice of 4 ms it is, over and over. */
static const unsigned int turns[2][8] = { { 0, 1, 0, 2, 0, 1, 0, 3 }, { 5, 5, 5, 5, 5, 5, 5, 5 } };

static void add_slices(struct snapshot_gpu *gpu, unsigned int index, uint64_t now_ns)
{
	uint64_t last = now_ns / gpu->slice_ns;

	gpu->slices = g_new0(struct arbiter_slice, SNAPSHOT_SLICES);
	for (uint64_t number = last - SNAPSHOT_SLICES; number < last; number++) {
		struct arbiter_slice *entry = &gpu->slices[gpu->n_slices];
		unsigned int vgpu = turns[index][number % 8];

		/* the second GPU is mostly idle, and desk "Ö" uses half of what it may */
		if (index == 1 && number % 8)
			continue;
		entry->sequence = number;
		g_strlcpy(entry->name, guests[vgpu].uuid, sizeof(entry->name));
		entry->slice.begin_ns = number * gpu->slice_ns;
		entry->slice.granted_ns = gpu->slice_ns;
		entry->slice.used_ns = vgpu == 2 ? gpu->slice_ns / 2 : gpu->slice_ns;
		if (vgpu == 1 && number % 24 == 1) {
			entry->slice.used_ns += MS;
			entry->slice.overrun_ns = MS;
		}
		gpu->n_slices++;
	}
}

static void add_gpu(struct snapshot *snapshot, unsigned int index, bool detailed)
{
	struct snapshot_gpu gpu = {
		.address = index ? "0000:41:00.0" : "0000:03:00.0",
		.name = index ? "Intel Arc A770" : "AMD Radeon RX 7800 XT",
		.driver = index ? "xe" : "amdgpu",
		.policy = index ? "fixed-share" : "elastic",
		.renderer = "venus",
		.reason = "",
		.state = GPU_REGISTERED,
		.memory_bytes = 16384 * MIB,
		.slice_ns = 4 * MS,
		.eighths_used = index ? 5 : 8,
		.vgpus = 4,
		.arbiter = { .slices = snapshot->now_ns / (4 * MS),
			     .switches = snapshot->now_ns / (5 * MS),
			     .hold_idle_ns = snapshot->now_ns / 500, .realtime = !index },
	};

	if (detailed)
		add_slices(&gpu, index, snapshot->now_ns);
	g_array_append_val(snapshot->gpus, gpu);
}

static void add_vgpu(struct snapshot *snapshot, unsigned int index)
{
	uint64_t open_ns = snapshot->now_ns - 1000 * SECOND;
	bool open = guests[index].state != OCTAVO_VGPU_IDLE;
	struct snapshot_vgpu vgpu = {
		.uuid = guests[index].uuid,
		.gpu = guests[index].gpu ? "0000:41:00.0" : "0000:03:00.0",
		.type = snapshot_type_name(guests[index].eighths),
		.vm = guests[index].vm,
		.last_error = guests[index].state == OCTAVO_VGPU_UNSERVED ? "killed by signal 11" : "",
		.state = guests[index].state,
		.eighths = guests[index].eighths,
		.promised = snapshot_promise(CONF_POLICY_ELASTIC, guests[index].eighths, 4),
		.memory_limit_bytes = guests[index].eighths * 2048 * MIB,
		.worker_restarts = guests[index].state == OCTAVO_VGPU_UNSERVED ? 3 : 0,
	};

	vgpu.counters = (struct octavo_counters){
		.registers = 1000 + index, .kicks = snapshot->now_ns / MS,
		.interrupts = snapshot->now_ns / (2 * MS), .resets = 3, .window_faults = 512,
		.window_mapped = open ? 256 * MIB : 0, .guest_faults = 4096,
		.guest_pinned = open ? 2048 : 0, .guest_errors = index == 6, .workers = open,
	};
	if (open)
		vgpu.arbiter = (struct arbiter_stats){
			.turns = open_ns / (8 * MS),
			.used_ns = open_ns / POLICY_WHOLE * guests[index].got,
			.overrun_ns = open_ns / 1000,
			.waited_ns = open_ns / POLICY_WHOLE * (guests[index].got ? 960 - guests[index].got : 0),
			.debt_ns = index == 2 ? -(int64_t)(2 * MS) : (int64_t)(3 * MS) + 5,
			.share_bytes = vgpu.memory_limit_bytes,
			.used_bytes = vgpu.memory_limit_bytes / 100 * guests[index].memory,
			.processes = 2, .in_flight = index == 0, .kills = index == 4 ? 4 : 0,
			.open = index == 0, .waiting = index == 1, .held_off = index == 4,
		};
	g_array_append_val(snapshot->vgpus, vgpu);
}

static const GQueue *add_events(void)
{
	static struct manager_event list[] = {
		{ MANAGER_EVENT_MODULE, 2, "", "", "octavo.ko is there, 0 vGPUs" },
		{ MANAGER_EVENT_CREATED, 4, NULL, "0000:03:00.0", "amdgpu-octavo_1_2 created" },
		{ MANAGER_EVENT_OPENED, 9, NULL, "0000:03:00.0", "opened by process 4711 (render-01)" },
		{ MANAGER_EVENT_WORKER, 10, NULL, "0000:03:00.0", "worker 4720 serves session 1" },
		{ MANAGER_EVENT_HANG, 400, NULL, "0000:41:00.0",
		  "GPU work did not end in time: 1 render processes killed, the guest's context is lost; no turns for a while" },
		{ MANAGER_EVENT_WORKER_LOST, 731, NULL, "0000:41:00.0",
		  "worker lost after 8122 ms; a replacement starts in 100 ms and serves from the guest's next reset" },
	};
	static const unsigned int about[] = { 0, 0, 0, 0, 4, 6 };
	static GQueue events = G_QUEUE_INIT;

	for (unsigned int i = 0; events.length < G_N_ELEMENTS(list); i++) {
		list[i].time_us = BEGIN + list[i].time_us * 1000000;
		if (!list[i].uuid)
			list[i].uuid = (char *)guests[about[i]].uuid;
		g_queue_push_tail(&events, &list[i]);
	}
	return &events;
}

struct snapshot *fake_host(uint64_t now_ns, bool detailed)
{
	struct snapshot *snapshot = snapshot_new();

	snapshot->host = "gpu-host-1";
	snapshot->version = "0.1.0";
	snapshot->module = "loaded";
	snapshot->started_us = BEGIN;
	snapshot->time_us = BEGIN + (int64_t)(now_ns / 1000) - 1000000000;
	snapshot->now_ns = now_ns;
	snapshot->event_counts[MANAGER_EVENT_HANG] = 4;
	snapshot->event_counts[MANAGER_EVENT_WORKER_LOST] = 3;
	if (detailed)
		snapshot->events = add_events();
	for (unsigned int i = 0; i < 2; i++)
		add_gpu(snapshot, i, detailed);
	for (unsigned int i = 0; i < FAKE_HOST_VGPUS; i++)
		add_vgpu(snapshot, i);
	return snapshot;
}
