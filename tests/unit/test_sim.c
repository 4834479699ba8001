// SPDX-License-Identifier: LGPL-2.1-or-later
/* The simulator, and through it the turns that the arbiter takes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/sim.h"
#include "tests/unit/suite.h"

#define US 1000ull
#define MS 1000000ull

static const struct sim_config base = {
	.policy = POLICY_ELASTIC,
	.slice_ns = 5 * MS,
	.hold_ns = TURN_HOLD_NS,
	.duration_ns = 10000 * MS,
	.bound = 1,
};

static int read_text(struct sim_trace *trace, const char *text, char *message, size_t size)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int err;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	err = sim_trace_read(trace, file, message, size);
	fclose(file);
	return err;
}

static void run_text(const char *text, const struct sim_config *config, struct sim_result *result)
{
	struct sim_trace trace = { 0 };
	char message[256] = "";

	CU_ASSERT_EQUAL_FATAL(read_text(&trace, text, message, sizeof(message)), 0);
	CU_ASSERT_EQUAL_FATAL(sim_run(&trace, config, 0, result), 0);
	sim_trace_finish(&trace);
}

static double share(const struct sim_result *result, uint32_t i)
{
	uint64_t sum = 0;

	for (uint32_t j = 0; j < result->n_vgpus; j++)
		sum += result->vgpus[j].done_ns;
	return (double)result->vgpus[i].done_ns / (double)sum;
}

static struct sim_result result;

static void test_reads_what_it_says(void)
{
	static const char *const bad[] = {
		"",
		"vgpu a 0\n0 a 5",
		"vgpu a 1_3\n0 a 5",
		"vgpu a\n0 a 5",
		"vgpu a 250\nvgpu a 250\n0 a 5",
		"vgpu a/b 250\n0 a/b 5",
		"0 a 5",
		"vgpu a 250\n0 a 0",
		"vgpu a 250\n-1 a 5",
		"vgpu a 250\n0 a 5 3",
		"vgpu a 250\n+0 a 5 0",
		"vgpu a 250\n+0 a 5 x",
		"vgpu a 250\n0 a 99999999999999999999",
		"vgpu a 250\n0 a 86400000001",
	};
	char message[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sim_trace trace = { 0 };

		message[0] = '\0';
		CU_ASSERT_EQUAL(read_text(&trace, bad[i][0] ? bad[i] : "\n", message, sizeof(message)),
				-EINVAL);
		CU_ASSERT(strlen(message) > 10);
		sim_trace_finish(&trace);
	}
	run_text("vgpu a 1_4 # comment\n\n10 a 5\n+20 a 5 2\n", &base, &result);
	CU_ASSERT_EQUAL(result.vgpus[0].jobs, 3);
	CU_ASSERT_EQUAL(result.vgpus[0].done_ns, 15 * US);
	CU_ASSERT_EQUAL(result.span_ns, (10 + 3 * 5 + 2 * 20) * US);
}

static void test_quarter_three_quarters(void)
{
	run_text("vgpu a 250\nvgpu b 750\n+0 a 1000 20000\n+0 b 1000 20000\n", &base, &result);
	CU_ASSERT_DOUBLE_EQUAL(share(&result, 0), 0.25, 0.01);
}

static void test_short_against_long(void)
{
	run_text("vgpu a 500\nvgpu b 500\n+0 a 1000 20000\n+0 b 20000 1000\n", &base, &result);
	CU_ASSERT_DOUBLE_EQUAL(share(&result, 0), 0.5, 0.01);
	run_text("vgpu a 100\nvgpu b 900\n+0 a 1000 20000\n+0 b 20000 1000\n", &base, &result);
	CU_ASSERT_DOUBLE_EQUAL(share(&result, 0), 0.1, 0.01);
}

/* A client with gaps between its submissions gets as much done as one without. */
static void test_gaps_cost_no_share(void)
{
	run_text("vgpu a 500\nvgpu b 500\n+50 a 1000 20000\n+0 b 20000 1000\n", &base, &result);
	CU_ASSERT_DOUBLE_EQUAL(share(&result, 0), 0.5, 0.01);
}

/* But gaps over the bound are its own: it cannot hold the GPU for nothing. */
static void test_large_gaps_are_charged(void)
{
	run_text("vgpu a 500\nvgpu b 500\n+1000 a 1000 20000\n+0 b 1000 20000\n", &base, &result);
	CU_ASSERT(share(&result, 0) < 0.40);
	CU_ASSERT(share(&result, 0) > 0.25);
}

static void test_fixed_share_alone(void)
{
	struct sim_config config = base;

	config.policy = POLICY_FIXED_SHARE;
	run_text("vgpu a 250\n+0 a 1000 20000\n", &config, &result);
	CU_ASSERT_DOUBLE_EQUAL((double)result.busy_ns / (double)result.span_ns, 0.25, 0.01);
	/* bursts with pauses longer than the idle hold do not slip past the share */
	run_text("vgpu a 250\n+2000 a 3000 20000\n", &config, &result);
	CU_ASSERT((double)result.busy_ns / (double)result.span_ns < 0.27);
}

static void test_elastic_alone(void)
{
	run_text("vgpu a 250\n+0 a 1000 20000\n", &base, &result);
	CU_ASSERT((double)result.busy_ns / (double)result.span_ns > 0.999);
	CU_ASSERT_EQUAL(result.switches, 0);
}

/* Idle clients that wake wait for the running slice and one submission, not longer. */
static void test_wake_up(void)
{
	run_text("vgpu a 250\nvgpu b 250\n+0 a 1000 20000\n+100000 b 1000 50\n", &base, &result);
	CU_ASSERT(result.vgpus[1].waits.max_ns <= 5 * MS + 1 * MS);
	CU_ASSERT(result.vgpus[1].jobs == 50);
}

/* 100 submissions of 30 ms deep against single ones of 1 ms. */
static void test_deep_against_single(void)
{
	char text[8192] = "vgpu deep 500\nvgpu single 500\n+0 single 1000 20000\n";
	size_t at = strlen(text);

	for (int i = 0; i < 300; i++)
		at += (size_t)sprintf(text + at, "0 deep 30000\n");
	run_text(text, &base, &result);
	CU_ASSERT_DOUBLE_EQUAL(share(&result, 0), 0.5, 0.01);
	CU_ASSERT(result.vgpus[1].waits.max_ns <= 35 * MS);
}

static void test_newcomer(void)
{
	struct sim_trace trace = { 0 };
	struct sim_config config = base;

	config.duration_ns = 2000 * MS;
	CU_ASSERT_EQUAL(sim_trace_generate(&trace, "lone-then-contended", 1, 2000 * MS), 0);
	CU_ASSERT_EQUAL(sim_run(&trace, &config, 100000, &result), 0);
	/* from 200 ms after its start on the newcomer has half; nobody waits over 4 slices */
	{
		uint64_t used[2] = { 0 };

		for (size_t i = 0; i < result.n_slices; i++)
			if (result.slices[i].begin_ns > 1200 * MS)
				used[result.slices[i].vgpu] += result.slices[i].used_ns;
		CU_ASSERT_DOUBLE_EQUAL((double)used[1] / (double)(used[0] + used[1]), 0.5, 0.01);
	}
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT(result.vgpus[i].waits.max_ns <= 4 * 5 * MS + 3 * MS);
	sim_result_finish(&result);
	sim_trace_finish(&trace);
}

static char *report(const char *pattern, uint64_t seed, enum policy_kind kind)
{
	struct sim_trace trace = { 0 };
	struct sim_config config = base;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	config.policy = kind;
	config.duration_ns = 500 * MS;
	CU_ASSERT_EQUAL_FATAL(sim_trace_generate(&trace, pattern, seed, 500 * MS), 0);
	CU_ASSERT_EQUAL_FATAL(sim_run(&trace, &config, 500, &result), 0);
	sim_report_text(file, &trace, &config, &result);
	sim_report_json(file, &trace, &config, &result);
	sim_svg(file, trace.vgpus, trace.n_vgpus, result.slices, result.n_slices, "a < b & c");
	fclose(file);
	sim_result_finish(&result);
	sim_trace_finish(&trace);
	return text;
}

static void test_deterministic(void)
{
	const char *pattern;

	for (unsigned int i = 0; (pattern = sim_trace_pattern(i)) != NULL; i++) {
		for (int kind = 0; kind < POLICY_KINDS; kind++) {
			char *one = report(pattern, 3, (enum policy_kind)kind);
			char *two = report(pattern, 3, (enum policy_kind)kind);
			char *other = report(pattern, 4, (enum policy_kind)kind);

			CU_ASSERT_STRING_EQUAL(one, two);
			/* a seed changes random patterns; "mixed" has nothing random */
			CU_ASSERT(strcmp(pattern, "mixed") == 0 || strcmp(one, other) != 0);
			CU_ASSERT_PTR_NOT_NULL(strstr(one, "a &#60; b &#38; c"));
			free(one);
			free(two);
			free(other);
		}
	}
	CU_ASSERT_EQUAL(sim_trace_generate(&(struct sim_trace){ 0 }, "none", 1, MS), -EINVAL);
}

static void test_histogram(void)
{
	static struct sim_histogram histogram;

	for (uint64_t ns = 0; ns < 100000; ns++)
		sim_histogram_add(&histogram, ns);
	CU_ASSERT_EQUAL(histogram.max_ns, 99999);
	CU_ASSERT_DOUBLE_EQUAL((double)sim_histogram_quantile(&histogram, 0.5), 50000, 3200);
	CU_ASSERT_DOUBLE_EQUAL((double)sim_histogram_quantile(&histogram, 0.99), 99000, 1000);
	sim_histogram_add(&histogram, UINT64_MAX);
	CU_ASSERT_EQUAL(sim_histogram_quantile(&histogram, 1.0), UINT64_MAX);
}

/* The watchdog speaks once per overrun, and again only after another period. */
static void test_watchdog(void)
{
	static struct turn turn;
	static struct turn_view views[POLICY_MAX_VGPUS];
	struct turn_action action;

	turn_init(&turn, 0);
	policy_add(&turn.policy, 500, 0);
	views[0] = (struct turn_view){ .waiting = true };
	turn_step(&turn, MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_OPEN);
	views[0] = (struct turn_view){ .busy = true, .first_ns = MS, .stuck_since_ns = MS };
	for (uint64_t now = 2 * MS; now < TURN_WATCHDOG_NS; now += 1000 * MS) {
		turn_step(&turn, now, views, &action);
		CU_ASSERT(action.act != TURN_KILL);
	}
	turn_step(&turn, TURN_WATCHDOG_NS + MS, views, &action);
	while (action.act == TURN_ENDED)
		turn_step(&turn, TURN_WATCHDOG_NS + MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_KILL);
	CU_ASSERT_EQUAL(action.vgpu, 0);
	turn_step(&turn, TURN_WATCHDOG_NS + 2 * MS, views, &action);
	CU_ASSERT(action.act != TURN_KILL);
}

/* The next gate opens while the last work of a turn still runs: the way there costs no GPU time. */
static void test_switch_is_hidden(void)
{
	struct sim_config config = base;

	config.switch_ns = 200 * US;
	run_text("vgpu a 500\nvgpu b 500\n+0 a 1000 20000\n+0 b 1000 20000\n", &config, &result);
	CU_ASSERT(result.switches > 1900);
	CU_ASSERT((double)result.busy_ns / (double)result.span_ns > 0.995);
	CU_ASSERT_DOUBLE_EQUAL(share(&result, 0), 0.5, 0.01);
}

/* Of two vGPUs that want the GPU the first had its slice; at 6 ms its gate closes, its work goes on. */
static void turn_of_first(struct turn *turn, struct turn_view *views, uint64_t ends_ns)
{
	struct turn_action action;

	memset(views, 0, POLICY_MAX_VGPUS * sizeof(views[0]));
	turn_init(turn, 0);
	policy_add(&turn->policy, 500, 0);
	policy_add(&turn->policy, 500, 0);
	views[0].waiting = views[1].waiting = true;
	turn_step(turn, 0, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_OPEN);
	CU_ASSERT_EQUAL(action.vgpu, 0);
	views[0] = (struct turn_view){ .busy = true, .first_ns = 1, .stuck_since_ns = 1,
				       .ends_ns = ends_ns };
	turn_step(turn, 6 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_CLOSE);
}

/* A gate that opened ahead of an end that does not come: its vGPU pays for what it does meanwhile. */
static void test_ahead_is_no_gift(void)
{
	static struct turn turn;
	static struct turn_view views[POLICY_MAX_VGPUS];
	struct turn_action action;

	turn_of_first(&turn, views, 8 * MS);
	turn_step(&turn, 6 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_WAIT);
	CU_ASSERT_EQUAL(action.deadline_ns, 8 * MS - TURN_LEAD_NS);
	turn_step(&turn, 8 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_OPEN);
	CU_ASSERT_EQUAL(action.vgpu, 1);
	views[1] = (struct turn_view){ .busy = true, .first_ns = 8 * MS, .stuck_since_ns = 8 * MS };
	turn_step(&turn, 8 * MS + TURN_LEAD_NS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_WAIT);
	CU_ASSERT_EQUAL(turn.policy.vgpus[1].used_ns, 0);
	turn_step(&turn, 18 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_WAIT);
	CU_ASSERT_EQUAL(turn.policy.vgpus[1].used_ns, 10 * MS - TURN_LEAD_NS);
	views[0] = (struct turn_view){ .idle_since_ns = 18 * MS };
	turn_step(&turn, 18 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_ENDED);
	CU_ASSERT_EQUAL(action.vgpu, 0);
	turn_step(&turn, 19 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_WAIT);
	CU_ASSERT_EQUAL(turn.policy.vgpus[1].used_ns, 11 * MS - TURN_LEAD_NS);
	turn_forget(&turn, 1);
	policy_remove(&turn.policy, 1);
	views[0].waiting = true;
	turn_step(&turn, 20 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_OPEN);
	CU_ASSERT_EQUAL(action.vgpu, 0);
}

/* The holder goes while the next gate is open already: the next has its turn. */
static void test_ahead_of_one_that_goes(void)
{
	static struct turn turn;
	static struct turn_view views[POLICY_MAX_VGPUS];
	struct turn_action action;

	turn_of_first(&turn, views, 6 * MS);
	turn_step(&turn, 6 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_OPEN);
	turn_forget(&turn, 0);
	policy_remove(&turn.policy, 0);
	views[0] = (struct turn_view){ 0 };
	views[1] = (struct turn_view){ .busy = true, .first_ns = 6 * MS, .stuck_since_ns = 6 * MS };
	turn_step(&turn, 7 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_OPEN);
	CU_ASSERT_EQUAL(action.vgpu, 1);
	turn_step(&turn, 9 * MS, views, &action);
	CU_ASSERT_EQUAL(action.act, TURN_WAIT);
	CU_ASSERT(turn.policy.vgpus[1].used_ns >= 2 * MS);
}

SUITE_RUN("sim",
	  { "traces: good lines are read, bad ones named", test_reads_what_it_says },
	  { "25/75 with 1 ms each", test_quarter_three_quarters },
	  { "1 ms against 20 ms, 50/50 and 10/90", test_short_against_long },
	  { "gaps between submissions cost no share", test_gaps_cost_no_share },
	  { "large gaps do", test_large_gaps_are_charged },
	  { "fixed-share, a lone 1/4", test_fixed_share_alone },
	  { "elastic, a lone 1/4 has all", test_elastic_alone },
	  { "an idle vGPU's first submission waits for one slice", test_wake_up },
	  { "100 deep of 30 ms against single 1 ms", test_deep_against_single },
	  { "a newcomer has its share within 200 ms", test_newcomer },
	  { "reports are the same for the same seed", test_deterministic },
	  { "histogram", test_histogram },
	  { "watchdog", test_watchdog },
	  { "two busy, a switch of 200 us is hidden", test_switch_is_hidden },
	  { "what is admitted ahead of its turn is charged in the end", test_ahead_is_no_gift },
	  { "a turn that follows one that is dropped", test_ahead_of_one_that_goes })
