// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIT_NAME	"octavo-vgpu@%s.service"
#define UNIT_SECONDS	10u		/* a VFIO open does not wait that long, a replacement may */

/* Linux 6.5; not in every libc's headers */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77
#endif

struct unit {
	char *instance;
	char *name;
	char *path;		/* of the socket */
	int listener;
	guint source;
	guint timeout;
	GString *message;	/* arguments, each with its NUL */
	int fds[UNIT_FDS_MAX];
	unsigned int fds_count;
	GVariant *properties;	/* for SetUnitProperties, or NULL */
	GCancellable *cancellable;
	unit_fn fn;
	void *data;
};

bool unit_is_cgroup(const char *text, const char *instance)
{
	g_autofree char *wanted = g_strdup_printf("/" UNIT_NAME, instance);
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

	for (unsigned int i = 0; lines[i]; i++)
		if (g_str_has_suffix(lines[i], wanted))
			return true;
	return false;
}

static void unit_finish(struct unit *unit, pid_t pid, int pidfd, const GError *error)
{
	unit_fn fn = unit->fn;

	unit->fn = NULL;
	if (fn)
		fn(pid, pidfd, error, unit->data);
}

G_GNUC_PRINTF(2, 3)
static void unit_fail(struct unit *unit, const char *format, ...)
{
	g_autoptr(GError) error = NULL;
	va_list arguments;

	va_start(arguments, format);
	error = g_error_new_valist(G_IO_ERROR, G_IO_ERROR_FAILED, format, arguments);
	va_end(arguments);
	unit_finish(unit, 0, -1, error);
}

/* ---- the socket ---- */

static bool unit_listen(struct unit *unit, GError **error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int saved;

	if (g_strlcpy(address.sun_path, unit->path, sizeof(address.sun_path)) >=
	    sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		goto fail;
	}
	unit->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (unit->listener < 0)
		goto fail;
	/* of an octavod that was killed */
	unlink(unit->path);
	/* nobody can connect before listen(), so there is time to close it to others */
	if (bind(unit->listener, (struct sockaddr *)&address, sizeof(address)) ||
	    chmod(unit->path, 0600) || listen(unit->listener, 1))
		goto fail;
	return true;

fail:
	saved = errno;
	g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(saved), "cannot listen on %s: %s",
		    unit->path, g_strerror(saved));
	return false;
}

static bool unit_send(struct unit *unit, int connection)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(UNIT_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = unit->message->str, .iov_len = unit->message->len };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = CMSG_SPACE(unit->fds_count * sizeof(int)),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(unit->fds_count * sizeof(int));
	memcpy(CMSG_DATA(header), unit->fds, unit->fds_count * sizeof(int));
	return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)iov.iov_len;
}

/* The pidfd of the process behind @connection if it is one of the unit, or -1. */
static int unit_peer(struct unit *unit, int connection, pid_t *pid)
{
	socklen_t length = sizeof(int), creds_length = sizeof(struct ucred);
	g_autofree char *path = NULL, *cgroup = NULL;
	struct ucred creds;
	int pidfd;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length)) {
		unit_fail(unit, "%s: who connected cannot be told: %s", unit->name, g_strerror(errno));
		return -1;
	}
	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &creds, &creds_length))
		creds.pid = 0;
	path = g_strdup_printf("/proc/%d/cgroup", (int)creds.pid);
	if (creds.uid == 0 && g_file_get_contents(path, &cgroup, NULL, NULL) &&
	    unit_is_cgroup(cgroup, unit->instance)) {
		*pid = creds.pid;
		return pidfd;
	}
	unit_fail(unit, "%s: process %d connected, which is not of this unit but of %s", unit->name,
		  (int)creds.pid, cgroup ? g_strstrip(cgroup) : "none");
	close(pidfd);
	return -1;
}

static gboolean unit_connected(int fd, GIOCondition condition, void *data)
{
	struct unit *unit = data;
	int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC), pidfd;
	pid_t pid = 0;

	(void)condition;
	if (connection < 0)
		return G_SOURCE_CONTINUE;
	unit->source = 0;
	pidfd = unit_peer(unit, connection, &pid);
	if (pidfd >= 0 && !unit_send(unit, connection)) {
		unit_fail(unit, "%s: cannot hand over to it: %s", unit->name, g_strerror(errno));
		close(pidfd);
		pidfd = -1;
	}
	/* what was sent stays in its end */
	close(connection);
	if (pidfd >= 0)
		unit_finish(unit, pid, pidfd, NULL);
	return G_SOURCE_REMOVE;
}

/* ---- systemd ---- */

static GVariant *unit_properties(const struct unit_setup *setup)
{
	GVariantBuilder properties, devices;

	g_variant_builder_init(&properties, G_VARIANT_TYPE("a(sv)"));
	if (setup->memory_bytes)
		g_variant_builder_add(&properties, "(sv)", "MemoryMax",
				      g_variant_new_uint64(setup->memory_bytes));
	if (setup->tasks)
		g_variant_builder_add(&properties, "(sv)", "TasksMax",
				      g_variant_new_uint64(setup->tasks));
	if (setup->devices) {
		/* an empty list first: the vGPU may have been on another GPU */
		g_variant_builder_add(&properties, "(sv)", "DeviceAllow",
				      g_variant_new_array(G_VARIANT_TYPE("(ss)"), NULL, 0));
		g_variant_builder_init(&devices, G_VARIANT_TYPE("a(ss)"));
		for (unsigned int i = 0; setup->devices[i]; i++)
			g_variant_builder_add(&devices, "(ss)", setup->devices[i], "rw");
		g_variant_builder_add(&properties, "(sv)", "DeviceAllow",
				      g_variant_builder_end(&devices));
	}
	return g_variant_ref_sink(g_variant_builder_end(&properties));
}

static void unit_answered(GObject *source, GAsyncResult *result, void *data)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GVariant) answer =
		g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, &error);
	struct unit *unit = data;

	/* also after unit_free() */
	if (answer || g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		return;
	g_dbus_error_strip_remote_error(error);
	unit_fail(unit, "systemd does not start %s: %s", unit->name, error->message);
}

static void unit_call(struct unit *unit, GDBusConnection *bus, const char *method,
		      GVariant *arguments)
{
	g_dbus_connection_call(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
			       "org.freedesktop.systemd1.Manager", method, arguments, NULL,
			       G_DBUS_CALL_FLAGS_NONE, -1, unit->cancellable, unit_answered, unit);
}

/* Both at once: systemd takes them in their order. */
static void unit_ask(struct unit *unit, GDBusConnection *bus)
{
	unit_call(unit, bus, "SetUnitProperties",
		  g_variant_new("(sb@a(sv))", unit->name, TRUE, unit->properties));
	/* not StartUnit: an old worker of the same vGPU may still be on its way out */
	unit_call(unit, bus, "RestartUnit", g_variant_new("(ss)", unit->name, "replace"));
}

static void unit_got_bus(GObject *source, GAsyncResult *result, void *data)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GDBusConnection) bus = g_bus_get_finish(result, &error);
	struct unit *unit = data;

	(void)source;
	/* also after unit_free() */
	if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		return;
	if (!bus) {
		unit_fail(unit, "no system bus to ask systemd on (without systemd set launcher = fork): %s",
			  error->message);
		return;
	}
	g_dbus_connection_set_exit_on_close(bus, FALSE);
	unit_ask(unit, bus);
}

static gboolean unit_overdue(void *data)
{
	struct unit *unit = data;

	unit->timeout = 0;
	unit_fail(unit, "%s did not start within %u s: see systemctl status '%s'", unit->name,
		  UNIT_SECONDS, unit->name);
	return G_SOURCE_REMOVE;
}

/* ---- life ---- */

struct unit *unit_start(const struct unit_setup *setup, unit_fn fn, void *data, GError **error)
{
	struct unit *unit = g_new0(struct unit, 1);

	unit->instance = g_strdup(setup->instance);
	unit->name = g_strdup_printf(UNIT_NAME, setup->instance);
	unit->path = g_strdup_printf(UNIT_SOCKET, setup->instance);
	unit->listener = -1;
	unit->message = g_string_new(NULL);
	for (unsigned int i = 0; setup->arguments[i]; i++)
		g_string_append_len(unit->message, setup->arguments[i],
				    (gssize)strlen(setup->arguments[i]) + 1);
	unit->properties = unit_properties(setup);
	unit->cancellable = g_cancellable_new();
	unit->fn = fn;
	unit->data = data;
	if (!unit_listen(unit, error)) {
		unit_free(unit);
		return NULL;
	}
	for (; unit->fds_count < setup->fds_count; unit->fds_count++) {
		int fd = fcntl(setup->fds[unit->fds_count], F_DUPFD_CLOEXEC, 3);

		if (fd < 0) {
			g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(errno),
				    "no more descriptors: %s", g_strerror(errno));
			unit_free(unit);
			return NULL;
		}
		unit->fds[unit->fds_count] = fd;
	}
	unit->source = g_unix_fd_add(unit->listener, G_IO_IN, unit_connected, unit);
	unit->timeout = g_timeout_add_seconds(UNIT_SECONDS, unit_overdue, unit);
	g_bus_get(G_BUS_TYPE_SYSTEM, unit->cancellable, unit_got_bus, unit);
	return unit;
}

void unit_free(struct unit *unit)
{
	if (!unit)
		return;
	g_cancellable_cancel(unit->cancellable);
	g_object_unref(unit->cancellable);
	if (unit->source)
		g_source_remove(unit->source);
	if (unit->timeout)
		g_source_remove(unit->timeout);
	if (unit->listener >= 0) {
		close(unit->listener);
		unlink(unit->path);
	}
	for (unsigned int i = 0; i < unit->fds_count; i++)
		close(unit->fds[i]);
	g_variant_unref(unit->properties);
	g_string_free(unit->message, TRUE);
	g_free(unit->path);
	g_free(unit->name);
	g_free(unit->instance);
	g_free(unit);
}
