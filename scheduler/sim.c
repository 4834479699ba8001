// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A vGPU's jobs and how far they have come; the last three count jobs, so each is a next index. */
struct client {
	const struct sim_job **jobs;
	size_t n_jobs;
	size_t arrived;
	size_t admitted;
	size_t done;
	uint64_t next_arrival_ns; /* of jobs[arrived]; POLICY_NEVER: none, or not known yet */
	uint64_t *arrival_ns;	  /* of each job that has arrived */
	uint64_t admit_from_ns;	  /* the gate is open from then on; POLICY_NEVER: closed */
};

struct sim {
	const struct sim_config *config;
	struct sim_result *result;
	struct turn turn;
	struct turn_view views[POLICY_MAX_VGPUS];
	struct client clients[POLICY_MAX_VGPUS];
	uint32_t n_clients;
	uint64_t now_ns;
	/* the GPU's own queue, in order of admission; never more than two vGPUs' bounds */
	uint32_t queue[POLICY_MAX_VGPUS * 64];
	uint32_t queue_head, queue_length;
	uint64_t running_ends_ns; /* of the head */
};

#define QUEUE_SIZE (POLICY_MAX_VGPUS * 64)

void sim_histogram_add(struct sim_histogram *histogram, uint64_t ns)
{
	unsigned int bucket = (unsigned int)ns;

	if (ns >= 16) {
		unsigned int top = 63 - (unsigned int)__builtin_clzll(ns);

		bucket = 16 * (top - 3) + (unsigned int)((ns >> (top - 4)) & 15);
	}
	histogram->count[bucket]++;
	histogram->total++;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

uint64_t sim_histogram_quantile(const struct sim_histogram *histogram, double quantile)
{
	uint64_t rank = (uint64_t)(quantile * (double)histogram->total), seen = 0;

	if (histogram->total == 0)
		return 0;
	for (unsigned int i = 0; i < SIM_HISTOGRAM_BUCKETS; i++) {
		uint64_t end = i < 16 ? i : ((16ull + i % 16 + 1) << (i / 16 - 1)) - 1;

		seen += histogram->count[i];
		if (seen > rank)
			return end < histogram->max_ns ? end : histogram->max_ns;
	}
	return histogram->max_ns;
}

static void client_finish(struct client *client)
{
	free(client->jobs);
	free(client->arrival_ns);
}

static int client_init(struct client *client, const struct sim_trace *trace, uint32_t vgpu)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n_jobs; i++)
		n += trace->jobs[i].vgpu == vgpu;
	client->admit_from_ns = POLICY_NEVER;
	client->next_arrival_ns = POLICY_NEVER;
	client->jobs = calloc(n + 1, sizeof(client->jobs[0]));
	client->arrival_ns = calloc(n + 1, sizeof(client->arrival_ns[0]));
	if (client->jobs == NULL || client->arrival_ns == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < trace->n_jobs; i++)
		if (trace->jobs[i].vgpu == vgpu)
			client->jobs[client->n_jobs++] = &trace->jobs[i];
	if (n > 0)
		client->next_arrival_ns = client->jobs[0]->at_ns;
	return 0;
}

/* When jobs[arrived] comes: known at once, or only when the one before it is done. */
static void client_expect(struct client *client, uint64_t now_ns)
{
	const struct sim_job *job;

	client->next_arrival_ns = POLICY_NEVER;
	if (client->arrived == client->n_jobs)
		return;
	job = client->jobs[client->arrived];
	if (!job->after)
		client->next_arrival_ns = job->at_ns > now_ns ? job->at_ns : now_ns;
	else if (client->done == client->arrived)
		client->next_arrival_ns = now_ns + job->at_ns;
}

static void gpu_start(struct sim *sim)
{
	uint32_t vgpu = sim->queue[sim->queue_head];
	struct client *client = &sim->clients[vgpu];

	sim->running_ends_ns = sim->now_ns + client->jobs[client->done]->length_ns;
	sim_histogram_add(&sim->result->vgpus[vgpu].waits,
			  sim->now_ns - client->arrival_ns[client->done]);
}

static void gpu_finish(struct sim *sim)
{
	uint32_t vgpu = sim->queue[sim->queue_head];
	struct client *client = &sim->clients[vgpu];
	struct turn_view *view = &sim->views[vgpu];

	sim->result->vgpus[vgpu].done_ns += client->jobs[client->done]->length_ns;
	sim->result->vgpus[vgpu].jobs++;
	client->done++;
	view->stuck_since_ns = sim->now_ns;
	view->busy = client->done < client->admitted;
	if (!view->busy)
		view->idle_since_ns = sim->now_ns;
	if (client->next_arrival_ns == POLICY_NEVER)
		client_expect(client, sim->now_ns);
	sim->queue_head = (sim->queue_head + 1) % QUEUE_SIZE;
	sim->queue_length--;
	sim->running_ends_ns = POLICY_NEVER;
	if (sim->queue_length > 0)
		gpu_start(sim);
}

static void sim_admit(struct sim *sim, uint32_t vgpu)
{
	struct client *client = &sim->clients[vgpu];
	struct turn_view *view = &sim->views[vgpu];

	while (client->admit_from_ns <= sim->now_ns && client->admitted < client->arrived &&
	       client->admitted - client->done < sim->config->bound) {
		if (view->first_ns == 0)
			view->first_ns = sim->now_ns;
		if (!view->busy) {
			view->gaps_ns += sim->now_ns - view->idle_since_ns;
			view->stuck_since_ns = sim->now_ns;
		}
		view->busy = true;
		client->admitted++;
		sim->queue[(sim->queue_head + sim->queue_length++) % QUEUE_SIZE] = vgpu;
		if (sim->queue_length == 1)
			gpu_start(sim);
	}
	view->waiting = client->admitted < client->arrived;
}

/* All that happens at now_ns except for the arbiter. */
static void sim_events(struct sim *sim)
{
	bool again = true;

	while (again) {
		again = false;
		if (sim->running_ends_ns <= sim->now_ns) {
			gpu_finish(sim);
			again = true;
		}
		for (uint32_t i = 0; i < sim->n_clients; i++) {
			struct client *client = &sim->clients[i];

			while (client->next_arrival_ns <= sim->now_ns) {
				client->arrival_ns[client->arrived++] = sim->now_ns;
				client_expect(client, sim->now_ns);
				again = true;
			}
			sim_admit(sim, i);
		}
	}
}

static void sim_record(struct sim *sim, const struct turn_slice *slice)
{
	struct sim_result *result = sim->result;

	if (result->n_slices < result->max_slices && slice->used_ns > 0)
		result->slices[result->n_slices++] = *slice;
}

/* When each vGPU's admitted work ends, as far as it is next on the GPU: what an arbiter estimates. */
static void sim_expect_ends(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->n_clients; i++) {
		const struct client *client = &sim->clients[i];

		sim->views[i].ends_ns = 0;
		if (sim->queue_length == 0 || sim->queue[sim->queue_head] != i)
			continue;
		sim->views[i].ends_ns = sim->running_ends_ns;
		for (size_t job = client->done + 1; job < client->admitted; job++)
			sim->views[i].ends_ns += client->jobs[job]->length_ns;
	}
}

/* Let the arbiter act until it waits; returns its deadline. */
static uint64_t sim_arbiter(struct sim *sim)
{
	for (;;) {
		struct turn_action action;
		struct client *client;

		sim_expect_ends(sim);
		turn_step(&sim->turn, sim->now_ns, sim->views, &action);
		if (action.act == TURN_WAIT)
			return action.deadline_ns;
		client = &sim->clients[action.vgpu];
		if (action.act == TURN_OPEN) {
			client->admit_from_ns = sim->now_ns + sim->config->switch_ns;
			sim->views[action.vgpu].first_ns = 0;
			sim_events(sim);
		} else if (action.act == TURN_CLOSE) {
			client->admit_from_ns = POLICY_NEVER;
		} else if (action.act == TURN_ENDED) {
			sim_record(sim, &action.slice);
		}
		/* no TURN_KILL: a trace's job is as long as it says, nothing hangs */
	}
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t sim_next(const struct sim *sim, uint64_t deadline_ns)
{
	uint64_t next = min_u64(deadline_ns, sim->running_ends_ns);

	for (uint32_t i = 0; i < sim->n_clients; i++) {
		const struct client *client = &sim->clients[i];

		next = min_u64(next, client->next_arrival_ns);
		if (client->admit_from_ns > sim->now_ns && sim->views[i].waiting)
			next = min_u64(next, client->admit_from_ns);
	}
	return next;
}

static bool sim_done(const struct sim *sim)
{
	for (uint32_t i = 0; i < sim->n_clients; i++)
		if (sim->clients[i].done < sim->clients[i].n_jobs)
			return false;
	return true;
}

/* Time passes from now to next with everything as it is. */
static void sim_pass(struct sim *sim, uint64_t next_ns)
{
	uint64_t elapsed = next_ns - sim->now_ns;
	bool wanted = false;

	for (uint32_t i = 0; i < sim->n_clients; i++) {
		if (!sim->views[i].busy && !sim->views[i].waiting)
			continue;
		sim->result->vgpus[i].wanted_ns += elapsed;
		wanted = true;
	}
	if (wanted)
		sim->result->wanted_ns += elapsed;
	if (sim->queue_length > 0)
		sim->result->busy_ns += elapsed;
	sim->now_ns = next_ns;
}

int sim_run(const struct sim_trace *trace, const struct sim_config *config, size_t max_slices,
	    struct sim_result *result)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	int err = 0;

	memset(result, 0, sizeof(*result));
	if (sim == NULL)
		return -ENOMEM;
	if (config->bound < 1 || config->bound > 64) {
		err = -ERANGE;
		goto out;
	}
	sim->config = config;
	sim->result = result;
	sim->running_ends_ns = POLICY_NEVER;
	result->gpus = 1;
	result->n_vgpus = trace->n_vgpus;
	turn_init(&sim->turn, 0);
	sim->turn.hold_ns = config->hold_ns;
	err = policy_set_kind(&sim->turn.policy, config->policy, 0);
	if (err == 0)
		err = policy_set_slice(&sim->turn.policy, config->slice_ns);
	for (uint32_t i = 0; err == 0 && i < trace->n_vgpus; i++) {
		policy_add(&sim->turn.policy, trace->vgpus[i].weight, 0);
		sim->n_clients = i + 1;
		err = client_init(&sim->clients[i], trace, i);
	}
	if (err == 0 && max_slices > 0) {
		result->slices = calloc(max_slices, sizeof(result->slices[0]));
		result->max_slices = max_slices;
		err = result->slices ? 0 : -ENOMEM;
	}
	while (err == 0) {
		uint64_t next;

		sim_events(sim);
		next = sim_next(sim, sim_arbiter(sim));
		if (sim_done(sim) || next == POLICY_NEVER)
			break;
		if (config->duration_ns && next > config->duration_ns) {
			sim_pass(sim, config->duration_ns);
			break;
		}
		sim_pass(sim, next);
	}
	result->span_ns = sim->now_ns;
	result->switches = sim->turn.switches;
	result->hold_ns = sim->turn.hold_idle_ns;
out:
	for (uint32_t i = 0; i < sim->n_clients; i++)
		client_finish(&sim->clients[i]);
	free(sim);
	return err;
}

void sim_result_add(struct sim_result *result, const struct sim_result *from)
{
	if (result->gpus == 0)
		result->n_vgpus = from->n_vgpus;
	for (uint32_t i = 0; i < from->n_vgpus; i++) {
		struct sim_vgpu_result *to = &result->vgpus[i];
		const struct sim_vgpu_result *add = &from->vgpus[i];

		to->done_ns += add->done_ns;
		to->wanted_ns += add->wanted_ns;
		to->jobs += add->jobs;
		to->waits.total += add->waits.total;
		if (add->waits.max_ns > to->waits.max_ns)
			to->waits.max_ns = add->waits.max_ns;
		for (unsigned int j = 0; j < SIM_HISTOGRAM_BUCKETS; j++)
			to->waits.count[j] += add->waits.count[j];
	}
	result->span_ns += from->span_ns;
	result->busy_ns += from->busy_ns;
	result->wanted_ns += from->wanted_ns;
	result->hold_ns += from->hold_ns;
	result->switches += from->switches;
	result->gpus += from->gpus;
}

void sim_result_finish(struct sim_result *result)
{
	free(result->slices);
	result->slices = NULL;
	result->n_slices = 0;
}
