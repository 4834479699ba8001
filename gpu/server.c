// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/renderer.h"

#define SERVER_DEFAULT	"/usr/libexec/virgl_render_server"
#define SERVER_ENVIRONMENT_MAX 256

static const char *server_path(void)
{
	/* the variable that virglrenderer itself looks at */
	const char *path = getenv("RENDER_SERVER_EXEC_PATH");

	return path ? path : SERVER_DEFAULT;
}

/* The environment of the render processes; the strings live as long as the array is used. */
struct server_environment {
	char gate[32], layer[64], device[64], select[64];
	char *variables[SERVER_ENVIRONMENT_MAX];
};

static void server_environment(struct server_environment *environment,
			       const struct renderer_options *options)
{
	size_t count = 0;

	for (char **at = environ; *at && count < SERVER_ENVIRONMENT_MAX - 5; at++)
		environment->variables[count++] = *at;
	if (options->gate_fd >= 0) {
		snprintf(environment->gate, sizeof(environment->gate), "OCTAVO_GATE_FD=%d",
			 options->gate_fd);
		environment->variables[count++] = environment->gate;
		snprintf(environment->layer, sizeof(environment->layer),
			 "VK_INSTANCE_LAYERS=VK_LAYER_OCTAVO_slice");
		environment->variables[count++] = environment->layer;
	}
	if (options->vulkan_device) {
		snprintf(environment->device, sizeof(environment->device),
			 "OCTAVO_VULKAN_DEVICE=%s", options->vulkan_device);
		environment->variables[count++] = environment->device;
	}
	if (options->vulkan_ids[0]) {
		/* Mesa's own layer: no other kind of GPU of this host reaches the guest */
		snprintf(environment->select, sizeof(environment->select),
			 "MESA_VK_DEVICE_SELECT=%x:%x!", options->vulkan_ids[0],
			 options->vulkan_ids[1]);
		environment->variables[count++] = environment->select;
	}
	environment->variables[count] = NULL;
}

/* Between fork and exec, in a process that had threads: only calls that are safe in a handler. */
static void server_exec(const char *path, char *number, char *const *environment, int socket,
			int keep_fd)
{
	char *const arguments[] = { (char *)(uintptr_t)path, "--socket-fd", number, NULL };

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(socket, F_SETFD, 0);
	if (keep_fd >= 0)
		fcntl(keep_fd, F_SETFD, 0);
	execve(path, arguments, environment);
	_exit(127);
}

int server_start(struct server *server, const struct renderer_options *options)
{
	struct server_environment environment;
	const char *path = server_path();
	char number[16];
	int sockets[2];
	pid_t pid;

	if (access(path, X_OK))
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	server_environment(&environment, options);
	snprintf(number, sizeof(number), "%d", sockets[1]);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	pid = fork();
	if (pid < 0) {
		int error = errno;

		close(sockets[0]);
		close(sockets[1]);
		return -error;
	}
	if (pid == 0)
		server_exec(path, number, environment.variables, sockets[1], options->gate_fd);
	/* here too: a kill of the group may come before the child got that far */
	setpgid(pid, pid);
	close(sockets[1]);
	server->pid = pid;
	return sockets[0];
}

void server_kill(struct server *server)
{
	if (!server->pid)
		return;
	kill(-server->pid, SIGKILL);
	/* its children come to us when it dies: their memory is gone when they are */
	while (waitpid(-server->pid, NULL, 0) > 0 || errno == EINTR)
		;
	server->pid = 0;
}

pid_t server_new_child(const struct server *server, const pid_t *known, unsigned int count)
{
	char path[64];
	pid_t found = 0;
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)server->pid,
		 (int)server->pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fscanf(file, "%d", &pid) == 1) {
		bool old = false;

		for (unsigned int i = 0; i < count; i++)
			old |= known[i] == pid;
		if (!old)
			found = pid;
	}
	fclose(file);
	return found;
}
