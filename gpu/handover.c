// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#define HANDOVER_BYTES		4096
#define HANDOVER_ARGUMENTS	64
#define HANDOVER_FIRST_FD	3

union handover_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(HANDOVER_FDS_MAX * sizeof(int))];
};

/* The descriptors of the message, in @fds; how many, or -errno. */
static int handover_fds(struct msghdr *message, int fds[HANDOVER_FDS_MAX])
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	size_t bytes;

	if (message->msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !header ||
	    header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	bytes = header->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(header), bytes);
	return (int)(bytes / sizeof(int));
}

/* To 3 and up, from wherever the kernel put them, which may be there too. */
static int handover_place(int fds[HANDOVER_FDS_MAX], int count)
{
	for (int i = 0; i < count; i++) {
		int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, HANDOVER_FIRST_FD + HANDOVER_FDS_MAX);

		if (copy < 0)
			return -errno;
		close(fds[i]);
		fds[i] = copy;
	}
	for (int i = 0; i < count; i++) {
		if (dup3(fds[i], HANDOVER_FIRST_FD + i, O_CLOEXEC) < 0)
			return -errno;
		close(fds[i]);
	}
	return 0;
}

int handover_take(int fd, char *program, char ***arguments)
{
	static char bytes[HANDOVER_BYTES];
	static char *list[HANDOVER_ARGUMENTS + 2];
	union handover_control control;
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int fds[HANDOVER_FDS_MAX], count, ret, listed = 0;
	ssize_t length;

	do
		length = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	ret = length < 0 ? -errno : 0;
	close(fd);
	if (length <= 0)
		return ret ? ret : -ECONNRESET;
	count = handover_fds(&message, fds);
	if (count < 0)
		return count;
	ret = handover_place(fds, count);
	if (ret)
		return ret;
	if (bytes[length - 1])
		return -EPROTO;
	list[listed++] = program;
	for (char *at = bytes; at < bytes + length; at += strlen(at) + 1) {
		if (listed > HANDOVER_ARGUMENTS)
			return -EPROTO;
		list[listed++] = at;
	}
	*arguments = list;
	return listed;
}
