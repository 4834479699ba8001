// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavo-vgpu: the process that serves one vGPU while a VM has it open */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "config.h"
#include "gpu/log.h"
#include "gpu/worker.h"

static void usage(FILE *to)
{
	fputs("Usage: octavo-vgpu [OPTION...]\n"
	      "Serves one vGPU while a VM has it open. octavod starts it.\n"
	      "\n"
	      "  --session-fd N          session of octavo.ko (default 3)\n"
	      "  --gate-fd N             gate page of the scheduler (default none)\n"
	      "  --uuid UUID             name of the vGPU in log lines\n"
	      "  --gpu ADDRESS           PCI address of the GPU\n"
	      "  --renderer NAME         2d, or none: no 3D; auto, virgl, venus (default auto)\n"
	      "  --render-node PATH      DRM render node of the GPU\n"
	      "  --vulkan-device UUID    Vulkan device to use, 32 hexadecimal digits\n"
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
		fprintf(stderr, "octavo-vgpu: %s wants a file descriptor, not '%s'\n", option, text);
		exit(2);
	}
	return (int)value;
}

int main(int argc, char **argv)
{
	enum { OPT_SESSION_FD = 1, OPT_GATE_FD, OPT_UUID, OPT_GPU, OPT_RENDERER, OPT_RENDER_NODE, OPT_VULKAN_DEVICE, OPT_VERBOSE,
	       OPT_HELP, OPT_VERSION };
	static const struct option names[] = {
		{ "session-fd", required_argument, NULL, OPT_SESSION_FD },
		{ "gate-fd", required_argument, NULL, OPT_GATE_FD },
		{ "uuid", required_argument, NULL, OPT_UUID },
		{ "gpu", required_argument, NULL, OPT_GPU },
		{ "renderer", required_argument, NULL, OPT_RENDERER },
		{ "render-node", required_argument, NULL, OPT_RENDER_NODE },
		{ "vulkan-device", required_argument, NULL, OPT_VULKAN_DEVICE },
		{ "verbose", no_argument, NULL, OPT_VERBOSE },
		{ "help", no_argument, NULL, OPT_HELP },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	struct worker_options options = { .session_fd = 3, .gate_fd = -1, .uuid = "(unnamed)" };
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case OPT_SESSION_FD:
			options.session_fd = number("--session-fd", optarg);
			break;
		case OPT_GATE_FD:
			options.gate_fd = number("--gate-fd", optarg);
			break;
		case OPT_UUID:
			options.uuid = optarg;
			break;
		case OPT_RENDERER:
			if (strcmp(optarg, "none") && strcmp(optarg, "2d") && strcmp(optarg, "auto")) {
				fprintf(stderr, "octavo-vgpu: --renderer %s: this build has 2d only\n",
					optarg);
				return 2;
			}
			break;
		case OPT_GPU:
		case OPT_RENDER_NODE:
		case OPT_VULKAN_DEVICE:
			break;
		case OPT_VERBOSE:
			log_verbose = 1;
			break;
		case OPT_HELP:
			usage(stdout);
			return 0;
		case OPT_VERSION:
			puts("octavo-vgpu " PACKAGE_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "octavo-vgpu: '%s' is not an option\n", argv[optind]);
		return 2;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return worker_run(&options) ? 1 : 0;
}
