# SPDX-License-Identifier: LGPL-2.1-or-later
# The module is built by kbuild, not from here: see mdev/Makefile. Its source is installed where
# DKMS looks for it; the interface header is for whoever writes another worker.
mdev_sources = \
	mdev/Kbuild mdev/Makefile \
	mdev/capture.c mdev/config.c mdev/console.c mdev/control.c mdev/device.c mdev/doorbell.c \
	mdev/events.c mdev/guest.c mdev/irq.c mdev/main.c mdev/parent.c mdev/registers.c mdev/session.c \
	mdev/type.c mdev/vgpu.c mdev/window.c \
	mdev/compat.h mdev/octavo.h mdev/trace.h mdev/vgpu.h mdev/window.h

dist_dkmssource_DATA = $(mdev_sources)
nodist_dkmssource_DATA = mdev/dkms.conf
CLEANFILES += mdev/dkms.conf
EXTRA_DIST += mdev/dkms.conf.in

mdev/dkms.conf: mdev/dkms.conf.in Makefile
	$(AM_V_GEN)$(MKDIR_P) mdev && \
	$(SED) 's/[@]VERSION[@]/$(PACKAGE_VERSION)/g' $(srcdir)/mdev/dkms.conf.in >$@.tmp && mv $@.tmp $@
