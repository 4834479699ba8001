// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavo-sim: what each vGPU would get, before anybody gets it. See octavo-sim(1). */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/sim.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SVG };

struct options {
	struct sim_config config;
	const char *pattern;
	const char *file;
	const char *log;
	enum format format;
	unsigned long gpus;
	unsigned long seed;
	bool all_policies;
};

static const char usage[] =
	"Usage: octavo-sim [OPTION...] [TRACE]\n"
	"Replay a trace of GPU submissions (or a generated one) through Octavo's scheduler.\n\n"
	"  -g, --generate=PATTERN  many-short, few-long, bursty, lone-then-contended, mixed\n"
	"  -p, --policy=POLICY     elastic, fixed-share, equal-share, best-effort (default: all)\n"
	"  -s, --slice=MS          1 to 30 (default 5)\n"
	"      --hold=MS           idle hold (default 1.5)\n"
	"      --switch=US         time that a switch of vGPUs costs (default 0)\n"
	"      --bound=N           submissions in flight, 1 to 64 (default 1)\n"
	"  -d, --duration=S        length of the generated load, end of the replay (default 10)\n"
	"  -n, --gpus=N            simulate N GPUs, each with its own seed (default 1)\n"
	"      --seed=N            first seed (default 1)\n"
	"  -f, --format=FORMAT     text, json, svg (a time line of the first GPU)\n"
	"      --log=FILE          draw the time line of a slice log (octavo-run --log) instead\n"
	"  -h, --help              this text\n";

static int fail(const char *what, const char *found, const char *todo)
{
	fprintf(stderr, "octavo-sim: %s '%s': %s\n", what, found, todo);
	return 2;
}

static bool number(const char *text, double least, double most, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	return end != text && *end == '\0' && errno == 0 && *value >= least && *value <= most;
}

static int parse(int argc, char **argv, struct options *options)
{
	enum { OPT_HOLD = 256, OPT_SWITCH, OPT_BOUND, OPT_SEED, OPT_LOG };
	static const struct option longs[] = {
		{ "generate", required_argument, NULL, 'g' },
		{ "policy", required_argument, NULL, 'p' },
		{ "slice", required_argument, NULL, 's' },
		{ "hold", required_argument, NULL, OPT_HOLD },
		{ "switch", required_argument, NULL, OPT_SWITCH },
		{ "bound", required_argument, NULL, OPT_BOUND },
		{ "duration", required_argument, NULL, 'd' },
		{ "gpus", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, OPT_SEED },
		{ "format", required_argument, NULL, 'f' },
		{ "log", required_argument, NULL, OPT_LOG },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	double value;
	int opt, kind;

	while ((opt = getopt_long(argc, argv, "g:p:s:d:n:f:h", longs, NULL)) >= 0) {
		switch (opt) {
		case 'g':
			options->pattern = optarg;
			break;
		case 'p':
			kind = policy_parse(optarg);
			if (kind < 0)
				return fail("unknown policy", optarg, "see --help");
			options->config.policy = (enum policy_kind)kind;
			options->all_policies = false;
			break;
		case 's':
			if (!number(optarg, 1, 30, &value))
				return fail("slice", optarg, "want 1 to 30 (ms)");
			options->config.slice_ns = (uint64_t)(value * 1e6);
			break;
		case OPT_HOLD:
			if (!number(optarg, 0, 100, &value))
				return fail("hold", optarg, "want 0 to 100 (ms)");
			options->config.hold_ns = (uint64_t)(value * 1e6);
			break;
		case OPT_SWITCH:
			if (!number(optarg, 0, 100000, &value))
				return fail("switch", optarg, "want 0 to 100000 (us)");
			options->config.switch_ns = (uint64_t)(value * 1e3);
			break;
		case OPT_BOUND:
			if (!number(optarg, 1, 64, &value))
				return fail("bound", optarg, "want 1 to 64");
			options->config.bound = (uint32_t)value;
			break;
		case 'd':
			if (!number(optarg, 0.001, 86400, &value))
				return fail("duration", optarg, "want 0.001 to 86400 (s)");
			options->config.duration_ns = (uint64_t)(value * 1e9);
			break;
		case 'n':
			if (!number(optarg, 1, 1e6, &value))
				return fail("gpus", optarg, "want 1 to 1000000");
			options->gpus = (unsigned long)value;
			break;
		case OPT_SEED:
			if (!number(optarg, 0, 1e15, &value))
				return fail("seed", optarg, "want a whole number");
			options->seed = (unsigned long)value;
			break;
		case 'f':
			if (strcmp(optarg, "text") == 0)
				options->format = FORMAT_TEXT;
			else if (strcmp(optarg, "json") == 0)
				options->format = FORMAT_JSON;
			else if (strcmp(optarg, "svg") == 0)
				options->format = FORMAT_SVG;
			else
				return fail("format", optarg, "want text, json or svg");
			break;
		case OPT_LOG:
			options->log = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			return 2;
		}
	}
	if (optind < argc)
		options->file = argv[optind++];
	if (optind < argc)
		return fail("unexpected argument", argv[optind], "one trace at a time");
	if (!options->file && !options->pattern && !options->log) {
		fputs(usage, stderr);
		return 2;
	}
	if (options->file && options->pattern)
		return fail("both a trace and a pattern", options->pattern, "give one of them");
	return 0;
}

static int load(const struct options *options, unsigned long seed, struct sim_trace *trace)
{
	char message[512] = "";
	FILE *file;
	int err;

	if (options->pattern) {
		err = sim_trace_generate(trace, options->pattern, seed, options->config.duration_ns);
		if (err)
			return fail("pattern", options->pattern,
				    err == -EINVAL ? "see --help for the names" : strerror(-err));
		return 0;
	}
	file = strcmp(options->file, "-") == 0 ? stdin : fopen(options->file, "re");
	if (file == NULL)
		return fail("cannot open", options->file, strerror(errno));
	err = sim_trace_read(trace, file, message, sizeof(message));
	if (file != stdin)
		fclose(file);
	return err ? fail("trace", options->file, message) : 0;
}

static int simulate(const struct options *options, const struct sim_config *config, bool last)
{
	struct sim_result *sum = calloc(2, sizeof(*sum));
	struct sim_trace trace = { 0 };
	int rc = 0;

	if (sum == NULL)
		return fail("simulation", "", strerror(ENOMEM));
	for (unsigned long gpu = 0; gpu < options->gpus && rc == 0; gpu++) {
		struct sim_result *one = gpu ? &sum[1] : &sum[0];
		bool draw = options->format == FORMAT_SVG && gpu == 0;
		int err;

		if (options->pattern || gpu == 0) {
			sim_trace_finish(&trace);
			rc = load(options, options->seed + gpu, &trace);
			if (rc)
				break;
		}
		err = sim_run(&trace, config, draw ? 20000 : 0, one);
		if (err)
			rc = fail("simulation", "", strerror(-err));
		else if (gpu)
			sim_result_add(&sum[0], one);
	}
	if (rc == 0 && options->format == FORMAT_TEXT) {
		sim_report_text(stdout, &trace, config, sum);
		fputs(last ? "" : "\n", stdout);
	} else if (rc == 0 && options->format == FORMAT_JSON) {
		sim_report_json(stdout, &trace, config, sum);
		fputs(last ? "\n" : ",\n", stdout);
	} else if (rc == 0) {
		char title[128];

		snprintf(title, sizeof(title), "%s, slice %g ms", policy_name(config->policy),
			 (double)config->slice_ns / 1e6);
		sim_svg(stdout, trace.vgpus, trace.n_vgpus, sum->slices, sum->n_slices, title);
	}
	sim_result_finish(sum);
	sim_trace_finish(&trace);
	free(sum);
	return rc;
}

/* A slice log is CSV with a heading: begin_ns,end_ns,vgpu,granted_ns,used_ns,overrun_ns,waiting */
static int draw_log(const char *path)
{
	struct sim_trace names = { 0 };
	struct turn_slice *slices = NULL;
	size_t n = 0, capacity = 0, line_size = 0;
	FILE *file = fopen(path, "re");
	char *line = NULL;
	int rc = 0;

	if (file == NULL)
		return fail("cannot open", path, strerror(errno));
	while (rc == 0 && getline(&line, &line_size, file) >= 0) {
		struct turn_slice slice = { 0 };
		char name[SIM_NAME_MAX];
		uint32_t vgpu = 0;

		if (strncmp(line, "begin_ns,", 9) == 0)
			continue;
		if (sscanf(line, "%" SCNu64 ",%" SCNu64 ",%39[^,],%" SCNu64 ",%" SCNu64 ",%" SCNu64,
			   &slice.begin_ns, &slice.end_ns, name, &slice.granted_ns, &slice.used_ns,
			   &slice.overrun_ns) != 6 ||
		    slice.end_ns < slice.begin_ns) {
			rc = fail("slice log", path, "a line is not begin_ns,end_ns,vgpu,granted_ns,used_ns,overrun_ns,…");
			break;
		}
		while (vgpu < names.n_vgpus && strcmp(names.vgpus[vgpu].name, name) != 0)
			vgpu++;
		if (vgpu == names.n_vgpus && sim_trace_add_vgpu(&names, name, 1) < 0)
			rc = fail("slice log", name, "a bad name, or more than 64 vGPUs");
		slice.vgpu = vgpu;
		if (n == capacity) {
			struct turn_slice *more;

			capacity = capacity ? 2 * capacity : 4096;
			more = reallocarray(slices, capacity, sizeof(*slices));
			if (more == NULL) {
				rc = fail("slice log", path, strerror(ENOMEM));
				break;
			}
			slices = more;
		}
		slices[n++] = slice;
	}
	if (rc == 0)
		sim_svg(stdout, names.vgpus, names.n_vgpus, slices, n, "Who had the GPU when");
	free(line);
	free(slices);
	fclose(file);
	sim_trace_finish(&names);
	return rc;
}

int main(int argc, char **argv)
{
	struct options options = {
		.config = {
			.slice_ns = POLICY_SLICE_NS,
			.hold_ns = TURN_HOLD_NS,
			.duration_ns = 10000000000ull,
			.bound = 1,
		},
		.gpus = 1,
		.seed = 1,
		.all_policies = true,
	};
	int rc = parse(argc, argv, &options);

	if (rc)
		return rc;
	if (options.log)
		return draw_log(options.log);
	if (options.format == FORMAT_SVG || !options.all_policies)
		return simulate(&options, &options.config, true);
	if (options.format == FORMAT_JSON)
		puts("[");
	for (int kind = 0; kind < POLICY_KINDS && rc == 0; kind++) {
		struct sim_config config = options.config;

		config.policy = (enum policy_kind)kind;
		rc = simulate(&options, &config, kind == POLICY_KINDS - 1);
	}
	if (options.format == FORMAT_JSON)
		puts("]");
	return rc;
}
