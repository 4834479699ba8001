// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavo-run: a host process in a slice of the GPU. See octavo-run(1). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#include "scheduler/arbiter.h"
#include "scheduler/join.h"

#define LAYER_NAME "VK_LAYER_OCTAVO_slice"
/* How long a server of ours waits for the next command before it goes. */
#define SERVER_GRACE_MS 2000

struct options {
	const char *profile;
	const char *policy;
	const char *name;
	const char *socket;
	const char *layer_path;
	uint64_t memory_bytes; /* of the whole GPU; 0: ask Vulkan */
};

static const char usage[] =
	"Usage: octavo-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"       octavo-run --status | --log | --cdi\n"
	"Run COMMAND in a slice of the GPU's time and memory. This is cooperative: a process that\n"
	"drops the Vulkan layer runs without limits. In a VM (octavod) it cannot.\n\n"
	"  -p, --profile=PROFILE  1_1, 1_2, 1_4 or 1_8 (default 1_8)\n"
	"      --policy=POLICY    elastic, fixed-share, equal-share or best-effort, for the whole GPU\n"
	"      --name=NAME        share one vGPU with others of this name and profile\n"
	"      --memory=BYTES     device memory of the whole GPU, with k, M or G (default: ask it)\n"
	"      --socket=PATH      of the arbiter (default: octavod's, else one of our own)\n"
	"      --status           vGPUs and what they used\n"
	"      --log              the last slices as CSV, for octavo-sim --log\n"
	"      --cdi              a CDI specification for container engines\n"
	"  -h, --help             this text\n";

static int fail(const char *what, const char *found, const char *todo)
{
	fprintf(stderr, "octavo-run: %s '%s': %s\n", what, found, todo);
	return 125;
}

/* Device memory of the first GPU; 0: unknown, which limits nothing. */
static uint64_t probe_memory(void)
{
	void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
	PFN_vkGetInstanceProcAddr get;
	PFN_vkCreateInstance create;
	PFN_vkEnumeratePhysicalDevices enumerate;
	PFN_vkGetPhysicalDeviceMemoryProperties properties;
	const VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO };
	VkPhysicalDeviceMemoryProperties memory;
	VkPhysicalDevice device;
	VkInstance instance;
	uint32_t count = 1;
	uint64_t bytes = 0;

	get = library ? (PFN_vkGetInstanceProcAddr)dlsym(library, "vkGetInstanceProcAddr") : NULL;
	create = get ? (PFN_vkCreateInstance)get(NULL, "vkCreateInstance") : NULL;
	if (!create || create(&info, NULL, &instance) != VK_SUCCESS)
		return 0;
	enumerate = (PFN_vkEnumeratePhysicalDevices)get(instance, "vkEnumeratePhysicalDevices");
	properties = (PFN_vkGetPhysicalDeviceMemoryProperties)get(
		instance, "vkGetPhysicalDeviceMemoryProperties");
	if (enumerate(instance, &count, &device) < 0 || count == 0)
		return 0;
	properties(device, &memory);
	for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
		if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
			bytes += memory.memoryHeaps[i].size;
	return bytes;
}

/* The arbiter of those who run without octavod: a process of its own, gone when nobody is left. */
static int serve(const struct options *options, const char *path)
{
	const struct arbiter_config config = { .policy = POLICY_ELASTIC };
	struct join_config join = {
		.path = path,
		.memory_bytes = options->memory_bytes ? options->memory_bytes : probe_memory(),
		.mode = 0600,
		.may_set_policy = true,
	};
	struct join_server *server;

	join.arbiter = arbiter_create(&config, NULL);
	server = join.arbiter ? join_server_create(&join, NULL) : NULL;
	if (!server)
		return 1;
	join_server_wait_idle(server, SERVER_GRACE_MS);
	join_server_destroy(server);
	arbiter_destroy(join.arbiter);
	return 0;
}

/* Start the server and wait until it listens. The lock keeps two of us from starting two. */
static int start_server(const struct options *options, const char *path)
{
	char lock[PATH_MAX + 8];
	int lock_fd, fd;
	pid_t pid;

	snprintf(lock, sizeof(lock), "%s.lock", path);
	lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock_fd < 0 || flock(lock_fd, LOCK_EX))
		return -errno;
	fd = join_connect(path);
	if (fd < 0) {
		pid = fork();
		if (pid == 0) {
			int null_fd = open("/dev/null", O_RDWR);

			close(lock_fd);
			setsid();
			for (int i = 0; i < 3 && null_fd >= 0; i++)
				dup2(null_fd, i);
			/* nobody waits for it: init does */
			_exit(fork() == 0 ? serve(options, path) : 0);
		}
		waitpid(pid, NULL, 0);
		for (int i = 0; i < 2000 && fd < 0; i++) {
			usleep(5000);
			fd = join_connect(path);
		}
	}
	close(lock_fd);
	return fd;
}

static void own_socket(char *path, size_t size)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0) {
		mkdir("/run/octavo", 0755);
		snprintf(path, size, "/run/octavo/run");
	} else if (dir && *dir) {
		snprintf(path, size, "%s/octavo-run", dir);
	} else {
		snprintf(path, size, "/tmp/octavo-run-%u", (unsigned int)geteuid());
		mkdir(path, 0700);
		snprintf(path, size, "/tmp/octavo-run-%u/join", (unsigned int)geteuid());
	}
}

/* Connection to whoever has the arbiter. start: make one if there is none. */
static int reach(const struct options *options, bool start)
{
	char path[PATH_MAX];
	int fd;

	if (options->socket)
		snprintf(path, sizeof(path), "%s", options->socket);
	else
		own_socket(path, sizeof(path));
	if (!options->socket) {
		fd = join_connect(JOIN_SOCKET_SYSTEM);
		if (fd >= 0)
			return fd;
	}
	fd = join_connect(path);
	if (fd < 0 && start)
		fd = start_server(options, path);
	return fd;
}

static void prepend(const char *variable, const char *value)
{
	const char *was = getenv(variable);
	char *text = NULL;

	if (!value || (was && strstr(was, value)))
		return;
	if (asprintf(&text, "%s%s%s", value, was && *was ? ":" : "", was ? was : "") >= 0)
		setenv(variable, text, 1);
	free(text);
}

static pid_t child;

static void forward(int signal)
{
	if (child > 0)
		kill(child, signal);
}

static int run(const struct options *options, char **command)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	const char *layer_path = options->layer_path;
	char request[512], text[1024], number[16];
	int connection = reach(options, true), gate_fd, status, err;

	if (connection < 0)
		return fail("cannot reach an arbiter", options->socket ? options->socket : "",
			    strerror(-connection));
	snprintf(number, sizeof(number), "run-%d", (int)getpid());
	snprintf(request, sizeof(request), "join profile=%s name=%s%s%s", options->profile,
		 options->name ? options->name : number, options->policy ? " policy=" : "",
		 options->policy ? options->policy : "");
	err = join_ask(connection, request, text, sizeof(text), &gate_fd);
	if (err || gate_fd < 0)
		return fail("the arbiter refused", request, err ? strerror(-err) : text);
	child = fork();
	if (child < 0)
		return fail("cannot start", command[0], strerror(errno));
	if (child == 0) {
		/* a number well above those that shells and programs use themselves */
		int fd = fcntl(gate_fd, F_DUPFD, 200);

		snprintf(number, sizeof(number), "%d", fd);
		setenv("OCTAVO_GATE_FD", number, 1);
		prepend("VK_ADD_LAYER_PATH", layer_path);
		prepend("VK_INSTANCE_LAYERS", LAYER_NAME);
		execvp(command[0], command);
		fail("cannot run", command[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], forward);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	close(connection);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int ask(const struct options *options, const char *request)
{
	static char text[JOIN_MESSAGE_MAX];
	int connection = reach(options, false), fd = -1, err;
	ssize_t n;

	if (connection < 0)
		return fail("cannot reach an arbiter", options->socket ? options->socket : "",
			    "nobody shares this GPU at present");
	err = join_ask(connection, request, text, sizeof(text), &fd);
	if (err)
		return fail("the arbiter did not answer", request, strerror(-err));
	if (fd < 0) {
		fputs(text, stdout);
		return strncmp(text, "error", 5) == 0 ? 125 : 0;
	}
	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	return 0;
}

/* Container Device Interface 0.6: one device a profile; the layer joins through octavod's socket. */
static int write_cdi(void)
{
	static const char *const profiles[] = { "1_2", "1_4", "1_8" };
	glob_t nodes = { 0 };

	printf("{\n  \"cdiVersion\": \"0.6.0\",\n  \"kind\": \"org.octavo/vgpu\",\n  \"devices\": [");
	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		printf("%s\n    {\"name\": \"%s\", \"containerEdits\": {\"env\": [\"OCTAVO_PROFILE=%s\"]}}",
		       i ? "," : "", profiles[i], profiles[i]);
	printf("\n  ],\n  \"containerEdits\": {\n    \"env\": [\"OCTAVO_GATE=%s\", \"VK_INSTANCE_LAYERS=%s\", \"VK_ADD_LAYER_PATH=%s\"],\n",
	       JOIN_SOCKET_SYSTEM, LAYER_NAME, LAYER_MANIFEST_DIR);
	printf("    \"deviceNodes\": [");
	glob("/dev/dri/renderD*", 0, NULL, &nodes);
	for (size_t i = 0; i < nodes.gl_pathc; i++)
		printf("%s{\"path\": \"%s\"}", i ? ", " : "", nodes.gl_pathv[i]);
	globfree(&nodes);
	printf("],\n    \"mounts\": [");
	printf("\n      {\"hostPath\": \"%s\", \"containerPath\": \"%s\", \"options\": [\"bind\"]},",
	       "/run/octavo", "/run/octavo");
	printf("\n      {\"hostPath\": \"%s\", \"containerPath\": \"%s\", \"options\": [\"ro\", \"bind\"]},",
	       LAYER_LIBRARY, LAYER_LIBRARY);
	printf("\n      {\"hostPath\": \"%s/VkLayer_octavo_slice.json\", \"containerPath\": \"%s/VkLayer_octavo_slice.json\", \"options\": [\"ro\", \"bind\"]}\n    ]\n  }\n}\n",
	       LAYER_MANIFEST_DIR, LAYER_MANIFEST_DIR);
	return 0;
}

static bool parse_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "kMGT";
	const char *unit;
	char *end;

	errno = 0;
	*bytes = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return false;
	if (!*end)
		return true;
	unit = strchr(units, *end);
	if (!unit || end[1])
		return false;
	return !__builtin_mul_overflow(*bytes, UINT64_C(1) << (10 * (unit - units + 1)), bytes);
}

int main(int argc, char **argv)
{
	enum { OPT_POLICY = 256, OPT_NAME, OPT_MEMORY, OPT_SOCKET, OPT_STATUS, OPT_LOG, OPT_CDI };
	static const struct option longs[] = {
		{ "profile", required_argument, NULL, 'p' },
		{ "policy", required_argument, NULL, OPT_POLICY },
		{ "name", required_argument, NULL, OPT_NAME },
		{ "memory", required_argument, NULL, OPT_MEMORY },
		{ "socket", required_argument, NULL, OPT_SOCKET },
		{ "status", no_argument, NULL, OPT_STATUS },
		{ "log", no_argument, NULL, OPT_LOG },
		{ "cdi", no_argument, NULL, OPT_CDI },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct options options = { .profile = "1_8" };
	const char *question = NULL, *value;
	static char layer_path[PATH_MAX];
	int opt;

	while ((opt = getopt_long(argc, argv, "+p:h", longs, NULL)) >= 0) {
		switch (opt) {
		case 'p':
			options.profile = optarg;
			break;
		case OPT_POLICY:
			options.policy = optarg;
			break;
		case OPT_NAME:
			options.name = optarg;
			break;
		case OPT_MEMORY:
			if (!parse_bytes(optarg, &options.memory_bytes))
				return fail("memory", optarg, "want bytes, or a number with k, M, G or T");
			break;
		case OPT_SOCKET:
			options.socket = optarg;
			break;
		case OPT_STATUS:
			question = "status";
			break;
		case OPT_LOG:
			question = "log";
			break;
		case OPT_CDI:
			return write_cdi();
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return 125;
		}
	}
	value = getenv("OCTAVO_LAYER_PATH");
	if (value && (size_t)snprintf(layer_path, sizeof(layer_path), "%s", value) < sizeof(layer_path))
		options.layer_path = layer_path;
	if (question)
		return ask(&options, question);
	if (optind == argc) {
		fputs(usage, stderr);
		return 125;
	}
	return run(&options, argv + optind);
}
