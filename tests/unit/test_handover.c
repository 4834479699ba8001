// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static void give(int socket, const char *bytes, size_t length, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	}
	CU_ASSERT_EQUAL(sendmsg(socket, &message, MSG_NOSIGNAL), (ssize_t)length);
}

/* What a worker makes of @bytes: 0 if all is well with "a" "--b" and two pipes, else its errno. */
static int taken(int socket)
{
	char program[] = "worker", letter[2];
	char **arguments;
	int ret;

	/* as systemd does it */
	if (dup2(socket, 3) < 0)
		return 90;
	ret = handover_take(3, program, &arguments);
	if (ret < 0)
		return -ret;
	if (ret != 3 || strcmp(arguments[0], "worker") != 0 || strcmp(arguments[1], "a") != 0 ||
	    strcmp(arguments[2], "--b") != 0 || arguments[3])
		return 91;
	if (read(3, letter, 2) != 1 || letter[0] != '3' || read(4, letter, 2) != 1 || letter[0] != '4')
		return 92;
	return fcntl(3, F_GETFD) == FD_CLOEXEC && fcntl(4, F_GETFD) == FD_CLOEXEC ? 0 : 93;
}

static int hand_over(const char *bytes, size_t length, size_t count)
{
	int sockets[2], pipes[2][2], status, fds[4];
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(pipes[0], O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(pipes[1], O_CLOEXEC), 0);
	CU_ASSERT_EQUAL(write(pipes[0][1], "3", 1), 1);
	CU_ASSERT_EQUAL(write(pipes[1][1], "4", 1), 1);
	for (int i = 0; i < 4; i++)
		fds[i] = pipes[i & 1][0];
	if (length)
		give(sockets[0], bytes, length, fds, count);
	close(sockets[0]);
	pid = fork();
	if (pid == 0)
		_exit(taken(sockets[1]));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	close(sockets[1]);
	for (int i = 0; i < 2; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void arguments_and_descriptors(void)
{
	CU_ASSERT_EQUAL(hand_over("a\0--b", 6, 2), 0);
}

static void other_messages(void)
{
	char many[200];

	CU_ASSERT_EQUAL(hand_over("", 0, 0), ECONNRESET);
	CU_ASSERT_EQUAL(hand_over("a\0--b", 6, 0), EPROTO);
	CU_ASSERT_EQUAL(hand_over("a\0--b", 5, 2), EPROTO);
	CU_ASSERT_EQUAL(hand_over("a\0--b", 6, 4), EPROTO);
	memset(many, 0, sizeof(many));
	CU_ASSERT_EQUAL(hand_over(many, sizeof(many), 2), EPROTO);
}

SUITE_RUN("handover",
	  { "arguments and descriptors arrive", arguments_and_descriptors },
	  { "a message of another form is refused", other_messages })
