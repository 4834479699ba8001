// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int join_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int join_ask(int connection, const char *request, char *answer, size_t size, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = answer, .iov_len = size - 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	ssize_t n;

	*fd = -1;
	if (send(connection, request, strlen(request), MSG_NOSIGNAL) < 0)
		return -errno;
	n = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	answer[n] = '\0';
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(header), sizeof(int));
	return n == 0 ? -ECONNRESET : 0;
}

int join_gate(const char *path, const char *request, int *connection)
{
	char text[512], answer[1024];
	const char *profile = getenv("OCTAVO_PROFILE"), *name = getenv("OCTAVO_NAME");
	int err, fd = -1;

	if (!request) {
		snprintf(text, sizeof(text), "join profile=%s%s%s", profile ? profile : "1_8",
			 name ? " name=" : "", name ? name : "");
		request = text;
	}
	*connection = join_connect(path);
	if (*connection < 0)
		return *connection;
	err = join_ask(*connection, request, answer, sizeof(answer), &fd);
	if (err == 0 && fd >= 0)
		return fd;
	if (err == 0) {
		fprintf(stderr, "octavo: asked %s to '%s', found: %s\n", path, request, answer);
		err = -EPROTO;
	}
	close(*connection);
	*connection = -1;
	return err;
}
