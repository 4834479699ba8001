// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/sim.h"

#include <inttypes.h>

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double part(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0.0;
}

/* Jain's index of what each vGPU got for its weight, over the vGPUs that got anything or wanted. */
static double jain(const struct sim_trace *trace, const struct sim_result *result)
{
	double sum = 0, squares = 0, n = 0;

	for (uint32_t i = 0; i < result->n_vgpus; i++) {
		double x = (double)result->vgpus[i].done_ns / trace->vgpus[i].weight;

		if (result->vgpus[i].wanted_ns == 0)
			continue;
		sum += x;
		squares += x * x;
		n++;
	}
	return squares > 0 ? sum * sum / (n * squares) : 1.0;
}

void sim_report_text(FILE *file, const struct sim_trace *trace, const struct sim_config *config,
		     const struct sim_result *result)
{
	fprintf(file, "policy %s, slice %.1f ms, %" PRIu64 " GPU%s, %.3f s of GPU time\n",
		policy_name(config->policy), ms(config->slice_ns), result->gpus,
		result->gpus == 1 ? "" : "s", ms(result->span_ns) / 1e3);
	fprintf(file, "%-16s %6s %8s %9s %10s %10s %10s\n", "vgpu", "weight", "share", "jobs",
		"wait p50", "wait p99", "wait max");
	for (uint32_t i = 0; i < result->n_vgpus; i++) {
		const struct sim_vgpu_result *vgpu = &result->vgpus[i];

		fprintf(file, "%-16s %6" PRIu32 " %7.2f%% %9" PRIu64 " %7.3f ms %7.3f ms %7.3f ms\n",
			trace->vgpus[i].name, trace->vgpus[i].weight,
			100 * part(vgpu->done_ns, result->span_ns), vgpu->jobs,
			ms(sim_histogram_quantile(&vgpu->waits, 0.50)),
			ms(sim_histogram_quantile(&vgpu->waits, 0.99)), ms(vgpu->waits.max_ns));
	}
	fprintf(file,
		"utilisation %.2f%% (%.2f%% of the time with work), idle holds %.2f%%, switches %" PRIu64
		", Jain index %.4f\n",
		100 * part(result->busy_ns, result->span_ns),
		100 * part(result->busy_ns, result->wanted_ns),
		100 * part(result->hold_ns, result->span_ns), result->switches, jain(trace, result));
}

/* Names hold no character that JSON or XML would need escaped: see sim_trace_add_vgpu(). */
void sim_report_json(FILE *file, const struct sim_trace *trace, const struct sim_config *config,
		     const struct sim_result *result)
{
	fprintf(file, "{\"policy\": \"%s\", \"slice_ns\": %" PRIu64 ", \"gpus\": %" PRIu64 ",\n",
		policy_name(config->policy), config->slice_ns, result->gpus);
	fprintf(file,
		" \"span_ns\": %" PRIu64 ", \"busy_ns\": %" PRIu64 ", \"wanted_ns\": %" PRIu64
		", \"hold_ns\": %" PRIu64 ", \"switches\": %" PRIu64 ",\n",
		result->span_ns, result->busy_ns, result->wanted_ns, result->hold_ns,
		result->switches);
	fprintf(file, " \"utilisation\": %.6f, \"jain\": %.6f,\n \"vgpus\": [",
		part(result->busy_ns, result->span_ns), jain(trace, result));
	for (uint32_t i = 0; i < result->n_vgpus; i++) {
		const struct sim_vgpu_result *vgpu = &result->vgpus[i];

		fprintf(file,
			"%s\n  {\"name\": \"%s\", \"weight\": %" PRIu32 ", \"share\": %.6f, \"jobs\": %" PRIu64
			", \"done_ns\": %" PRIu64 ", \"wait_p50_ns\": %" PRIu64
			", \"wait_p99_ns\": %" PRIu64 ", \"wait_max_ns\": %" PRIu64 "}",
			i ? "," : "", trace->vgpus[i].name, trace->vgpus[i].weight,
			part(vgpu->done_ns, result->span_ns), vgpu->jobs, vgpu->done_ns,
			sim_histogram_quantile(&vgpu->waits, 0.50),
			sim_histogram_quantile(&vgpu->waits, 0.99), vgpu->waits.max_ns);
	}
	fprintf(file, "\n ]}");
}
