// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/status.h"

#include <json-glib/json-glib.h>

static void status_string(JsonBuilder *builder, const char *name, const char *value)
{
	g_autofree char *valid = g_utf8_make_valid(value, -1);

	json_builder_set_member_name(builder, name);
	json_builder_add_string_value(builder, valid);
}

static void status_number(JsonBuilder *builder, const char *name, uint64_t value)
{
	json_builder_set_member_name(builder, name);
	json_builder_add_int_value(builder, (int64_t)value);
}

static void status_bool(JsonBuilder *builder, const char *name, bool value)
{
	json_builder_set_member_name(builder, name);
	json_builder_add_boolean_value(builder, value);
}

/* Slices have the vGPU's UUID as their name; it may be gone already. */
static int64_t status_vgpu_index(const GArray *vgpus, const char *uuid)
{
	for (unsigned int i = 0; i < vgpus->len; i++)
		if (g_str_equal(g_array_index(vgpus, struct snapshot_vgpu, i).uuid, uuid))
			return i;
	return -1;
}

static void status_slices(JsonBuilder *builder, const struct snapshot *snapshot,
			  const struct snapshot_gpu *gpu)
{
	json_builder_set_member_name(builder, "slices");
	json_builder_begin_array(builder);
	for (size_t i = 0; i < gpu->n_slices; i++) {
		const struct turn_slice *slice = &gpu->slices[i].slice;
		/* a slice that ended after the snapshot's time is one of now */
		uint64_t ago_ns = snapshot->now_ns - MIN(slice->begin_ns, snapshot->now_ns);

		if (ago_ns > slice->used_ns + STATUS_SPAN_MS * 1000000ULL)
			continue;
		json_builder_begin_array(builder);
		json_builder_add_int_value(builder,
					   status_vgpu_index(snapshot->vgpus, gpu->slices[i].name));
		json_builder_add_int_value(builder, (int64_t)(ago_ns / 1000));
		json_builder_add_int_value(builder, (int64_t)(slice->used_ns / 1000));
		json_builder_add_int_value(builder, (int64_t)(slice->overrun_ns / 1000));
		json_builder_end_array(builder);
	}
	json_builder_end_array(builder);
}

static void status_gpu(JsonBuilder *builder, const struct snapshot *snapshot,
		       const struct snapshot_gpu *gpu)
{
	json_builder_begin_object(builder);
	status_string(builder, "address", gpu->address);
	status_string(builder, "name", gpu->name);
	status_string(builder, "driver", gpu->driver);
	status_string(builder, "policy", gpu->policy);
	status_string(builder, "renderer", gpu->renderer);
	status_string(builder, "state", gpu_state_name(gpu->state));
	status_string(builder, "reason", gpu->reason);
	status_number(builder, "memory_bytes", gpu->memory_bytes);
	status_number(builder, "slice_us", gpu->slice_ns / 1000);
	status_number(builder, "eighths", OCTAVO_EIGHTHS);
	status_number(builder, "eighths_used", gpu->eighths_used);
	status_slices(builder, snapshot, gpu);
	json_builder_end_object(builder);
}

static void status_vgpu(JsonBuilder *builder, const struct snapshot_vgpu *vgpu)
{
	json_builder_begin_object(builder);
	status_string(builder, "uuid", vgpu->uuid);
	status_string(builder, "gpu", vgpu->gpu);
	status_string(builder, "type", vgpu->type);
	status_string(builder, "vm", vgpu->vm);
	status_string(builder, "state", vgpu_state_name(vgpu->state));
	status_number(builder, "eighths", vgpu->eighths);
	json_builder_set_member_name(builder, "share");
	json_builder_add_double_value(builder, (double)vgpu->promised / POLICY_WHOLE);
	status_number(builder, "busy_us", vgpu->arbiter.used_ns / 1000);
	status_number(builder, "wait_us", vgpu->arbiter.waited_ns / 1000);
	status_number(builder, "overrun_us", vgpu->arbiter.overrun_ns / 1000);
	status_number(builder, "memory_used_bytes", vgpu->arbiter.used_bytes);
	status_number(builder, "memory_limit_bytes", vgpu->memory_limit_bytes);
	status_number(builder, "turns", vgpu->arbiter.turns);
	status_number(builder, "hangs", vgpu->arbiter.kills);
	status_bool(builder, "waiting", vgpu->arbiter.waiting);
	status_bool(builder, "held_off", vgpu->arbiter.held_off);
	status_number(builder, "worker_restarts", vgpu->worker_restarts);
	status_string(builder, "last_error", vgpu->last_error);
	json_builder_end_object(builder);
}

static void status_events(JsonBuilder *builder, const GQueue *events)
{
	unsigned int count = 0;

	json_builder_set_member_name(builder, "events");
	json_builder_begin_array(builder);
	for (const GList *item = events ? events->tail : NULL; item && count < STATUS_EVENTS;
	     item = item->prev, count++) {
		const struct manager_event *event = item->data;

		json_builder_begin_object(builder);
		status_number(builder, "time_us", (uint64_t)event->time_us);
		status_string(builder, "event", manager_event_name(event->type));
		status_string(builder, "uuid", event->uuid);
		status_string(builder, "gpu", event->gpu);
		status_string(builder, "message", event->message);
		json_builder_end_object(builder);
	}
	json_builder_end_array(builder);
}

char *status_render(const struct snapshot *snapshot)
{
	g_autoptr(JsonBuilder) builder = json_builder_new_immutable();
	g_autoptr(JsonNode) root = NULL;

	json_builder_begin_object(builder);
	status_string(builder, "host", snapshot->host);
	status_string(builder, "version", snapshot->version);
	status_string(builder, "module", snapshot->module);
	status_number(builder, "time_us", (uint64_t)snapshot->time_us);
	status_number(builder, "started_us", (uint64_t)snapshot->started_us);
	status_number(builder, "now_us", snapshot->now_ns / 1000);
	json_builder_set_member_name(builder, "gpus");
	json_builder_begin_array(builder);
	for (unsigned int i = 0; i < snapshot->gpus->len; i++)
		status_gpu(builder, snapshot, &g_array_index(snapshot->gpus, struct snapshot_gpu, i));
	json_builder_end_array(builder);
	json_builder_set_member_name(builder, "vgpus");
	json_builder_begin_array(builder);
	for (unsigned int i = 0; i < snapshot->vgpus->len; i++)
		status_vgpu(builder, &g_array_index(snapshot->vgpus, struct snapshot_vgpu, i));
	json_builder_end_array(builder);
	status_events(builder, snapshot->events);
	json_builder_end_object(builder);
	root = json_builder_get_root(builder);
	return json_to_string(root, FALSE);
}
