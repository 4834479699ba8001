# SPDX-License-Identifier: LGPL-2.1-or-later
# Policies and turns are pure: the arbiter and the simulator link the same library.
noinst_LTLIBRARIES += liboctavo-policy.la liboctavo-sim.la
liboctavo_policy_la_SOURCES = \
	scheduler/policy.c scheduler/policy.h \
	scheduler/turn.c scheduler/turn.h
liboctavo_sim_la_SOURCES = \
	scheduler/sim.c scheduler/sim.h \
	scheduler/sim_report.c \
	scheduler/sim_svg.c \
	scheduler/sim_trace.c
liboctavo_sim_la_LIBADD = liboctavo-policy.la

bin_PROGRAMS += octavo-sim
octavo_sim_SOURCES = tools/octavo-sim.c
octavo_sim_LDADD = liboctavo-sim.la
