// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavo-vgpu: the process that serves one vGPU while a VM has it open */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "config.h"
#include "gpu/handover.h"
#include "gpu/log.h"
#include "gpu/probe.h"
#include "gpu/worker.h"

/* Between copies of one worker only, see worker_replace(). */
#define CAPSETS_VARIABLE	"OCTAVO_CAPSETS_FD"

static void usage(FILE *to)
{
	fputs("Usage: octavo-vgpu [OPTION...]\n"
	      "Serves one vGPU while a VM has it open. octavod starts it.\n"
	      "\n"
	      "  --session-fd N          session of octavo.ko (default 3)\n"
	      "  --gate-fd N             gate page of the scheduler (default none)\n"
	      "  --uuid UUID             name of the vGPU in log lines\n"
	      "  --gpu ADDRESS           PCI address of the GPU\n"
	      "  --renderer NAME         auto: what --capsets says (default); virgl: OpenGL;\n"
	      "                          venus: Vulkan, and OpenGL if it works; 2d or none: no 3D\n"
	      "  --render-node PATH      DRM render node of the GPU (default: found by its address)\n"
	      "  --vulkan-device NAME    Vulkan device to use: deviceUUID as 32 hexadecimal digits,\n"
	      "                          or a part of its name (default: the one at --gpu)\n"
	      "  --capsets LIST          what a probe found earlier: virgl, virgl2, venus or none,\n"
	      "                          with commas; nothing is probed then\n"
	      "  --busy-poll-us N        longest look for the next request (default 200; 0: none)\n"
	      "  --vulkan-ids V:D        likewise vendor and device number, hexadecimal\n"
	      "  --probe                 say what this host can do for the GPU, and end\n"
	      "  --output-fd N           say it there (default 1)\n"
	      "  --handover-fd N         octavod says the rest: options and descriptors 3 and 4\n"
	      "                          arrive on this socket\n"
	      "  --verbose               say more\n"
	      "  --help, --version\n", to);
}

static int number(const char *option, const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 0 || value > INT_MAX) {
		fprintf(stderr, "octavo-vgpu: %s wants a number, not '%s'\n", option, text);
		exit(2);
	}
	return (int)value;
}

static enum probe_mode mode(const char *text)
{
	static const struct {
		const char *name;
		enum probe_mode mode;
	} names[] = {
		{ "auto", PROBE_AUTO }, { "2d", PROBE_2D }, { "none", PROBE_2D },
		{ "virgl", PROBE_VIRGL }, { "venus", PROBE_VENUS },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i].name, text))
			return names[i].mode;
	}
	fprintf(stderr, "octavo-vgpu: --renderer wants auto, 2d, virgl or venus, not '%s'\n", text);
	exit(2);
}

static unsigned int capsets_parse(const char *text)
{
	unsigned int capsets = 0;

	while (*text) {
		size_t length = strcspn(text, ",");

		if (length == 5 && strncmp(text, "venus", length) == 0)
			capsets |= RENDERER_VENUS;
		else if ((length == 5 || length == 6) && strncmp(text, "virgl2", length) == 0)
			capsets |= RENDERER_VIRGL;
		else if (length != 4 || strncmp(text, "none", length) != 0) {
			fprintf(stderr, "octavo-vgpu: --capsets wants virgl, virgl2, venus or none, "
				"not '%s'\n", text);
			exit(2);
		}
		text += length;
		text += *text == ',';
	}
	return capsets;
}

static const char *capsets_format(unsigned int capsets)
{
	static const char *const names[] = { "none", "virgl,virgl2", "venus", "virgl,virgl2,venus" };

	return names[capsets & 3];
}

/* What octavod reads: one fact a line. */
static void probe_print(const struct probe *probe)
{
	char uuid[33];

	printf("capsets %s\n", capsets_format(probe->capsets));
	if (probe->opengl[0])
		printf("opengl %s\n", probe->opengl);
	if (probe->render_node[0])
		printf("render-node %s\n", probe->render_node);
	if (probe->has_vulkan) {
		vulkan_uuid_format(probe->vulkan.uuid, uuid);
		printf("vulkan-device %s %s\n", uuid, probe->vulkan.name);
		printf("vulkan-ids %x:%x\n", probe->vulkan.vendor_id, probe->vulkan.device_id);
		printf("vram-bytes %llu\n", (unsigned long long)probe->vulkan.memory_bytes);
	}
}

/* The arguments of a copy: as they are, and what was probed; a later option wins. */
static char **arguments_copy(int argc, char **argv, const struct worker_options *options)
{
	char **copy = calloc((size_t)argc + 7, sizeof(*copy)), ids[32];
	size_t count = (size_t)argc;

	if (!copy)
		return NULL;
	memcpy(copy, argv, count * sizeof(*copy));
	copy[count++] = strdup("--capsets");
	copy[count++] = strdup(capsets_format(options->renderer.capsets));
	if (options->renderer.vulkan_device) {
		copy[count++] = strdup("--vulkan-device");
		copy[count++] = strdup(options->renderer.vulkan_device);
		snprintf(ids, sizeof(ids), "%x:%x", options->renderer.vulkan_ids[0],
			 options->renderer.vulkan_ids[1]);
		copy[count++] = strdup("--vulkan-ids");
		copy[count++] = strdup(ids);
	}
	return copy;
}

struct arguments {
	struct worker_options options;
	struct probe_wish wish;
	const char *capsets;
	int handover_fd;	/* -1: none */
	int output_fd;
	bool only_probe;
};

/* Ends the program where there is nothing to serve. */
static void arguments_parse(struct arguments *arguments, int argc, char **argv)
{
	enum { OPT_SESSION_FD = 1, OPT_GATE_FD, OPT_UUID, OPT_GPU, OPT_RENDERER, OPT_RENDER_NODE,
	       OPT_VULKAN_DEVICE, OPT_VULKAN_IDS, OPT_CAPSETS, OPT_BUSY_POLL, OPT_PROBE,
	       OPT_OUTPUT_FD, OPT_HANDOVER_FD, OPT_VERBOSE, OPT_HELP, OPT_VERSION };
	static const struct option names[] = {
		{ "session-fd", required_argument, NULL, OPT_SESSION_FD },
		{ "gate-fd", required_argument, NULL, OPT_GATE_FD },
		{ "uuid", required_argument, NULL, OPT_UUID },
		{ "gpu", required_argument, NULL, OPT_GPU },
		{ "renderer", required_argument, NULL, OPT_RENDERER },
		{ "render-node", required_argument, NULL, OPT_RENDER_NODE },
		{ "vulkan-device", required_argument, NULL, OPT_VULKAN_DEVICE },
		{ "vulkan-ids", required_argument, NULL, OPT_VULKAN_IDS },
		{ "capsets", required_argument, NULL, OPT_CAPSETS },
		{ "busy-poll-us", required_argument, NULL, OPT_BUSY_POLL },
		{ "probe", no_argument, NULL, OPT_PROBE },
		{ "output-fd", required_argument, NULL, OPT_OUTPUT_FD },
		{ "handover-fd", required_argument, NULL, OPT_HANDOVER_FD },
		{ "verbose", no_argument, NULL, OPT_VERBOSE },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	struct worker_options *options = &arguments->options;
	int option;

	/* from the start: the second time, for what was handed over */
	optind = 0;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case OPT_SESSION_FD:
			options->session_fd = number("--session-fd", optarg);
			break;
		case OPT_GATE_FD:
			options->gate_fd = number("--gate-fd", optarg);
			break;
		case OPT_UUID:
			options->uuid = optarg;
			break;
		case OPT_RENDERER:
			arguments->wish.mode = mode(optarg);
			break;
		case OPT_GPU:
			arguments->wish.pci = optarg;
			break;
		case OPT_RENDER_NODE:
			arguments->wish.render_node = optarg;
			break;
		case OPT_VULKAN_DEVICE:
			arguments->wish.vulkan_device = optarg;
			break;
		case OPT_VULKAN_IDS:
			if (sscanf(optarg, "%x:%x", &options->renderer.vulkan_ids[0],
				   &options->renderer.vulkan_ids[1]) != 2) {
				fprintf(stderr, "octavo-vgpu: --vulkan-ids wants V:D, not '%s'\n",
					optarg);
				exit(2);
			}
			break;
		case OPT_CAPSETS:
			arguments->capsets = optarg;
			break;
		case OPT_BUSY_POLL:
			options->spin_ns = 1000ull * (unsigned int)number("--busy-poll-us", optarg);
			break;
		case OPT_PROBE:
			arguments->only_probe = true;
			break;
		case OPT_OUTPUT_FD:
			arguments->output_fd = number("--output-fd", optarg);
			break;
		case OPT_HANDOVER_FD:
			arguments->handover_fd = number("--handover-fd", optarg);
			break;
		case OPT_VERBOSE:
			log_verbose = 1;
			break;
		case OPT_HELP:
			usage(stdout);
			exit(0);
		case OPT_VERSION:
			puts("octavo-vgpu " PACKAGE_VERSION);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind != argc) {
		fprintf(stderr, "octavo-vgpu: '%s' is not an option\n", argv[optind]);
		exit(2);
	}
}

/* Goes on with what octavod says; a copy that takes over later is started with that, too. */
static void arguments_take(struct arguments *arguments, int *argc, char ***argv)
{
	int count = handover_take(arguments->handover_fd, **argv, argv);

	if (count < 0) {
		fprintf(stderr, "octavo-vgpu: octavod has handed over nothing: %s: it starts this "
			"unit when a VM opens the vGPU\n", strerror(-count));
		exit(1);
	}
	*argc = count;
	arguments_parse(arguments, *argc, *argv);
}

/* Takes what was probed earlier, or probes; false if the wish cannot be had. */
static bool arguments_probe(struct arguments *arguments, struct probe *probe)
{
	struct renderer_options *renderer = &arguments->options.renderer;
	struct probe_wish *wish = &arguments->wish;
	static char uuid[33];

	if (arguments->capsets && !arguments->only_probe) {
		renderer->capsets = wish->mode == PROBE_2D ? 0 : capsets_parse(arguments->capsets);
		renderer->vulkan_device = wish->vulkan_device;
		if (!wish->render_node && probe_render_node(wish->pci, probe->render_node))
			wish->render_node = probe->render_node;
		renderer->render_node = wish->render_node;
		return true;
	}
	/* a VFIO open waits 2 s for its worker, a probe may take longer: octavod made it before */
	if (wish->mode == PROBE_AUTO && !arguments->only_probe)
		wish->mode = PROBE_2D;
	if (probe_run(wish, probe))
		return false;
	renderer->capsets = probe->capsets;
	if (probe->render_node[0])
		renderer->render_node = probe->render_node;
	if (probe->has_vulkan) {
		vulkan_uuid_format(probe->vulkan.uuid, uuid);
		renderer->vulkan_device = uuid;
		renderer->vulkan_ids[0] = probe->vulkan.vendor_id;
		renderer->vulkan_ids[1] = probe->vulkan.device_id;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct arguments arguments = {
		.options = {
			.session_fd = 3, .gate_fd = -1, .uuid = "(unnamed)", .spin_ns = 200000,
		},
		.wish = { .mode = PROBE_AUTO },
		.handover_fd = -1,
		.output_fd = STDOUT_FILENO,
	};
	static struct probe probe;
	const char *capsets_fd;

	arguments_parse(&arguments, argc, argv);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (arguments.handover_fd >= 0)
		arguments_take(&arguments, &argc, &argv);
	if (!arguments_probe(&arguments, &probe))
		return 1;
	if (arguments.only_probe) {
		if (dup2(arguments.output_fd, STDOUT_FILENO) < 0) {
			perror("octavo-vgpu: --output-fd");
			return 1;
		}
		probe_print(&probe);
		return 0;
	}
	arguments.options.renderer.gate_fd = arguments.options.gate_fd;
	arguments.options.capsets_variable = CAPSETS_VARIABLE;
	capsets_fd = getenv(CAPSETS_VARIABLE);
	if (capsets_fd)
		arguments.options.renderer.capsets_fd = number(CAPSETS_VARIABLE, capsets_fd);
	arguments.options.arguments =
		arguments.capsets ? argv : arguments_copy(argc, argv, &arguments.options);
	/* threads of drivers are about: no handlers at exit, nothing of them is ours to tidy */
	_exit(worker_run(&arguments.options) ? 1 : 0);
}
