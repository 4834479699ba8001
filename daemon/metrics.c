// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/metrics.h"

#include <inttypes.h>

/* How an integer is written. Fractions are made of digits: no locale, nothing rounded. */
enum metrics_unit {
	METRICS_PLAIN,
	METRICS_NS,	/* as seconds */
	METRICS_WHOLE,	/* POLICY_WHOLE-ths, as a ratio */
};

#define METRICS_COUNTER	"counter"
#define METRICS_GAUGE	"gauge"

void metrics_label(GString *text, const char *name, const char *value)
{
	g_autofree char *valid = g_utf8_make_valid(value, -1);

	g_string_append_printf(text, "%s=\"", name);
	for (const char *c = valid; *c; c++) {
		if (*c == '\n') {
			g_string_append(text, "\\n");
			continue;
		}
		if (*c == '"' || *c == '\\')
			g_string_append_c(text, '\\');
		g_string_append_c(text, *c);
	}
	g_string_append_c(text, '"');
}

static void metrics_family(GString *text, const char *name, const char *type, const char *help)
{
	g_string_append_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_value(GString *text, enum metrics_unit unit, int64_t value)
{
	uint64_t amount = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	const char *sign = value < 0 ? "-" : "";

	switch (unit) {
	case METRICS_NS:
		g_string_append_printf(text, " %s%" PRIu64 ".%09" PRIu64 "\n", sign,
				       amount / 1000000000, amount % 1000000000);
		break;
	case METRICS_WHOLE:
		g_string_append_printf(text, " %s%" PRIu64 ".%03" PRIu64 "\n", sign,
				       amount / POLICY_WHOLE, amount % POLICY_WHOLE);
		break;
	default:
		g_string_append_printf(text, " %s%" PRIu64 "\n", sign, amount);
	}
}

/* A family whose values are a member of the snapshot's structures: its place and its size. */
struct metrics_field {
	const char *name;
	const char *type;
	const char *help;
	enum metrics_unit unit;
	size_t offset;
	size_t size;
};

#define METRICS_AT(type, member) G_STRUCT_OFFSET(type, member), G_SIZEOF_MEMBER(type, member)

static int64_t metrics_member(const void *structure, const struct metrics_field *field)
{
	const void *member = G_STRUCT_MEMBER_P(structure, field->offset);

	if (field->size == sizeof(bool))
		return *(const bool *)member;
	if (field->size == sizeof(uint32_t))
		return *(const uint32_t *)member;
	return *(const int64_t *)member;
}

/* ---- the host ---- */

static void metrics_host(const struct snapshot *snapshot, GString *text)
{
	static const char *const modules[] = { "loaded", "absent", "incompatible" };

	metrics_family(text, "octavo_build_info", METRICS_GAUGE, "Release of octavod; always 1.");
	g_string_append(text, "octavo_build_info{");
	metrics_label(text, "version", snapshot->version);
	g_string_append(text, "} 1\n");

	metrics_family(text, "octavo_start_time_seconds", METRICS_GAUGE,
		       "When octavod started, in seconds since the epoch.");
	g_string_append(text, "octavo_start_time_seconds");
	metrics_value(text, METRICS_NS, snapshot->started_us * 1000);

	metrics_family(text, "octavo_module_state", METRICS_GAUGE,
		       "State of the kernel module octavo.ko: 1 for the one it is in.");
	for (unsigned int i = 0; i < G_N_ELEMENTS(modules); i++)
		g_string_append_printf(text, "octavo_module_state{state=\"%s\"} %d\n", modules[i],
				       g_str_equal(snapshot->module, modules[i]));

	metrics_family(text, "octavo_events_total", METRICS_COUNTER,
		       "Events since octavod's start, as octavoctl log shows them.");
	for (unsigned int type = 0; type < MANAGER_EVENT_TYPES; type++)
		g_string_append_printf(text, "octavo_events_total{event=\"%s\"} %" PRIu64 "\n",
				       manager_event_name(type), snapshot->event_counts[type]);
}

/* ---- GPUs ---- */

#define METRICS_GPU(member) METRICS_AT(struct snapshot_gpu, member)

static const struct metrics_field gpu_fields[] = {
	{ "octavo_gpu_used_eighths", METRICS_GAUGE, "Eighths of the GPU that vGPUs have.",
	  METRICS_PLAIN, METRICS_GPU(eighths_used) },
	{ "octavo_gpu_vgpus", METRICS_GAUGE, "vGPUs that exist on the GPU.", METRICS_PLAIN,
	  METRICS_GPU(vgpus) },
	{ "octavo_gpu_memory_bytes", METRICS_GAUGE, "Device memory to share out; 0: not known.",
	  METRICS_PLAIN, METRICS_GPU(memory_bytes) },
	{ "octavo_gpu_slice_seconds", METRICS_GAUGE, "Length of a time slice.", METRICS_NS,
	  METRICS_GPU(slice_ns) },
	{ "octavo_gpu_slices_total", METRICS_COUNTER, "Time slices that have ended.", METRICS_PLAIN,
	  METRICS_GPU(arbiter.slices) },
	{ "octavo_gpu_switches_total", METRICS_COUNTER, "Turns that went to another vGPU.",
	  METRICS_PLAIN, METRICS_GPU(arbiter.switches) },
	{ "octavo_gpu_idle_hold_seconds_total", METRICS_COUNTER,
	  "Time that the GPU was held idle for the vGPU whose turn it was while others waited.",
	  METRICS_NS, METRICS_GPU(arbiter.hold_idle_ns) },
	{ "octavo_gpu_arbiter_realtime", METRICS_GAUGE,
	  "1 if the arbiter's thread has real-time priority.", METRICS_PLAIN,
	  METRICS_GPU(arbiter.realtime) },
};

/* What can be handed out; nothing while the GPU is not registered. */
static uint32_t metrics_capacity(const struct snapshot_gpu *gpu)
{
	return gpu->state == GPU_REGISTERED ? OCTAVO_EIGHTHS : 0;
}

static void metrics_gpu_info(const GArray *gpus, GString *text)
{
	metrics_family(text, "octavo_gpu_info", METRICS_GAUGE, "What the GPU is; always 1.");
	for (unsigned int i = 0; i < gpus->len; i++) {
		const struct snapshot_gpu *gpu = &g_array_index(gpus, struct snapshot_gpu, i);

		g_string_append(text, "octavo_gpu_info{");
		metrics_label(text, "gpu", gpu->address);
		metrics_label(text, ",name", gpu->name);
		metrics_label(text, ",driver", gpu->driver);
		metrics_label(text, ",policy", gpu->policy);
		metrics_label(text, ",renderer", gpu->renderer);
		g_string_append(text, "} 1\n");
	}
	metrics_family(text, "octavo_gpu_state", METRICS_GAUGE,
		       "State of the GPU: 1 for the one it is in.");
	for (unsigned int i = 0; i < gpus->len; i++) {
		const struct snapshot_gpu *gpu = &g_array_index(gpus, struct snapshot_gpu, i);

		for (unsigned int state = GPU_DISABLED; state <= GPU_REFUSED; state++) {
			g_string_append(text, "octavo_gpu_state{");
			metrics_label(text, "gpu", gpu->address);
			metrics_label(text, ",state", gpu_state_name(state));
			g_string_append_printf(text, "} %d\n", gpu->state == state);
		}
	}
	metrics_family(text, "octavo_gpu_capacity_eighths", METRICS_GAUGE,
		       "Eighths of the GPU that can be handed out: 8, or 0 while it is not registered.");
	for (unsigned int i = 0; i < gpus->len; i++) {
		const struct snapshot_gpu *gpu = &g_array_index(gpus, struct snapshot_gpu, i);

		g_string_append(text, "octavo_gpu_capacity_eighths{");
		metrics_label(text, "gpu", gpu->address);
		g_string_append_printf(text, "} %" PRIu32 "\n", metrics_capacity(gpu));
	}
	metrics_family(text, "octavo_gpu_available_vgpus", METRICS_GAUGE,
		       "vGPUs of each type that can still be created on the GPU.");
	for (unsigned int i = 0; i < gpus->len; i++) {
		const struct snapshot_gpu *gpu = &g_array_index(gpus, struct snapshot_gpu, i);
		uint32_t capacity = metrics_capacity(gpu);
		uint32_t left = capacity - MIN(gpu->eighths_used, capacity);

		for (uint32_t eighths = OCTAVO_EIGHTHS / 2; eighths; eighths /= 2) {
			g_string_append(text, "octavo_gpu_available_vgpus{");
			metrics_label(text, "gpu", gpu->address);
			metrics_label(text, ",type", snapshot_type_name(eighths));
			g_string_append_printf(text, "} %" PRIu32 "\n", left / eighths);
		}
	}
}

static void metrics_gpus(const GArray *gpus, GString *text)
{
	if (!gpus->len)
		return;
	metrics_gpu_info(gpus, text);
	for (unsigned int f = 0; f < G_N_ELEMENTS(gpu_fields); f++) {
		const struct metrics_field *field = &gpu_fields[f];

		metrics_family(text, field->name, field->type, field->help);
		for (unsigned int i = 0; i < gpus->len; i++) {
			const struct snapshot_gpu *gpu =
				&g_array_index(gpus, struct snapshot_gpu, i);

			g_string_append_printf(text, "%s{", field->name);
			metrics_label(text, "gpu", gpu->address);
			g_string_append_c(text, '}');
			metrics_value(text, field->unit, metrics_member(gpu, field));
		}
	}
}

/* ---- vGPUs ---- */

#define METRICS_VGPU(member) METRICS_AT(struct snapshot_vgpu, member)

static const struct metrics_field vgpu_fields[] = {
	{ "octavo_vgpu_share_ratio", METRICS_GAUGE,
	  "Part of the GPU's time that the policy promises to the vGPU; 0: none is promised.",
	  METRICS_WHOLE, METRICS_VGPU(promised) },
	{ "octavo_vgpu_busy_seconds_total", METRICS_COUNTER,
	  "GPU time charged to the vGPU since its VM opened it.", METRICS_NS,
	  METRICS_VGPU(arbiter.used_ns) },
	{ "octavo_vgpu_wait_seconds_total", METRICS_COUNTER,
	  "Time that the vGPU was throttled: it had work and its gate was closed.", METRICS_NS,
	  METRICS_VGPU(arbiter.waited_ns) },
	{ "octavo_vgpu_overrun_seconds_total", METRICS_COUNTER,
	  "Time that the vGPU's work ran past the end of its slices.", METRICS_NS,
	  METRICS_VGPU(arbiter.overrun_ns) },
	{ "octavo_vgpu_debt_seconds", METRICS_GAUGE,
	  "What the vGPU has had too much of the GPU; negative: too little.", METRICS_NS,
	  METRICS_VGPU(arbiter.debt_ns) },
	{ "octavo_vgpu_turns_total", METRICS_COUNTER, "Time slices that the vGPU has used.",
	  METRICS_PLAIN, METRICS_VGPU(arbiter.turns) },
	{ "octavo_vgpu_hangs_total", METRICS_COUNTER,
	  "Times that work of the vGPU did not end and was killed.", METRICS_PLAIN,
	  METRICS_VGPU(arbiter.kills) },
	{ "octavo_vgpu_held_off", METRICS_GAUGE,
	  "1 while the vGPU gets no turns because its work hung again and again.", METRICS_PLAIN,
	  METRICS_VGPU(arbiter.held_off) },
	{ "octavo_vgpu_waiting", METRICS_GAUGE, "1 while the vGPU has work that waits.",
	  METRICS_PLAIN, METRICS_VGPU(arbiter.waiting) },
	{ "octavo_vgpu_in_flight_submissions", METRICS_GAUGE,
	  "Submissions that are on the GPU and have not finished.", METRICS_PLAIN,
	  METRICS_VGPU(arbiter.in_flight) },
	{ "octavo_vgpu_render_processes", METRICS_GAUGE, "Processes that render for the vGPU.",
	  METRICS_PLAIN, METRICS_VGPU(arbiter.processes) },
	{ "octavo_vgpu_memory_limit_bytes", METRICS_GAUGE, "Device memory that the vGPU may use.",
	  METRICS_PLAIN, METRICS_VGPU(memory_limit_bytes) },
	{ "octavo_vgpu_memory_used_bytes", METRICS_GAUGE, "Device memory that the vGPU uses.",
	  METRICS_PLAIN, METRICS_VGPU(arbiter.used_bytes) },
	{ "octavo_vgpu_register_accesses_total", METRICS_COUNTER,
	  "Trapped accesses to BAR0 and configuration space.", METRICS_PLAIN,
	  METRICS_VGPU(counters.registers) },
	{ "octavo_vgpu_kicks_total", METRICS_COUNTER, "Notifications by the guest's driver.",
	  METRICS_PLAIN, METRICS_VGPU(counters.kicks) },
	{ "octavo_vgpu_interrupts_total", METRICS_COUNTER, "Interrupts sent to the guest.",
	  METRICS_PLAIN, METRICS_VGPU(counters.interrupts) },
	{ "octavo_vgpu_resets_total", METRICS_COUNTER, "Resets of the device.", METRICS_PLAIN,
	  METRICS_VGPU(counters.resets) },
	{ "octavo_vgpu_window_faults_total", METRICS_COUNTER, "Page faults served in the BAR window.",
	  METRICS_PLAIN, METRICS_VGPU(counters.window_faults) },
	{ "octavo_vgpu_window_mapped_bytes", METRICS_GAUGE, "BAR window that has something mapped.",
	  METRICS_PLAIN, METRICS_VGPU(counters.window_mapped) },
	{ "octavo_vgpu_guest_faults_total", METRICS_COUNTER,
	  "Page faults served in the guest-memory window.", METRICS_PLAIN,
	  METRICS_VGPU(counters.guest_faults) },
	{ "octavo_vgpu_guest_pinned_pages", METRICS_GAUGE, "Pages of the guest that are pinned.",
	  METRICS_PLAIN, METRICS_VGPU(counters.guest_pinned) },
	{ "octavo_vgpu_guest_errors_total", METRICS_COUNTER,
	  "Accesses to guest memory that could not be served.", METRICS_PLAIN,
	  METRICS_VGPU(counters.guest_errors) },
	{ "octavo_vgpu_workers_total", METRICS_COUNTER,
	  "Worker processes that the vGPU has had since its creation.", METRICS_PLAIN,
	  METRICS_VGPU(counters.workers) },
	{ "octavo_vgpu_worker_restarts_total", METRICS_COUNTER,
	  "Workers that were lost and replaced since octavod's start.", METRICS_PLAIN,
	  METRICS_VGPU(worker_restarts) },
};

static void metrics_vgpu_states(const GArray *vgpus, char *const *labels, GString *text)
{
	metrics_family(text, "octavo_vgpu_state", METRICS_GAUGE,
		       "State of the vGPU: 1 for the one it is in.");
	for (unsigned int i = 0; i < vgpus->len; i++) {
		const struct snapshot_vgpu *vgpu = &g_array_index(vgpus, struct snapshot_vgpu, i);

		for (uint32_t state = OCTAVO_VGPU_IDLE; state <= OCTAVO_VGPU_NEEDS_RESET; state++)
			g_string_append_printf(text, "octavo_vgpu_state{%s,state=\"%s\"} %d\n",
					       labels[i], vgpu_state_name(state),
					       vgpu->state == state);
	}
}

static char *metrics_vgpu_labels(const struct snapshot_vgpu *vgpu)
{
	GString *text = g_string_new(NULL);

	metrics_label(text, "uuid", vgpu->uuid);
	metrics_label(text, ",gpu", vgpu->gpu);
	metrics_label(text, ",type", vgpu->type);
	metrics_label(text, ",vm", vgpu->vm);
	return g_string_free(text, FALSE);
}

static void metrics_vgpus(const GArray *vgpus, GString *text)
{
	g_auto(GStrv) labels = NULL;

	if (!vgpus->len)
		return;
	labels = g_new0(char *, vgpus->len + 1);
	for (unsigned int i = 0; i < vgpus->len; i++)
		labels[i] = metrics_vgpu_labels(&g_array_index(vgpus, struct snapshot_vgpu, i));
	metrics_vgpu_states(vgpus, labels, text);
	for (unsigned int f = 0; f < G_N_ELEMENTS(vgpu_fields); f++) {
		const struct metrics_field *field = &vgpu_fields[f];

		metrics_family(text, field->name, field->type, field->help);
		for (unsigned int i = 0; i < vgpus->len; i++) {
			g_string_append_printf(text, "%s{%s}", field->name, labels[i]);
			metrics_value(text, field->unit,
				      metrics_member(&g_array_index(vgpus, struct snapshot_vgpu, i),
						     field));
		}
	}
}

void metrics_render(const struct snapshot *snapshot, GString *text)
{
	metrics_host(snapshot, text);
	metrics_gpus(snapshot->gpus, text);
	metrics_vgpus(snapshot->vgpus, text);
}
