// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shares: do time slices hold? Each case starts clients on the Vulkan driver under an arbiter and
 * computes from the work that they completed, never from the arbiter's own counters.
 *
 *	shares BUILD [--seconds=S] [--only=WORD] [--json=FILE] [--margin=M] [--no-gl]
 *
 * Exits 1 if a case misses its goal, which --margin widens (2: twice the tolerance).
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/player.h"

#define SLICE_MS 5.0
#define ROWS_MAX 48
#define PLAY_ROUNDS 2

struct row {
	char name[96];
	char goal[48];
	double ours, reference;
	bool ok;
};

struct bench {
	struct stage stage;
	double seconds;
	double margin;
	const char *only;
	bool gl;
	struct row rows[ROWS_MAX];
	int n_rows;
};

static void row(struct bench *bench, const char *name, double ours, double reference,
		const char *goal, bool ok)
{
	struct row *row = &bench->rows[bench->n_rows++];

	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->goal, sizeof(row->goal), "%s", goal);
	row->ours = ours;
	row->reference = reference;
	row->ok = ok;
	printf("%-58s %10.3f %10.3f  %-22s %s\n", name, ours, reference, goal, ok ? "ok" : "MISSED");
	fflush(stdout);
}

static void wrong(struct bench *bench, const char *name)
{
	char text[96];

	snprintf(text, sizeof(text), "%s: results", name);
	row(bench, text, 0, 1, "exact", false);
}

static void all_go(struct stage *stage, bool go)
{
	for (int i = 0; i < stage->n; i++)
		player_go(&stage->players[i], go);
}

/*
 * Each one's part of all work, in rounds: what its pieces take is measured before each, since a
 * machine that others use too is not the same from second to second.
 */
static void play(struct bench *bench, double seconds, double *parts)
{
	struct stage *stage = &bench->stage;
	double sum = 0;

	memset(parts, 0, PLAYERS_MAX * sizeof(*parts));
	for (int round = 0; round < PLAY_ROUNDS; round++) {
		all_go(stage, false);
		stage_sleep(0.1);
		for (int i = 0; i < stage->n; i++) {
			const struct player_config *config = &stage->players[i].config;
			bool known = false;

			for (int j = 0; j < i; j++)
				known |= stage->players[j].config.length_ms == config->length_ms &&
					 stage->players[j].config.gl == config->gl;
			if (!known)
				stage_measure(stage, config->length_ms, config->gl, 0.5);
		}
		all_go(stage, true);
		stage_sleep(0.3);
		for (int i = 0; i < stage->n; i++)
			player_mark(&stage->players[i]);
		stage_sleep(seconds / PLAY_ROUNDS);
		for (int i = 0; i < stage->n; i++)
			parts[i] += player_work_ms(&stage->players[i]);
	}
	for (int i = 0; i < stage->n; i++)
		sum += parts[i];
	for (int i = 0; i < stage->n; i++)
		parts[i] = sum > 0 ? parts[i] / sum : 0;
}

static void start(struct bench *bench, enum policy_kind policy, const struct player_config *configs,
		  int n)
{
	stage_arbiter(&bench->stage, policy, 0);
	for (int i = 0; i < n; i++)
		stage_player(&bench->stage, &configs[i]);
	for (int i = 0; i < n; i++)
		player_go(&bench->stage.players[i], true);
	stage_sleep(0.5);
}

static void stop(struct bench *bench, const char *name)
{
	if (!stage_clear(&bench->stage))
		wrong(bench, name);
}

struct pair {
	const char *name;
	struct player_config a, b;
};

/* Two busy clients, share of the first. */
static void case_pairs(struct bench *bench)
{
	static const struct pair pairs[] = {
		{ "pair 25/75, 1 ms both", { 250, 1, 1, 0, false }, { 750, 1, 1, 0, false } },
		{ "pair 50/50, 1 ms against 20 ms", { 500, 1, 1, 0, false }, { 500, 20, 1, 0, false } },
		{ "pair 75/25, 1 ms against 20 ms", { 750, 1, 1, 0, false }, { 250, 20, 1, 0, false } },
		{ "pair 25/75, 1 ms against 20 ms", { 250, 1, 1, 0, false }, { 750, 20, 1, 0, false } },
		{ "pair 10/90, 1 ms both", { 100, 1, 1, 0, false }, { 900, 1, 1, 0, false } },
		{ "pair 50/50, GL 5 ms against Vulkan 5 ms", { 500, 5, 1, 0, true }, { 500, 5, 1, 0, false } },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		double parts[PLAYERS_MAX], want = pairs[i].a.weight / 1000.0;
		const struct player_config configs[2] = { pairs[i].a, pairs[i].b };

		if ((configs[0].gl && !bench->gl) || (bench->only && !strstr(pairs[i].name, bench->only)))
			continue;
		start(bench, POLICY_ELASTIC, configs, 2);
		play(bench, bench->seconds, parts);
		row(bench, pairs[i].name, 100 * parts[0], 100 * want, "within 1 point",
		    fabs(parts[0] - want) <= 0.01 * bench->margin);
		stop(bench, pairs[i].name);
	}
}

/* Ungated and gated client take turns of half a second. */
static void interleave(struct player *plain, struct player *gated, double seconds,
		       double *plain_ms, double *gated_ms)
{
	*plain_ms = *gated_ms = 0;
	for (int round = 0; round < (int)(seconds / 0.5); round++) {
		for (int which = 0; which < 2; which++) {
			struct player *player = which ? gated : plain;

			player_go(player, true);
			stage_sleep(0.05);
			player_mark(player);
			stage_sleep(0.5);
			*(which ? gated_ms : plain_ms) += player_work_ms(player);
			player_go(player, false);
			stage_sleep(0.05);
		}
	}
}

static void case_cost(struct bench *bench)
{
	static const struct {
		const char *name;
		double length_ms;
		unsigned int depth;
		enum policy_kind policy;
		bool arbiter;
		double goal, tolerance;
	} cases[] = {
		{ "cost of an open gate, 1 ms, one at a time", 1, 1, POLICY_ELASTIC, false, 0.99, 0.01 },
		{ "cost of an open gate, 1 ms, 4 deep", 1, 4, POLICY_ELASTIC, false, 0.99, 0.01 },
		{ "elastic, a lone 1/4", 1, 4, POLICY_ELASTIC, true, 0.97, 0.03 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct player_config config = { 0, cases[i].length_ms, cases[i].depth, 0, false };
		double plain_ms, gated_ms;
		struct player *plain, *gated;
		char goal[32];

		if (bench->only && !strstr(cases[i].name, bench->only))
			continue;
		if (cases[i].arbiter) {
			stage_arbiter(&bench->stage, cases[i].policy, 0);
		} else {
			arbiter_destroy(bench->stage.arbiter);
			bench->stage.arbiter = NULL;
		}
		plain = stage_player(&bench->stage, &config);
		config.weight = 250;
		gated = stage_player(&bench->stage, &config);
		interleave(plain, gated, bench->seconds, &plain_ms, &gated_ms);
		snprintf(goal, sizeof(goal), "ratio at least %.2f", cases[i].goal);
		row(bench, cases[i].name, gated_ms, plain_ms, goal,
		    gated_ms / plain_ms >= 1 - (1 - cases[i].goal) * bench->margin);
		stop(bench, cases[i].name);
	}
}

static void case_fixed(struct bench *bench)
{
	struct player_config config = { 0, 1, 4, 0, false };
	double plain_ms = 0, gated_ms = 0, part;
	struct player *plain, *gated;

	if (bench->only && !strstr("fixed-share, a lone 1/4", bench->only))
		return;
	stage_arbiter(&bench->stage, POLICY_FIXED_SHARE, 0);
	plain = stage_player(&bench->stage, &config);
	config.weight = 250;
	gated = stage_player(&bench->stage, &config);
	/* longer spells: a spell begins with a full bucket of one slice, 1 % of half a second */
	for (int round = 0; round < 8; round++) {
		player_go(plain, true);
		stage_sleep(0.05);
		player_mark(plain);
		stage_sleep(bench->seconds / 32);
		plain_ms += player_work_ms(plain);
		player_go(plain, false);
		stage_sleep(0.05);
		player_go(gated, true);
		stage_sleep(0.3);
		player_mark(gated);
		stage_sleep(bench->seconds / 8);
		gated_ms += player_work_ms(gated);
		player_go(gated, false);
		stage_sleep(0.05);
	}
	part = gated_ms / (4 * plain_ms);
	row(bench, "fixed-share, a lone 1/4", 100 * part, 25, "25 % +- 1",
	    fabs(part - 0.25) <= 0.01 * bench->margin);
	stop(bench, "fixed-share, a lone 1/4");
}

static void case_eight(struct bench *bench)
{
	static const double lengths[8] = { 0.5, 1, 2, 4, 8, 12, 20, 30 };
	struct player_config configs[8];
	double parts[PLAYERS_MAX], sum = 0, squares = 0, jain;

	if (bench->only && !strstr("eight 1/8, 0.5-30 ms", bench->only))
		return;
	for (int i = 0; i < 8; i++)
		configs[i] = (struct player_config){ 125, lengths[i], i % 2 ? 8 : 1, 0, false };
	start(bench, POLICY_ELASTIC, configs, 8);
	play(bench, bench->seconds * 1.5, parts);
	for (int i = 0; i < 8; i++) {
		sum += parts[i];
		squares += parts[i] * parts[i];
	}
	jain = sum * sum / (8 * squares);
	row(bench, "eight 1/8, 0.5-30 ms, deep and single: Jain index", jain, 1, "at least 0.998",
	    jain >= 1 - 0.002 * bench->margin);
	stop(bench, "eight 1/8");
}

/* Alone for a while, then a second one: its share from 200 ms on, and everybody's longest wait. */
static void case_newcomer(struct bench *bench)
{
	const struct player_config config = { 500, 2, 2, 0, false };
	struct player *lone, *newcomer;
	double parts[PLAYERS_MAX], longest[2], p99;
	uint64_t from;

	if (bench->only && !strstr("newcomer", bench->only))
		return;
	stage_arbiter(&bench->stage, POLICY_ELASTIC, 0);
	lone = stage_player(&bench->stage, &config);
	newcomer = stage_player(&bench->stage, &config);
	player_go(lone, true);
	stage_sleep(bench->seconds * 3);
	from = lone->tally->n_latencies;
	player_go(newcomer, true);
	stage_sleep(0.2);
	player_mark(lone);
	player_mark(newcomer);
	stage_sleep(1.0);
	parts[0] = player_work_ms(lone);
	parts[1] = player_work_ms(newcomer);
	parts[1] /= parts[0] + parts[1];
	row(bench, "newcomer after a lone busy one: share from 200 ms on", 100 * parts[1], 50,
	    "within 2 points", fabs(parts[1] - 0.5) <= 0.02 * bench->margin);
	player_latency(lone, from, &longest[0], &p99);
	player_latency(newcomer, config.depth, &longest[1], &p99);
	for (int i = 0; i < 2; i++)
		/* what waits may be the second of two queued */
		row(bench, i ? "newcomer's longest wait, ms" : "lone one's longest wait then, ms",
		    longest[i] - 2 * config.length_ms, 4 * SLICE_MS + config.length_ms,
		    "4 slices + submission",
		    longest[i] - 2 * config.length_ms <=
			    (4 * SLICE_MS + config.length_ms) * bench->margin);
	stop(bench, "newcomer");
}

static void case_wake(struct bench *bench)
{
	const struct player_config configs[3] = { { 250, 2, 2, 0, false },
						  { 250, 2, 2, 0, false },
						  { 250, 1, 1, 50000, false } };
	double longest, p99, limit = 2 * (SLICE_MS + 2) + 2;
	uint64_t from;

	if (bench->only && !strstr("wake-up", bench->only))
		return;
	start(bench, POLICY_ELASTIC, configs, 3);
	/* the first submissions wait for the driver to build its shaders */
	from = bench->stage.players[2].tally->n_latencies;
	stage_sleep(bench->seconds);
	player_latency(&bench->stage.players[2], from, &longest, &p99);
	row(bench, "wake-up of an idle one, two busy: p99, ms", p99 - 1, limit,
	    "slices + submission", p99 - 1 <= limit * bench->margin);
	stop(bench, "wake-up");
}

/* Two busy clients against one without a gate: what switching costs. */
static void case_switch(struct bench *bench)
{
	const struct player_config plain_config = { 0, 1, 4, 0, false };
	const struct player_config config = { 500, 1, 4, 0, false };
	struct player *plain, *a, *b;
	double plain_ms = 0, gated_ms = 0, seconds = 0;
	struct arbiter_gpu_stats before, after;

	if (bench->only && !strstr("switching", bench->only))
		return;
	stage_arbiter(&bench->stage, POLICY_ELASTIC, 0);
	plain = stage_player(&bench->stage, &plain_config);
	a = stage_player(&bench->stage, &config);
	b = stage_player(&bench->stage, &config);
	arbiter_gpu_stats(bench->stage.arbiter, &before);
	for (int round = 0; round < (int)bench->seconds; round++) {
		player_go(plain, true);
		stage_sleep(0.05);
		player_mark(plain);
		stage_sleep(0.5);
		plain_ms += player_work_ms(plain);
		player_go(plain, false);
		stage_sleep(0.05);
		player_go(a, true);
		player_go(b, true);
		stage_sleep(0.05);
		player_mark(a);
		player_mark(b);
		stage_sleep(0.5);
		seconds += 0.5;
		gated_ms += player_work_ms(a) + player_work_ms(b);
		player_go(a, false);
		player_go(b, false);
		stage_sleep(0.05);
	}
	arbiter_gpu_stats(bench->stage.arbiter, &after);
	row(bench, "switching, two busy, slice 5 ms: work done, ms", gated_ms, plain_ms,
	    "under 2 % lost", gated_ms / plain_ms >= 1 - 0.02 * bench->margin);
	row(bench, "cost of one slice switch, us",
	    1e3 * (plain_ms - gated_ms) / (double)(after.switches - before.switches),
	    0, "(reported)", true);
	row(bench, "switches whose gate opened ahead, %",
	    1e2 * (double)(after.aheads - before.aheads) / (double)(after.switches - before.switches),
	    0, "(reported)", true);
	row(bench, "idle holds meanwhile, % of the time",
	    (double)(after.hold_idle_ns - before.hold_idle_ns) / 1e7 / seconds, 0, "(reported)", true);
	stop(bench, "switching");
}

/* The longest time that a vGPU had the GPU for in one turn, ms, of those in the log. */
static double longest_turn_ms(struct bench *bench, int vgpu)
{
	struct arbiter_slice slices[64];
	uint64_t cursor = 0, longest_ns = 0;
	size_t n;

	while ((n = arbiter_read_log(bench->stage.arbiter, &cursor, slices, 64)) > 0)
		for (size_t i = 0; i < n; i++)
			if ((int)slices[i].slice.vgpu == vgpu && slices[i].slice.used_ns > longest_ns)
				longest_ns = slices[i].slice.used_ns;
	return (double)longest_ns / 1e6;
}

static void case_deep(struct bench *bench)
{
	const struct player_config configs[2] = { { 500, 30, 100, 0, false }, { 500, 1, 1, 0, false } };
	double parts[PLAYERS_MAX], longest, p99, limit;
	uint64_t from;

	if (bench->only && !strstr("100 deep of 30 ms against single 1 ms", bench->only))
		return;
	/* no rounds: a pause would have to wait for all that is queued */
	stage_arbiter(&bench->stage, POLICY_ELASTIC, 0);
	for (int i = 0; i < 2; i++)
		stage_player(&bench->stage, &configs[i]);
	for (int i = 0; i < 2; i++)
		stage_measure(&bench->stage, configs[i].length_ms, false, 1);
	all_go(&bench->stage, true);
	stage_sleep(0.5);
	for (int i = 0; i < 2; i++)
		player_mark(&bench->stage.players[i]);
	from = bench->stage.players[1].tally->n_latencies;
	stage_sleep(bench->seconds);
	for (int i = 0; i < 2; i++)
		parts[i] = player_work_ms(&bench->stage.players[i]);
	parts[0] /= parts[0] + parts[1];
	row(bench, "100 deep of 30 ms against single 1 ms", 100 * parts[0], 50, "within 1 point",
	    fabs(parts[0] - 0.5) <= 0.01 * bench->margin);
	player_latency(&bench->stage.players[1], from, &longest, &p99);
	longest -= bench->stage.players[1].piece_ms;
	limit = bench->stage.players[0].piece_ms + SLICE_MS;
	row(bench, "the single one's longest wait, ms", longest, limit, "a submission + a turn",
	    longest <= limit * bench->margin);
	/* a software engine has slow moments, in which one submission outlasts that limit by itself */
	row(bench, "the deep one's longest turn, ms", longest_turn_ms(bench, bench->stage.players[0].id),
	    bench->stage.players[0].piece_ms, "(reported)", true);
	stop(bench, "deep");
}

static void write_json(const struct bench *bench, const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file) {
		perror(path);
		exit(2);
	}
	fputs("[\n", file);
	for (int i = 0; i < bench->n_rows; i++) {
		const struct row *at = &bench->rows[i];

		fprintf(file, "  {\"row\": \"%s\", \"ours\": %.4f, \"reference\": %.4f, \"ratio\": ",
			at->name, at->ours, at->reference);
		if (at->reference > 0)
			fprintf(file, "%.4f", at->ours / at->reference);
		else
			fputs("null", file);
		fprintf(file, ", \"goal\": \"%s\", \"ok\": %s}%s\n", at->goal,
			at->ok ? "true" : "false", i + 1 < bench->n_rows ? "," : "");
	}
	fputs("]\n", file);
	fclose(file);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seconds", required_argument, NULL, 's' }, { "only", required_argument, NULL, 'o' },
		{ "json", required_argument, NULL, 'j' },    { "margin", required_argument, NULL, 'm' },
		{ "no-gl", no_argument, NULL, 'g' },	     { 0 },
	};
	static struct bench bench = { .seconds = 10, .margin = 1, .gl = true };
	const char *json = NULL;
	bool ok = true;
	int opt;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (opt == 's')
			bench.seconds = atof(optarg);
		else if (opt == 'o')
			bench.only = optarg;
		else if (opt == 'j')
			json = optarg;
		else if (opt == 'm')
			bench.margin = atof(optarg);
		else if (opt == 'g')
			bench.gl = false;
		else
			return 2;
	}
	if (optind + 1 != argc || bench.seconds < 1 || bench.margin < 1) {
		fprintf(stderr, "want: shares BUILD [--seconds=S] [--only=WORD] [--json=FILE] [--margin=M] [--no-gl]\n");
		return 2;
	}
	stage_init(&bench.stage, argv[optind], bench.gl);
	printf("%-58s %10s %10s  %-22s\n", "case", "ours", "reference", "goal");
	case_cost(&bench);
	case_pairs(&bench);
	case_eight(&bench);
	case_fixed(&bench);
	case_newcomer(&bench);
	case_wake(&bench);
	case_switch(&bench);
	case_deep(&bench);
	stage_finish(&bench.stage);
	if (json)
		write_json(&bench, json);
	for (int i = 0; i < bench.n_rows; i++)
		ok &= bench.rows[i].ok;
	return ok ? 0 : 1;
}
