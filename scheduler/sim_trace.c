// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/sim.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define US 1000ull
#define MS 1000000ull

void sim_trace_finish(struct sim_trace *trace)
{
	free(trace->jobs);
	memset(trace, 0, sizeof(*trace));
}

int sim_trace_add_vgpu(struct sim_trace *trace, const char *name, uint32_t weight)
{
	struct sim_vgpu *vgpu;

	if (trace->n_vgpus == POLICY_MAX_VGPUS)
		return -ENOSPC;
	if (*name == '\0' || strlen(name) >= SIM_NAME_MAX)
		return -EINVAL;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
			return -EINVAL;
	if (weight == 0 || weight > POLICY_WHOLE)
		return -ERANGE;
	vgpu = &trace->vgpus[trace->n_vgpus];
	memcpy(vgpu->name, name, strlen(name) + 1);
	vgpu->weight = weight;
	return (int)trace->n_vgpus++;
}

int sim_trace_add_job(struct sim_trace *trace, const struct sim_job *job)
{
	if (job->vgpu >= trace->n_vgpus)
		return -EINVAL;
	if (trace->n_jobs == trace->capacity) {
		size_t capacity = trace->capacity ? trace->capacity * 2 : 256;
		struct sim_job *jobs = reallocarray(trace->jobs, capacity, sizeof(*jobs));

		if (jobs == NULL)
			return -ENOMEM;
		trace->jobs = jobs;
		trace->capacity = capacity;
	}
	trace->jobs[trace->n_jobs++] = *job;
	return 0;
}

static int trace_find(const struct sim_trace *trace, const char *name)
{
	for (uint32_t i = 0; i < trace->n_vgpus; i++)
		if (strcmp(trace->vgpus[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

static uint32_t parse_weight(const char *text)
{
	static const struct {
		const char *name;
		uint32_t weight;
	} profiles[] = { { "1_1", 1000 }, { "1_2", 500 }, { "1_4", 250 }, { "1_8", 125 } };
	unsigned int weight;
	char rest;

	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (strcmp(profiles[i].name, text) == 0)
			return profiles[i].weight;
	return sscanf(text, "%u%c", &weight, &rest) == 1 ? weight : 0;
}

/* One line without its comment. Longest legal times: a day, so that sums cannot overflow. */
static const char *trace_line(struct sim_trace *trace, const char *line)
{
	const uint64_t day_us = 86400ull * 1000 * 1000;
	struct sim_job job = { 0 };
	char first[64], name[64], third[64], fourth[64], extra[2];
	uint64_t at, length;
	unsigned int count = 1;
	int n, vgpu;

	n = sscanf(line, "%63s %63s %63s %63s %1s", first, name, third, fourth, extra);
	if (n <= 0)
		return NULL;
	if (strcmp(first, "vgpu") == 0) {
		if (n != 3)
			return "want: vgpu NAME WEIGHT";
		if (trace_find(trace, name) >= 0)
			return "this name is taken";
		if (sim_trace_add_vgpu(trace, name, parse_weight(third)) < 0)
			return "want a name of letters, digits, '.', '_', '-' (31 at most), a weight of 1-1000 or a profile, and 64 vGPUs at most";
		return NULL;
	}
	job.after = first[0] == '+';
	if (n < 3 || n > 4 || (n == 4 && !job.after) || !isdigit((unsigned char)first[job.after]) ||
	    sscanf(first + job.after, "%" SCNu64 "%1s", &at, extra) != 1 ||
	    !isdigit((unsigned char)third[0]) ||
	    sscanf(third, "%" SCNu64 "%1s", &length, extra) != 1 ||
	    (n == 4 && sscanf(fourth, "%u%1s", &count, extra) != 1))
		return "want: ARRIVAL NAME LENGTH, or +THINK NAME LENGTH [COUNT], times in microseconds";
	vgpu = trace_find(trace, name);
	if (vgpu < 0)
		return "no such vGPU: declare it before with 'vgpu NAME WEIGHT'";
	if (at > day_us || length > day_us || length == 0 || count == 0 || count > 10000000)
		return "times are at most a day, lengths and counts at least 1, counts at most 10000000";
	job.at_ns = at * US;
	job.length_ns = length * US;
	job.vgpu = (uint32_t)vgpu;
	while (count--)
		if (sim_trace_add_job(trace, &job) < 0)
			return "not enough memory";
	return NULL;
}

int sim_trace_read(struct sim_trace *trace, FILE *file, char *message, size_t size)
{
	char *line = NULL;
	size_t capacity = 0;
	unsigned int number = 0;
	const char *wrong = NULL;

	while (wrong == NULL && getline(&line, &capacity, file) >= 0) {
		number++;
		line[strcspn(line, "#\n")] = '\0';
		wrong = trace_line(trace, line);
	}
	if (wrong)
		snprintf(message, size, "line %u: found '%s': %s", number, line, wrong);
	else if (ferror(file))
		snprintf(message, size, "cannot read the trace");
	else if (trace->n_jobs == 0)
		snprintf(message, size, "found no submission in %u lines", number);
	free(line);
	return wrong || ferror(file) || trace->n_jobs == 0 ? -EINVAL : 0;
}

/* xorshift64*: the same numbers everywhere, which rand() does not promise */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static uint64_t draw_range(uint64_t *state, uint64_t least, uint64_t most)
{
	return least + draw(state) % (most - least + 1);
}

struct pattern {
	const char *name;
	int (*generate)(struct sim_trace *trace, uint64_t *state, uint64_t duration_ns);
};

/* A client that always has the next job think_ns after the last, jobs of least to most. */
static int add_loop(struct sim_trace *trace, uint64_t *state, int vgpu, uint64_t start_ns,
		    uint64_t think_ns, uint64_t least, uint64_t most, uint64_t duration_ns)
{
	uint64_t sum = start_ns;
	bool first = true;
	int err = vgpu < 0 ? vgpu : 0;

	while (err == 0 && sum < duration_ns) {
		struct sim_job job = {
			.at_ns = first ? start_ns : think_ns,
			.length_ns = draw_range(state, least, most),
			.vgpu = (uint32_t)vgpu,
			.after = !first,
		};

		first = false;
		sum += job.length_ns + think_ns;
		err = sim_trace_add_job(trace, &job);
	}
	return err;
}

static int generate_many_short(struct sim_trace *trace, uint64_t *state, uint64_t duration_ns)
{
	char name[SIM_NAME_MAX];
	int err = 0;

	for (int i = 0; i < 8 && err == 0; i++) {
		snprintf(name, sizeof(name), "short%d", i);
		err = add_loop(trace, state, sim_trace_add_vgpu(trace, name, 125), 0, 50 * US,
			       500 * US, 2 * MS, duration_ns);
	}
	return err;
}

static int generate_few_long(struct sim_trace *trace, uint64_t *state, uint64_t duration_ns)
{
	int err = add_loop(trace, state, sim_trace_add_vgpu(trace, "half", 500), 0, 100 * US,
			   20 * MS, 60 * MS, duration_ns);

	if (err == 0)
		err = add_loop(trace, state, sim_trace_add_vgpu(trace, "quarter", 250), 0, 100 * US,
			       20 * MS, 60 * MS, duration_ns);
	return err;
}

static int generate_bursty(struct sim_trace *trace, uint64_t *state, uint64_t duration_ns)
{
	char name[SIM_NAME_MAX];
	int err = add_loop(trace, state, sim_trace_add_vgpu(trace, "steady", 250), 0, 50 * US, MS,
			   5 * MS, duration_ns);

	for (int i = 0; i < 3 && err == 0; i++) {
		int vgpu;
		uint64_t at = 0;

		snprintf(name, sizeof(name), "burst%d", i);
		vgpu = sim_trace_add_vgpu(trace, name, 250);
		err = vgpu < 0 ? vgpu : 0;
		while (err == 0) {
			uint64_t n = draw_range(state, 4, 40);

			at += draw_range(state, 20 * MS, 300 * MS);
			if (at >= duration_ns)
				break;
			for (uint64_t j = 0; j < n && err == 0; j++) {
				struct sim_job job = {
					.at_ns = at,
					.length_ns = draw_range(state, 300 * US, 3 * MS),
					.vgpu = (uint32_t)vgpu,
				};

				err = sim_trace_add_job(trace, &job);
			}
		}
	}
	return err;
}

static int generate_lone(struct sim_trace *trace, uint64_t *state, uint64_t duration_ns)
{
	int err = add_loop(trace, state, sim_trace_add_vgpu(trace, "lone", 500), 0, 20 * US, MS,
			   3 * MS, duration_ns);

	if (err == 0)
		err = add_loop(trace, state, sim_trace_add_vgpu(trace, "newcomer", 500),
			       duration_ns / 2, 20 * US, MS, 3 * MS, duration_ns);
	return err;
}

static int generate_mixed(struct sim_trace *trace, uint64_t *state, uint64_t duration_ns)
{
	static const uint64_t lengths[8] = { 500 * US, MS, 2 * MS, 3 * MS, 5 * MS, 10 * MS, 20 * MS, 30 * MS };
	char name[SIM_NAME_MAX];
	int err = 0;

	for (int i = 0; i < 8 && err == 0; i++) {
		snprintf(name, sizeof(name), "eighth%d", i);
		err = add_loop(trace, state, sim_trace_add_vgpu(trace, name, 125), 0,
			       i % 2 ? 0 : 100 * US, lengths[i], lengths[i], duration_ns);
	}
	return err;
}

static const struct pattern patterns[] = {
	{ "many-short", generate_many_short },
	{ "few-long", generate_few_long },
	{ "bursty", generate_bursty },
	{ "lone-then-contended", generate_lone },
	{ "mixed", generate_mixed },
};

const char *sim_trace_pattern(unsigned int i)
{
	return i < sizeof(patterns) / sizeof(patterns[0]) ? patterns[i].name : NULL;
}

int sim_trace_generate(struct sim_trace *trace, const char *pattern, uint64_t seed,
		       uint64_t duration_ns)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x1234567;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (strcmp(patterns[i].name, pattern) == 0)
			return patterns[i].generate(trace, state ? &state : &(uint64_t){ 1 },
						    duration_ns);
	return -EINVAL;
}
