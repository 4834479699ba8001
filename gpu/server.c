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

#define SERVER_DEFAULT	"/usr/libexec/virgl_render_server"
#define SERVER_SOCKET	3	/* its end of the connection, in it */

static const char *server_path(void)
{
	/* the variable that virglrenderer itself looks at */
	const char *path = getenv("RENDER_SERVER_EXEC_PATH");

	return path ? path : SERVER_DEFAULT;
}

/* Between fork and exec, in a process that had threads: only calls that are safe in a handler. */
static void server_exec(const char *path, int socket, int keep_fd)
{
	char *const arguments[] = { (char *)(uintptr_t)path, "--socket-fd", "3", NULL };

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (keep_fd == SERVER_SOCKET) {
		/* cannot be: descriptor 3 is the session or was given by number to main() */
		_exit(126);
	}
	if (socket != SERVER_SOCKET) {
		if (dup2(socket, SERVER_SOCKET) < 0)
			_exit(126);
	} else {
		fcntl(socket, F_SETFD, 0);
	}
	if (keep_fd >= 0)
		fcntl(keep_fd, F_SETFD, 0);
	execv(path, arguments);
	_exit(127);
}

int server_start(struct server *server, int keep_fd)
{
	const char *path = server_path();
	int sockets[2];
	pid_t pid;

	if (access(path, X_OK))
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	pid = fork();
	if (pid < 0) {
		int error = errno;

		close(sockets[0]);
		close(sockets[1]);
		return -error;
	}
	if (pid == 0)
		server_exec(path, sockets[1], keep_fd);
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
	while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
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
