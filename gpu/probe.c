// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <epoxy/gl.h>
#include <virgl/virglrenderer.h>

#include "gpu/log.h"
#include "gpu/renderer.h"

bool probe_render_node(const char *pci, char path[64])
{
	char folder[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (!pci)
		return false;
	snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s/drm", pci);
	dir = opendir(folder);
	while (dir && !found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "renderD", 7) != 0 || strlen(entry->d_name) > 40)
			continue;
		snprintf(path, 64, "/dev/dri/%.40s", entry->d_name);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* ------------------------------------------------------------------------------------------------
 * OpenGL, in a child
 */

static const char *probe_node;

static int probe_drm_fd(void *cookie)
{
	(void)cookie;
	return probe_node[0] ? open(probe_node, O_RDWR | O_CLOEXEC) : -1;
}

static void probe_fence(void *cookie, uint32_t fence)
{
	(void)cookie;
	(void)fence;
}

static void probe_context_fence(void *cookie, uint32_t context, uint32_t ring, uint64_t fence)
{
	(void)cookie;
	(void)context;
	(void)ring;
	(void)fence;
}

/* Starts virglrenderer as the renderer will, and tells the name of what it found. */
static void probe_opengl_child(int fd)
{
	static struct virgl_renderer_callbacks callbacks = {
		.version = 3,
		.write_fence = probe_fence,
		.get_drm_fd = probe_drm_fd,
		.write_context_fence = probe_context_fence,
	};
	uint32_t version = 0, bytes = 0;
	const char *name;
	void *caps;

	if (virgl_renderer_init(&callbacks, renderer_flags(RENDERER_VIRGL), &callbacks))
		return;
	virgl_renderer_get_cap_set(VIRTIO_GPU_CAPSET_VIRGL2, &version, &bytes);
	caps = bytes ? calloc(1, bytes) : NULL;
	if (!caps)
		return;
	virgl_renderer_fill_caps(VIRTIO_GPU_CAPSET_VIRGL2, version, caps);
	/* the first word is the version; 0 would turn a guest to its own software renderer */
	if (*(uint32_t *)caps == 0)
		return;
	virgl_renderer_force_ctx_0();
	name = (const char *)glGetString(GL_RENDERER);
	if (!name)
		name = "unknown";
	if (write(fd, name, strnlen(name, 127)) < 0)
		return;
}

struct probe_child {
	pid_t pid;
	int fd;
};

static int probe_opengl_start(struct probe_child *child)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	child->pid = fork();
	if (child->pid == 0) {
		close(pipes[0]);
		probe_opengl_child(pipes[1]);
		_exit(0);
	}
	close(pipes[1]);
	child->fd = pipes[0];
	if (child->pid < 0) {
		close(pipes[0]);
		return -EAGAIN;
	}
	return 0;
}

static void probe_opengl_finish(struct probe_child *child, struct probe *probe)
{
	ssize_t bytes;

	do
		bytes = read(child->fd, probe->opengl, sizeof(probe->opengl) - 1);
	while (bytes < 0 && errno == EINTR);
	close(child->fd);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ------------------------------------------------------------------------------------------------
 */

static void probe_tell_devices(const struct vulkan_device *devices, int count)
{
	char uuid[33];

	if (count <= 0)
		log_error("no Vulkan device was found on this host: is a driver installed?");
	for (int i = 0; i < count; i++) {
		vulkan_uuid_format(devices[i].uuid, uuid);
		log_line(NULL, 3, "Vulkan device found: %s '%s' at %s", uuid, devices[i].name,
			 devices[i].pci[0] ? devices[i].pci : "no PCI address that its driver tells");
	}
}

static int probe_vulkan(const struct probe_wish *wish, struct probe *probe)
{
	struct vulkan_device devices[VULKAN_DEVICES_MAX];
	const struct vulkan_device *chosen;
	int count = vulkan_list(devices);

	chosen = vulkan_choose(devices, count, wish->vulkan_device, wish->pci);
	if (chosen) {
		probe->vulkan = *chosen;
		probe->has_vulkan = true;
		probe->capsets |= RENDERER_VENUS;
		return 0;
	}
	if (wish->mode != PROBE_VENUS && !wish->vulkan_device) {
		log_info("no Vulkan device is the GPU %s: the vGPU has no Vulkan", wish->pci);
		return 0;
	}
	if (wish->vulkan_device)
		log_error("no Vulkan device has the UUID or name '%s' (vulkan_device of octavo.conf)",
			  wish->vulkan_device);
	else
		log_error("no Vulkan device is at PCI address %s: name one with vulkan_device in "
			  "octavo.conf", wish->pci ? wish->pci : "(not told)");
	probe_tell_devices(devices, count);
	return wish->mode == PROBE_VENUS ? -ENODEV : 0;
}

int probe_run(const struct probe_wish *wish, struct probe *probe)
{
	struct probe_child child = { .fd = -1 };
	int ret = 0, opengl;

	memset(probe, 0, sizeof(*probe));
	if (wish->mode == PROBE_2D)
		return 0;
	if (wish->render_node)
		snprintf(probe->render_node, sizeof(probe->render_node), "%s", wish->render_node);
	else
		probe_render_node(wish->pci, probe->render_node);
	probe_node = probe->render_node;
	opengl = probe_opengl_start(&child);
	if (wish->mode != PROBE_VIRGL)
		ret = probe_vulkan(wish, probe);
	if (!opengl)
		probe_opengl_finish(&child, probe);
	if (probe->opengl[0]) {
		probe->capsets |= RENDERER_VIRGL;
	} else if (wish->mode == PROBE_VIRGL) {
		log_error("OpenGL does not start on %s: virgl was asked for and cannot be served",
			  probe->render_node[0] ? probe->render_node : "EGL without a device");
		ret = -ENODEV;
	}
	return ret;
}
