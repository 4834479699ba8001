# SPDX-License-Identifier: LGPL-2.1-or-later
# The userspace half of the transport: session, guest memory, virtqueues.
noinst_LTLIBRARIES += liboctavo-vfio.la
liboctavo_vfio_la_SOURCES = \
	vfio/guest.c vfio/guest.h \
	vfio/queue.c vfio/queue.h \
	vfio/session.c vfio/session.h \
	vfio/spin.c vfio/spin.h \
	vfio/window.c vfio/window.h
