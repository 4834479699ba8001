# SPDX-License-Identifier: LGPL-2.1-or-later
# The virtio-gpu device and the worker program. The device is a library so that tests can have it
# without a session.
noinst_LTLIBRARIES += liboctavo-gpu.la
liboctavo_gpu_la_SOURCES = \
	gpu/backing.c gpu/backing.h \
	gpu/capsets.c gpu/capsets.h \
	gpu/command.c gpu/command.h \
	gpu/console.c gpu/console.h \
	gpu/control.c gpu/control.h \
	gpu/cursor.c gpu/cursor.h \
	gpu/edid.c gpu/edid.h \
	gpu/gpu.c gpu/gpu.h \
	gpu/handover.c gpu/handover.h \
	gpu/log.c gpu/log.h \
	gpu/resource.c gpu/resource.h \
	gpu/surface.c gpu/surface.h \
	gpu/timeline.c gpu/timeline.h
liboctavo_gpu_la_LIBADD = liboctavo-vfio.la

# The renderer: everything that calls virglrenderer
noinst_LTLIBRARIES += liboctavo-render.la
liboctavo_render_la_SOURCES = \
	gpu/blob.c gpu/blob.h \
	gpu/context.c gpu/context.h \
	gpu/picture.c gpu/picture.h \
	gpu/render.c gpu/render.h \
	gpu/renderer.c gpu/renderer.h \
	gpu/server.c gpu/server.h
liboctavo_render_la_CFLAGS = $(AM_CFLAGS) $(VIRGL_CFLAGS)
liboctavo_render_la_LIBADD = liboctavo-gpu.la liboctavo-gate.la $(VIRGL_LIBS)

pkglibexec_PROGRAMS += octavo-vgpu
octavo_vgpu_SOURCES = \
	gpu/main.c \
	gpu/probe.c gpu/probe.h \
	gpu/vulkan.c gpu/vulkan.h \
	gpu/worker.c gpu/worker.h
octavo_vgpu_CFLAGS = $(AM_CFLAGS) $(VIRGL_CFLAGS) $(EPOXY_CFLAGS) $(VULKAN_CFLAGS)
octavo_vgpu_LDADD = liboctavo-render.la $(EPOXY_LIBS) $(VULKAN_LIBS)
