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

#define UNIT_PREFIX	"octavo-vgpu@"
#define UNIT_SUFFIX	".service"
#define UNIT_SECONDS	10u		/* a VFIO open does not wait that long, a replacement may */
#define UNIT_BACKLOG	64
#define UNIT_DROPINS	"/run/systemd/system"

/* Linux 6.5; not in every libc's headers */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77
#endif

struct unit_socket {
	char *path;
	int fd;
	guint source;
	GQueue units;		/* struct unit *, those that have not come yet */
};

struct unit {
	struct unit_socket *socket;
	char *instance;
	char *name;
	guint timeout;
	GString *message;	/* arguments, each with its NUL */
	int fds[UNIT_FDS_MAX];
	unsigned int fds_count;
	GVariant *properties;	/* for SetUnitProperties */
	GCancellable *cancellable;
	unit_fn fn;
	void *data;
};

char *unit_instance(const char *cgroup)
{
	g_auto(GStrv) lines = g_strsplit(cgroup, "\n", -1);

	for (unsigned int i = 0; lines[i]; i++) {
		const char *name = strrchr(lines[i], '/');

		if (!name || !g_str_has_prefix(name + 1, UNIT_PREFIX) ||
		    !g_str_has_suffix(name, UNIT_SUFFIX))
			continue;
		name += 1 + strlen(UNIT_PREFIX);
		return g_strndup(name, strlen(name) - strlen(UNIT_SUFFIX));
	}
	return NULL;
}

char *unit_user(const char *instance)
{
	g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, instance, -1);

	/* 31 characters, the most that systemd takes */
	return g_strdup_printf("octavo-%.24s", sum);
}

static bool unit_write_user(const struct unit *unit, GError **error)
{
	g_autofree char *folder = g_strdup_printf(UNIT_DROPINS "/%s.d", unit->name);
	g_autofree char *path = g_build_filename(folder, "50-octavo-user.conf", NULL);
	g_autofree char *user = unit_user(unit->instance), *known = NULL;
	g_autofree char *text = g_strdup_printf("# by octavod\n[Service]\nUser=%s\n", user);

	if (g_file_get_contents(path, &known, NULL, NULL) && g_str_equal(known, text))
		return true;
	g_mkdir_with_parents(folder, 0755);
	if (!g_file_set_contents(path, text, -1, error))
		return false;
	/* whatever the umask: it is no secret */
	if (chmod(folder, 0755) || chmod(path, 0644))
		g_debug("%s: %s", path, g_strerror(errno));
	return true;
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

/* The unit that waits for the process behind @connection, or NULL. */
static struct unit *unit_of_peer(struct unit_socket *socket, int connection, pid_t *pid, int *pidfd)
{
	socklen_t length = sizeof(*pidfd), creds_length = sizeof(struct ucred);
	g_autofree char *path = NULL, *cgroup = NULL, *instance = NULL;
	struct ucred creds;

	/* the pidfd first: while it is held the number means no other process */
	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, pidfd, &length) ||
	    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &creds, &creds_length)) {
		g_warning("%s: who connected cannot be told: %s", socket->path, g_strerror(errno));
		return NULL;
	}
	*pid = creds.pid;
	path = g_strdup_printf("/proc/%d/cgroup", (int)creds.pid);
	if (creds.uid == 0 && g_file_get_contents(path, &cgroup, NULL, NULL))
		instance = unit_instance(cgroup);
	for (GList *at = socket->units.head; instance && at; at = at->next)
		if (g_str_equal(((struct unit *)at->data)->instance, instance))
			return at->data;
	g_warning("%s: process %d has nothing to get here (user %u, cgroup %s)", socket->path,
		  (int)creds.pid, (unsigned int)creds.uid, cgroup ? g_strstrip(cgroup) : "not known");
	close(*pidfd);
	return NULL;
}

static void unit_connected(struct unit_socket *socket, int connection)
{
	int pidfd = -1;
	pid_t pid = 0;
	struct unit *unit = unit_of_peer(socket, connection, &pid, &pidfd);

	if (!unit)
		return;
	g_queue_remove(&socket->units, unit);
	if (unit_send(unit, connection)) {
		unit_finish(unit, pid, pidfd, NULL);
		return;
	}
	unit_fail(unit, "%s: cannot hand over to it: %s", unit->name, g_strerror(errno));
	close(pidfd);
}

static gboolean unit_socket_ready(int fd, GIOCondition condition, void *data)
{
	int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	(void)condition;
	if (connection < 0)
		return G_SOURCE_CONTINUE;
	unit_connected(data, connection);
	/* what was sent stays in its end */
	close(connection);
	return G_SOURCE_CONTINUE;
}

/* Zero, or an errno. */
static int unit_socket_listen(struct unit_socket *unit_socket)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct sockaddr *generic = (const struct sockaddr *)&address;
	int probe;

	if (g_strlcpy(address.sun_path, unit_socket->path, sizeof(address.sun_path)) >=
	    sizeof(address.sun_path))
		return ENAMETOOLONG;
	probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unit_socket->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0 || unit_socket->fd < 0)
		return errno;
	if (connect(probe, generic, sizeof(address)) == 0 || errno == EAGAIN) {
		close(probe);
		return EADDRINUSE;
	}
	close(probe);
	/* of an octavod that was killed */
	unlink(unit_socket->path);
	/* nobody can connect before listen(), so there is time to close it to others */
	if (bind(unit_socket->fd, generic, sizeof(address)) || chmod(unit_socket->path, 0600) ||
	    listen(unit_socket->fd, UNIT_BACKLOG))
		return errno;
	return 0;
}

struct unit_socket *unit_socket_new(const char *path, GError **error)
{
	struct unit_socket *socket = g_new0(struct unit_socket, 1);
	g_autofree char *folder = g_path_get_dirname(path);
	int err;

	socket->fd = -1;
	socket->path = g_strdup(path);
	g_queue_init(&socket->units);
	g_mkdir_with_parents(folder, 0755);
	err = unit_socket_listen(socket);
	if (!err) {
		socket->source = g_unix_fd_add(socket->fd, G_IO_IN, unit_socket_ready, socket);
		return socket;
	}
	if (err == EADDRINUSE)
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_EXISTS,
			    "another octavod listens on %s: one host runs one (see 'systemctl status octavod')",
			    path);
	else
		g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(err),
			    "cannot listen on %s: %s (without systemd set launcher = fork)", path,
			    g_strerror(err));
	unit_socket_free(socket);
	return NULL;
}

void unit_socket_free(struct unit_socket *socket)
{
	if (!socket)
		return;
	if (socket->source) {
		g_source_remove(socket->source);
		unlink(socket->path);
	}
	if (socket->fd >= 0)
		close(socket->fd);
	g_free(socket->path);
	g_free(socket);
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

struct unit *unit_start(struct unit_socket *socket, const struct unit_setup *setup, unit_fn fn,
			void *data, GError **error)
{
	struct unit *unit = g_new0(struct unit, 1);

	unit->socket = socket;
	unit->instance = g_strdup(setup->instance);
	unit->name = g_strconcat(UNIT_PREFIX, setup->instance, UNIT_SUFFIX, NULL);
	unit->message = g_string_new(NULL);
	for (unsigned int i = 0; setup->arguments[i]; i++)
		g_string_append_len(unit->message, setup->arguments[i],
				    (gssize)strlen(setup->arguments[i]) + 1);
	unit->properties = unit_properties(setup);
	unit->cancellable = g_cancellable_new();
	unit->fn = fn;
	unit->data = data;
	for (; unit->fds_count < setup->fds_count; unit->fds_count++) {
		int fd = fcntl(setup->fds[unit->fds_count], F_DUPFD_CLOEXEC, 3);

		if (fd < 0) {
			g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(errno),
				    "%s: its descriptors cannot be kept: %s", unit->name,
				    g_strerror(errno));
			unit_free(unit);
			return NULL;
		}
		unit->fds[unit->fds_count] = fd;
	}
	if (!unit_write_user(unit, error)) {
		unit_free(unit);
		return NULL;
	}
	g_queue_push_tail(&socket->units, unit);
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
	g_queue_remove(&unit->socket->units, unit);
	if (unit->timeout)
		g_source_remove(unit->timeout);
	for (unsigned int i = 0; i < unit->fds_count; i++)
		close(unit->fds[i]);
	g_variant_unref(unit->properties);
	g_string_free(unit->message, TRUE);
	g_free(unit->name);
	g_free(unit->instance);
	g_free(unit);
}
