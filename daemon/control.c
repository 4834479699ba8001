// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/control.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

G_DEFINE_QUARK(octavo-control-error, control_error)

struct control {
	int fd;
	guint source;
	control_event_fn fn;
	void *data;
};

static enum control_error control_code(int error)
{
	switch (error) {
	case EBUSY:
		return CONTROL_ERROR_BUSY;
	case ENOENT:
	case ESTALE:
	case ENODEV:
		return CONTROL_ERROR_GONE;
	default:
		return CONTROL_ERROR_FAILED;
	}
}

static bool control_ioctl(struct control *control, unsigned long request, void *argument,
			  const char *what, GError **error)
{
	int saved;

	if (ioctl(control->fd, request, argument) >= 0)
		return true;
	saved = errno;
	g_set_error(error, CONTROL_ERROR, (int)control_code(saved), "%s: %s", what,
		    g_strerror(saved));
	return false;
}

struct control *control_open(const char *path, GError **error)
{
	struct control *control;
	int fd, abi, saved;

	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	saved = errno;
	if (fd < 0) {
		switch (saved) {
		case ENOENT:
		case ENXIO:
		case ENODEV:
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_ABSENT,
				    "%s does not exist: load the module with 'modprobe octavo'", path);
			break;
		case EBUSY:
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_BUSY,
				    "%s is held by another octavod: one host runs one (see 'systemctl status octavod')",
				    path);
			break;
		default:
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_FAILED, "cannot open %s: %s%s",
				    path, g_strerror(saved),
				    saved == EACCES || saved == EPERM ? ": octavod needs root" : "");
		}
		return NULL;
	}

	abi = ioctl(fd, OCTAVO_GET_ABI);
	if (abi != OCTAVO_ABI_VERSION) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_ABI,
			    "octavo.ko speaks version %d of the interface, octavod version %d: install both from one release and reload the module",
			    abi, OCTAVO_ABI_VERSION);
		close(fd);
		return NULL;
	}
	control = g_new0(struct control, 1);
	control->fd = fd;
	return control;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	if (control->source)
		g_source_remove(control->source);
	close(control->fd);
	g_free(control);
}

static gboolean control_ready(int fd, GIOCondition condition, void *data)
{
	struct octavo_control_event events[16];
	struct control *control = data;
	control_event_fn fn = control->fn;
	void *fn_data = control->data;
	ssize_t bytes;

	if (condition & G_IO_IN) {
		bytes = read(fd, events, sizeof(events));
		for (ssize_t i = 0; i < bytes / (ssize_t)sizeof(*events); i++)
			fn(&events[i], fn_data);
		if (bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR)))
			return G_SOURCE_CONTINUE;
	}
	control->source = 0;
	fn(NULL, fn_data);
	return G_SOURCE_REMOVE;
}

void control_watch(struct control *control, control_event_fn fn, void *data)
{
	control->fn = fn;
	control->data = data;
	control->source = g_unix_fd_add(control->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, control_ready,
					control);
}

bool control_parent_add(struct control *control, struct octavo_parent *parent, GError **error)
{
	return control_ioctl(control, OCTAVO_PARENT_ADD, parent, "adding the GPU", error);
}

bool control_parent_remove(struct control *control, const struct octavo_parent *parent,
			   GError **error)
{
	struct octavo_parent request = {
		.domain = parent->domain,
		.bus = parent->bus,
		.devfn = parent->devfn,
	};

	return control_ioctl(control, OCTAVO_PARENT_REMOVE, &request, "removing the GPU", error);
}

GArray *control_parents(struct control *control)
{
	GArray *parents = g_array_new(FALSE, FALSE, sizeof(struct octavo_parent));
	struct octavo_parent_list entry = { 0 };

	while (ioctl(control->fd, OCTAVO_PARENT_LIST, &entry) >= 0) {
		g_array_append_val(parents, entry.parent);
		entry = (struct octavo_parent_list){ .index = entry.index + 1 };
	}
	return parents;
}

GArray *control_vgpus(struct control *control)
{
	GArray *vgpus = g_array_new(FALSE, FALSE, sizeof(struct octavo_vgpu));
	struct octavo_vgpu_list entry = { 0 };

	while (ioctl(control->fd, OCTAVO_VGPU_LIST, &entry) >= 0) {
		g_array_append_val(vgpus, entry.vgpu);
		entry = (struct octavo_vgpu_list){ .index = entry.index + 1 };
	}
	return vgpus;
}

bool control_set_mode(struct control *control, const uint8_t uuid[16], uint32_t width,
		      uint32_t height, GError **error)
{
	struct octavo_vgpu_mode mode = { .width = width, .height = height };

	memcpy(mode.uuid, uuid, sizeof(mode.uuid));
	return control_ioctl(control, OCTAVO_VGPU_SET_MODE, &mode, "setting the mode", error);
}

int control_session_open(struct control *control, const uint8_t uuid[16], uint64_t session,
			 GError **error)
{
	struct octavo_session_open request = { .session = session };
	int fd;

	memcpy(request.uuid, uuid, sizeof(request.uuid));
	fd = ioctl(control->fd, OCTAVO_SESSION_OPEN, &request);
	if (fd < 0) {
		int saved = errno;

		g_set_error(error, CONTROL_ERROR, (int)control_code(saved), "opening the session: %s",
			    g_strerror(saved));
	}
	return fd;
}

bool control_session_refuse(struct control *control, const uint8_t uuid[16], uint64_t session,
			    const char *reason, GError **error)
{
	struct octavo_session_refuse request = { .session = session };

	memcpy(request.uuid, uuid, sizeof(request.uuid));
	g_strlcpy(request.reason, reason, sizeof(request.reason));
	return control_ioctl(control, OCTAVO_SESSION_REFUSE, &request, "refusing the open", error);
}
