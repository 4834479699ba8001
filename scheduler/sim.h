/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Simulator of one GPU: plays a trace through the arbiter's own turns and policies (turn.h) and
 * measures what each vGPU got. Deterministic: equal input gives equal output, bit for bit.
 * Functions return negative errno; nothing here is thread-safe.
 */
#ifndef OCTAVO_SCHEDULER_SIM_H
#define OCTAVO_SCHEDULER_SIM_H

#include <stddef.h>
#include <stdio.h>

#include "scheduler/turn.h"

#define SIM_NAME_MAX 40 /* a UUID and the NUL fit */

/* One submission of a trace. A vGPU's submissions run in their order in the trace. */
struct sim_job {
	uint64_t at_ns; /* arrival; with after: time from the end of the vGPU's previous job */
	uint64_t length_ns;
	uint32_t vgpu;
	bool after;
};

struct sim_vgpu {
	char name[SIM_NAME_MAX]; /* letters, digits, '.', '_', '-' */
	uint32_t weight;	 /* POLICY_WHOLE-ths */
};

struct sim_trace {
	struct sim_vgpu vgpus[POLICY_MAX_VGPUS];
	uint32_t n_vgpus;
	struct sim_job *jobs;
	size_t n_jobs;
	size_t capacity;
};

void sim_trace_finish(struct sim_trace *trace);
/* Index of the new vGPU; -ENOSPC, -EINVAL (name), -ERANGE (weight). */
int sim_trace_add_vgpu(struct sim_trace *trace, const char *name, uint32_t weight);
int sim_trace_add_job(struct sim_trace *trace, const struct sim_job *job);

/*
 * Read a trace. Lines, in microseconds, '#' begins a comment:
 *	vgpu NAME WEIGHT		weight 1-1000, or a profile: 1_2, 1_4, 1_8
 *	ARRIVAL NAME LENGTH		a submission that arrives at a time
 *	+THINK NAME LENGTH [COUNT]	COUNT (1) submissions, each THINK after the one before ended
 * On a bad line: -EINVAL and a message of at most size bytes that names the line.
 */
int sim_trace_read(struct sim_trace *trace, FILE *file, char *message, size_t size);

/*
 * Append a generated load to trace, duration_ns long, from a seed. Names: many-short, few-long,
 * bursty, lone-then-contended, mixed. -EINVAL for others. sim_trace_pattern(i) names them, NULL
 * past the last.
 */
int sim_trace_generate(struct sim_trace *trace, const char *pattern, uint64_t seed,
		       uint64_t duration_ns);
const char *sim_trace_pattern(unsigned int i);

/* Waiting times, in buckets of 1/16 octave: a quantile is at most 6.3 % too high, max is exact. */
#define SIM_HISTOGRAM_BUCKETS 1024
struct sim_histogram {
	uint64_t count[SIM_HISTOGRAM_BUCKETS];
	uint64_t total;
	uint64_t max_ns;
};

void sim_histogram_add(struct sim_histogram *histogram, uint64_t ns);
uint64_t sim_histogram_quantile(const struct sim_histogram *histogram, double quantile);

struct sim_config {
	enum policy_kind policy;
	uint64_t slice_ns;
	uint64_t hold_ns;
	uint64_t switch_ns;   /* from a gate's opening to its first admission */
	uint64_t duration_ns; /* stop then; 0: when all jobs are done */
	uint32_t bound;	      /* submissions in flight, at least 1 */
};

struct sim_vgpu_result {
	uint64_t done_ns;   /* GPU time of finished jobs */
	uint64_t wanted_ns; /* time during which it had work, waiting or running */
	uint64_t jobs;
	struct sim_histogram waits; /* from arrival to the start on the GPU */
};

struct sim_result {
	struct sim_vgpu_result vgpus[POLICY_MAX_VGPUS];
	uint32_t n_vgpus;
	uint64_t span_ns;   /* from 0 to the end of the simulation */
	uint64_t busy_ns;   /* the GPU worked */
	uint64_t wanted_ns; /* somebody had work */
	uint64_t hold_ns;   /* of that, lost to idle holds */
	uint64_t switches;
	uint64_t gpus; /* results that were added up */
	struct turn_slice *slices; /* the first n_slices, for the time line; NULL unless asked for */
	size_t n_slices;
	size_t max_slices;
};

/* max_slices > 0 records that many slices at most. The result is zeroed first. */
int sim_run(const struct sim_trace *trace, const struct sim_config *config, size_t max_slices,
	    struct sim_result *result);
/* Add from's figures to result's (same vGPUs); slices stay as they are. */
void sim_result_add(struct sim_result *result, const struct sim_result *from);
void sim_result_finish(struct sim_result *result);

/* Reports. The SVG is a time line of slices, one lane a vGPU. Errors show in ferror(file). */
void sim_report_text(FILE *file, const struct sim_trace *trace, const struct sim_config *config,
		     const struct sim_result *result);
void sim_report_json(FILE *file, const struct sim_trace *trace, const struct sim_config *config,
		     const struct sim_result *result);
void sim_svg(FILE *file, const struct sim_vgpu *vgpus, uint32_t n_vgpus,
	     const struct turn_slice *slices, size_t n_slices, const char *title);

#endif
