/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe.h - what this host can render for a vGPU, found out by trying
 *
 * virglrenderer announces Vulkan without asking a driver, and an OpenGL that does not start leaves
 * guests with a silent software renderer. So nothing is offered to a guest that was not seen to
 * work. Drivers are loaded in child processes: this one stays as it was.
 */
#ifndef OCTAVO_GPU_PROBE_H
#define OCTAVO_GPU_PROBE_H

#include <stdbool.h>

#include "gpu/vulkan.h"

enum probe_mode {
	PROBE_AUTO,		/* what works */
	PROBE_2D,		/* nothing is tried */
	PROBE_VIRGL,		/* OpenGL, which must work */
	PROBE_VENUS,		/* Vulkan, which must work, and OpenGL if it does */
};

struct probe_wish {
	enum probe_mode mode;
	const char *pci;		/* address of the GPU, or NULL */
	const char *render_node;	/* NULL: the GPU's, if it has one */
	const char *vulkan_device;	/* see vulkan_choose() */
};

struct probe {
	unsigned int capsets;		/* RENDERER_*; 0: 2D only */
	char render_node[64];		/* "": OpenGL without a device */
	char opengl[128];		/* its renderer, "" if it does not work */
	bool has_vulkan;
	struct vulkan_device vulkan;
};

/* The render node of the GPU at @pci, false if it has none. */
bool probe_render_node(const char *pci, char path[64]);

/*
 * 0, or -ENODEV when what must work does not: the reason is logged, with the Vulkan devices that
 * were found. Call it before there are threads.
 */
int probe_run(const struct probe_wish *wish, struct probe *probe);

#endif
