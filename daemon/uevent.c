// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/uevent.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UEVENT_GROUP_KERNEL	1u
#define UEVENT_BYTES		8192u	/* UEVENT_BUFFER_SIZE is 2048 */

struct uevent {
	int fd;
	guint source;
	uevent_fn fn;
	void *data;
};

enum uevent_subject uevent_parse(const char *message, size_t bytes)
{
	const char *end = message + bytes;

	if (!bytes || end[-1] != '\0' || !strchr(message, '@'))
		return UEVENT_OTHER;
	for (const char *word = message; word < end; word += strlen(word) + 1) {
		if (g_str_equal(word, "SUBSYSTEM=pci"))
			return UEVENT_PCI;
		if (g_str_equal(word, "DEVNAME=octavo") || g_str_equal(word, "DEVNAME=/dev/octavo"))
			return UEVENT_OCTAVO;
	}
	return UEVENT_OTHER;
}

static gboolean uevent_ready(int fd, GIOCondition condition, void *data)
{
	struct uevent *uevent = data;
	struct sockaddr_nl from = { 0 };
	char buffer[UEVENT_BYTES] = "";
	struct iovec part = { .iov_base = buffer, .iov_len = sizeof(buffer) };
	struct msghdr message = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &part,
		.msg_iovlen = 1,
	};
	ssize_t bytes = recvmsg(fd, &message, MSG_DONTWAIT);

	(void)condition;
	if (bytes < 0 && errno == ENOBUFS) {
		/* Some were lost: take a look at everything */
		uevent->fn(UEVENT_OCTAVO, uevent->data);
		uevent->fn(UEVENT_PCI, uevent->data);
	} else if (bytes > 0 && from.nl_pid == 0) {
		enum uevent_subject subject = uevent_parse(buffer, (size_t)bytes);

		if (subject != UEVENT_OTHER)
			uevent->fn(subject, uevent->data);
	}
	return G_SOURCE_CONTINUE;
}

struct uevent *uevent_new(uevent_fn fn, void *data, GError **error)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = UEVENT_GROUP_KERNEL };
	struct uevent *uevent;
	int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(errno),
			    "cannot listen to the kernel's device events: %s", g_strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	uevent = g_new0(struct uevent, 1);
	uevent->fd = fd;
	uevent->fn = fn;
	uevent->data = data;
	uevent->source = g_unix_fd_add(fd, G_IO_IN, uevent_ready, uevent);
	return uevent;
}

void uevent_free(struct uevent *uevent)
{
	if (!uevent)
		return;
	g_source_remove(uevent->source);
	close(uevent->fd);
	g_free(uevent);
}
