// SPDX-License-Identifier: LGPL-2.1-or-later
/* Policies over virtual time: examples, then properties over generated cases. */
#include <errno.h>
#include <string.h>

#include "scheduler/policy.h"
#include "tests/unit/suite.h"

#define MS 1000000ull
#define CASES 300

static uint64_t seed;

static uint64_t draw(uint64_t least, uint64_t most)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return least + seed % (most - least + 1);
}

static void test_limits(void)
{
	struct policy policy;

	policy_init(&policy, 0);
	CU_ASSERT_EQUAL(policy_set_slice(&policy, MS - 1), -ERANGE);
	CU_ASSERT_EQUAL(policy_set_slice(&policy, 30 * MS + 1), -ERANGE);
	CU_ASSERT_EQUAL(policy_set_slice(&policy, 30 * MS), 0);
	CU_ASSERT_EQUAL(policy_set_kind(&policy, POLICY_KINDS, 0), -EINVAL);
	CU_ASSERT_EQUAL(policy_add(&policy, 0, 0), -ERANGE);
	CU_ASSERT_EQUAL(policy_add(&policy, POLICY_WHOLE + 1, 0), -ERANGE);
	for (int i = 0; i < POLICY_MAX_VGPUS; i++)
		CU_ASSERT_EQUAL(policy_add(&policy, 125, 0), i);
	CU_ASSERT_EQUAL(policy_add(&policy, 125, 0), -ENOSPC);
	policy_remove(&policy, 7);
	CU_ASSERT_EQUAL(policy_add(&policy, 125, 0), 7);
	for (int kind = 0; kind < POLICY_KINDS; kind++)
		CU_ASSERT_EQUAL(policy_parse(policy_name((enum policy_kind)kind)), kind);
	CU_ASSERT_EQUAL(policy_parse("fair"), -EINVAL);
}

/* Everybody in set has work all the time and each turn takes length[i]. Returns the end. */
static uint64_t contend(struct policy *policy, const uint64_t *length, int n, uint64_t now,
			uint64_t end, uint64_t *used)
{
	while (now < end) {
		uint64_t retry;
		int next = policy_next(policy, now, &retry);

		if (next < 0) {
			CU_ASSERT_FATAL(retry != POLICY_NEVER && retry > now);
			now = retry;
			continue;
		}
		CU_ASSERT_FATAL(next < n);
		policy_begin(policy, next, now);
		now += length[next];
		used[next] += length[next];
		policy_charge(policy, next, length[next], now);
	}
	return now;
}

static double share(const uint64_t *used, int n, int i)
{
	uint64_t sum = 0;

	for (int j = 0; j < n; j++)
		sum += used[j];
	return (double)used[i] / (double)sum;
}

static void test_quarter_and_three(void)
{
	struct policy policy;
	const uint64_t length[2] = { 5 * MS, 20 * MS };
	uint64_t used[2] = { 0 };

	policy_init(&policy, 0);
	policy_add(&policy, 250, 0);
	policy_add(&policy, 750, 0);
	for (int i = 0; i < 2; i++)
		policy_set_working(&policy, i, true, 0);
	contend(&policy, length, 2, 0, 10000 * MS, used);
	CU_ASSERT_DOUBLE_EQUAL(share(used, 2, 0), 0.25, 0.003);
}

static void test_best_effort_is_round_robin(void)
{
	struct policy policy;
	uint64_t retry, now = 0;

	policy_init(&policy, 0);
	policy_set_kind(&policy, POLICY_BEST_EFFORT, 0);
	for (int i = 0; i < 3; i++) {
		policy_add(&policy, 125 * (uint32_t)(i + 1), 0);
		policy_set_working(&policy, i, true, 0);
	}
	for (int turn = 0; turn < 30; turn++) {
		int next = policy_next(&policy, now, &retry);

		CU_ASSERT_EQUAL(next, turn % 3);
		policy_begin(&policy, next, now);
		now += (uint64_t)(next + 1) * 7 * MS;
		policy_charge(&policy, next, (uint64_t)(next + 1) * 7 * MS, now);
	}
}

/* A fixed-share vGPU alone gets its share and not more. */
static void test_fixed_alone(void)
{
	struct policy policy;
	const uint64_t length[1] = { 5 * MS };
	uint64_t used[1] = { 0 };
	uint64_t end;

	policy_init(&policy, 0);
	policy_set_kind(&policy, POLICY_FIXED_SHARE, 0);
	policy_add(&policy, 250, 0);
	policy_set_working(&policy, 0, true, 0);
	end = contend(&policy, length, 1, 0, 10000 * MS, used);
	CU_ASSERT_DOUBLE_EQUAL((double)used[0] / (double)end, 0.25, 0.002);
}

static const uint64_t turns_5ms[2] = { 5 * MS, 5 * MS };

/* The first of two halves works alone from 0 to @end, in turns of 5 ms. Returns the end. */
static uint64_t work_alone(struct policy *policy, uint64_t end, uint64_t used[2])
{
	policy_init(policy, 0);
	policy_add(policy, 500, 0);
	policy_add(policy, 500, 0);
	policy_set_working(policy, 0, true, 0);
	return contend(policy, turns_5ms, 2, 0, end, used);
}

/* Busy alone for a minute: the newcomer finds no debt, and both take turns from then on. */
static void test_lone_owes_nothing(void)
{
	struct policy policy;
	uint64_t used[2] = { 0 };
	uint64_t now = work_alone(&policy, 60000 * MS, used);

	CU_ASSERT_EQUAL(used[1], 0);
	CU_ASSERT(policy_debt(&policy, 0) <= 0);
	policy_set_working(&policy, 1, true, now);
	memset(used, 0, sizeof(used));
	contend(&policy, turns_5ms, 2, now, now + 200 * MS, used);
	CU_ASSERT_DOUBLE_EQUAL(share(used, 2, 1), 0.5, 0.06);
}

/* Who slept long has one slice to its good, not the time it slept. */
static void test_sleeper_credit_is_capped(void)
{
	struct policy policy;
	uint64_t used[2] = { 0 };
	uint64_t now = work_alone(&policy, 10000 * MS, used);

	policy_set_working(&policy, 1, true, now);
	CU_ASSERT(policy_debt(&policy, 1) >= -(int64_t)(2 * 5 * MS));
}

/* Debt fades while the GPU is idle. */
static void test_idle_gpu_pays_debt(void)
{
	struct policy policy;

	policy_init(&policy, 0);
	policy_add(&policy, 500, 0);
	policy_add(&policy, 500, 0);
	policy_set_working(&policy, 0, true, 0);
	policy_set_working(&policy, 1, true, 0);
	policy_begin(&policy, 0, 0);
	policy_charge(&policy, 0, 100 * MS, 100 * MS);
	CU_ASSERT_EQUAL(policy_debt(&policy, 0), (int64_t)(200 * MS));
	policy_set_working(&policy, 0, false, 100 * MS);
	policy_set_working(&policy, 1, false, 100 * MS);
	policy_set_working(&policy, 0, true, 400 * MS);
	CU_ASSERT(policy_debt(&policy, 0) <= 0);
}

static void test_hold_off(void)
{
	struct policy policy;
	uint64_t retry;

	policy_init(&policy, 0);
	policy_add(&policy, 500, 0);
	policy_add(&policy, 500, 0);
	policy_set_working(&policy, 0, true, 0);
	policy_hold_off(&policy, 0, 50 * MS);
	CU_ASSERT_EQUAL(policy_next(&policy, MS, &retry), -1);
	CU_ASSERT_EQUAL(retry, 50 * MS);
	policy_set_working(&policy, 1, true, MS);
	CU_ASSERT_EQUAL(policy_next(&policy, MS, &retry), 1);
	policy_charge(&policy, 1, 40 * MS, 41 * MS);
	CU_ASSERT_EQUAL(policy_debt(&policy, 1), 0);
	CU_ASSERT_EQUAL(policy_next(&policy, 50 * MS, &retry), 0);
}

/* A generated load: each vGPU works and sleeps at random; turns take random times. */
struct load {
	struct policy policy;
	uint64_t now;
	uint64_t used[POLICY_MAX_VGPUS];
	uint64_t work[POLICY_MAX_VGPUS]; /* GPU time it still wants */
	uint64_t waits_since[POLICY_MAX_VGPUS];
	uint64_t longest_wait;
	uint64_t log; /* hash of all decisions */
	int n;
	uint64_t weights;
};

static void load_init(struct load *load, enum policy_kind kind)
{
	memset(load, 0, sizeof(*load));
	policy_init(&load->policy, 0);
	policy_set_kind(&load->policy, kind, 0);
	policy_set_slice(&load->policy, draw(MS, 30 * MS));
	load->n = (int)draw(1, 8);
	for (int i = 0; i < load->n; i++) {
		static const uint32_t weights[] = { 125, 250, 500 };
		uint32_t weight = weights[draw(0, 2)];

		load->weights += weight;
		policy_add(&load->policy, weight, 0);
	}
}

static void load_wake(struct load *load)
{
	for (int i = 0; i < load->n; i++) {
		if (load->work[i] || draw(0, 3))
			continue;
		load->work[i] = draw(1, 200) * MS;
		load->waits_since[i] = load->now;
		policy_set_working(&load->policy, i, true, load->now);
	}
}

/* One turn. Checks that hold for all policies are made here. */
static void load_turn(struct load *load, bool fixed)
{
	struct policy *policy = &load->policy;
	uint64_t retry, length;
	bool work = false;
	int next = policy_next(policy, load->now, &retry);

	for (int i = 0; i < load->n; i++)
		work |= load->work[i] > 0;
	if (next < 0) {
		/* work conservation: nobody to run means nobody with work, but for fixed shares */
		CU_ASSERT_FATAL(!work || fixed);
		CU_ASSERT_FATAL(!work || retry != POLICY_NEVER);
		load->now = work ? retry : load->now + draw(1, 20) * MS;
		return;
	}
	CU_ASSERT_FATAL(load->work[next] > 0);
	policy_begin(policy, next, load->now);
	if (load->now - load->waits_since[next] > load->longest_wait)
		load->longest_wait = load->now - load->waits_since[next];
	length = draw(0, 9) ? draw(1, policy->slice_ns) : draw(1, 60 * MS);
	if (length > load->work[next])
		length = load->work[next];
	load->now += length;
	load->work[next] -= length;
	load->used[next] += length;
	load->waits_since[next] = load->now;
	policy_charge(policy, next, length, load->now);
	if (load->work[next] == 0)
		policy_set_working(policy, next, false, load->now);
	load->log = (load->log ^ (uint64_t)next ^ length) * UINT64_C(1099511628211);
	for (int i = 0; i < load->n; i++) {
		int64_t credit = (int64_t)(policy->slice_ns * POLICY_WHOLE /
					   policy->ops->weight(policy, i));

		/* bounded debt; credit is bounded for those who wake, waiting earns more */
		CU_ASSERT_FATAL(policy_debt(policy, i) <= POLICY_DEBT_NS);
		CU_ASSERT_FATAL(!policy->vgpus[i].working || policy_debt(policy, i) >= -credit);
	}
}

static uint64_t load_run(uint64_t first, enum policy_kind kind, int turns, uint64_t *longest_wait)
{
	struct load load;

	seed = first;
	load_init(&load, kind);
	for (int turn = 0; turn < turns; turn++) {
		load_wake(&load);
		load_turn(&load, kind == POLICY_FIXED_SHARE);
	}
	*longest_wait = load.longest_wait;
	return load.log;
}

static void test_property_work_debt_starvation(void)
{
	for (uint64_t i = 1; i <= CASES; i++) {
		uint64_t wait;

		load_run(i * 7919, (enum policy_kind)(i % POLICY_KINDS), 2000, &wait);
		/*
		 * No starvation. The most that can go before: everybody else's whole debt span
		 * (one second of full GPU in virtual time) plus their turns of at most 60 ms.
		 */
		CU_ASSERT_FATAL(wait <= 8 * (1000 + 60) * MS);
	}
}

static void test_property_same_trace_same_result(void)
{
	for (uint64_t i = 1; i <= CASES; i++) {
		enum policy_kind kind = (enum policy_kind)(i % POLICY_KINDS);
		uint64_t wait;

		CU_ASSERT_EQUAL_FATAL(load_run(i * 104729, kind, 300, &wait),
				      load_run(i * 104729, kind, 300, &wait));
	}
	/* and the hash tells different loads apart, so the line above can fail */
	CU_ASSERT_NOT_EQUAL(load_run(1, POLICY_ELASTIC, 300, &(uint64_t){ 0 }),
			    load_run(2, POLICY_ELASTIC, 300, &(uint64_t){ 0 }));
}

/* With everybody busy, shares converge to the weights whatever the lengths of turns. */
static void test_property_convergence(void)
{
	static const enum policy_kind kinds[] = { POLICY_ELASTIC, POLICY_FIXED_SHARE,
						  POLICY_EQUAL_SHARE };

	for (uint64_t i = 1; i <= CASES; i++) {
		struct load load;
		uint64_t length[8];
		enum policy_kind kind = kinds[i % 3];

		seed = i * 15485863;
		load_init(&load, kind);
		for (int j = 0; j < load.n; j++) {
			length[j] = draw(MS / 2, 30 * MS);
			policy_set_working(&load.policy, j, true, 0);
		}
		contend(&load.policy, length, load.n, 0, 60000 * MS, load.used);
		for (int j = 0; j < load.n; j++) {
			double want = 1.0 / load.n;

			if (kind != POLICY_EQUAL_SHARE)
				want = load.policy.vgpus[j].weight / (double)load.weights;
			CU_ASSERT_DOUBLE_EQUAL_FATAL(share(load.used, load.n, j), want, 0.006);
		}
	}
}

/* A century of turns later the arithmetic still works. */
static void test_rebase(void)
{
	struct policy policy;
	const uint64_t length[2] = { 5 * MS, 5 * MS };
	uint64_t used[2] = { 0 };
	uint64_t now = 0;

	policy_init(&policy, 0);
	policy_add(&policy, 100, 0);
	policy_add(&policy, 300, 0);
	for (int i = 0; i < 2; i++)
		policy_set_working(&policy, i, true, 0);
	for (int day = 0; day < 36500; day++) {
		now += 86400000 * MS;
		policy_charge(&policy, day % 2, 86400000 * MS / 1000, now);
	}
	CU_ASSERT(policy_debt(&policy, 0) <= POLICY_DEBT_NS);
	contend(&policy, length, 2, now, now + 20000 * MS, used);
	CU_ASSERT_DOUBLE_EQUAL(share(used, 2, 0), 0.25, 0.01);
}

SUITE_RUN("policy",
	  { "bad slices, kinds and weights are refused", test_limits },
	  { "25/75 holds with turns of 5 and 20 ms", test_quarter_and_three },
	  { "best-effort goes round", test_best_effort_is_round_robin },
	  { "fixed-share keeps a lone 1/4 at 25 %", test_fixed_alone },
	  { "a lone busy vGPU owes nothing to a newcomer", test_lone_owes_nothing },
	  { "a sleeper's credit is one slice", test_sleeper_credit_is_capped },
	  { "an idle GPU pays debts", test_idle_gpu_pays_debt },
	  { "who is held off gets no turn and stops nobody", test_hold_off },
	  { "property: work conservation, bounded debt, no starvation",
	    test_property_work_debt_starvation },
	  { "property: equal traces, equal results", test_property_same_trace_same_result },
	  { "property: shares converge", test_property_convergence },
	  { "virtual time can be rebased", test_rebase })
