# SPDX-License-Identifier: LGPL-2.1-or-later
# Misuses the module as root in the host VM; run by ./lab check spine.
noinst_PROGRAMS += hostile
hostile_SOURCES = tests/hostile/hostile.c tests/hostile/hostile.h tests/hostile/host.c \
	tests/hostile/vm.c tests/hostile/worker.c tests/hostile/control.c tests/hostile/device.c \
	tests/hostile/session.c tests/hostile/guest.c tests/hostile/window.c tests/hostile/race.c \
	tests/hostile/parent.c tests/hostile/doorbell.c
hostile_CPPFLAGS = -I$(top_srcdir) -I$(top_srcdir)/tests/hostile -D_GNU_SOURCE
hostile_LDADD = -lpthread

# A VM's driver against a real worker
noinst_PROGRAMS += hostile-queues
hostile_queues_SOURCES = tests/hostile/queues.c tests/hostile/vm.c tests/hostile/hostile.h
hostile_queues_CPPFLAGS = $(hostile_CPPFLAGS)
hostile_queues_LDADD = -lpthread
