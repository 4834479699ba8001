# SPDX-License-Identifier: LGPL-2.1-or-later
# A unit test is a CUnit program of one file: append its name to unit_tests and give it _SOURCES
# and _LDADD. It needs no VM, no GPU and no privilege.
unit_tests =
unit_cflags = $(AM_CFLAGS) $(CUNIT_CFLAGS)

# Guest memory and a driver's virtqueues without a guest
check_LTLIBRARIES += libfake-guest.la
libfake_guest_la_SOURCES = tests/unit/fake_guest.c tests/unit/fake_guest.h tests/unit/suite.h

unit_tests += test_guest test_queue test_spin test_capsets test_edid test_console test_control \
	test_handover
device_ldadd = libfake-guest.la liboctavo-gpu.la liboctavo-vfio.la $(CUNIT_LIBS)
test_guest_SOURCES = tests/unit/test_guest.c
test_guest_CFLAGS = $(unit_cflags)
test_guest_LDADD = $(device_ldadd)
test_queue_SOURCES = tests/unit/test_queue.c
test_queue_CFLAGS = $(unit_cflags)
test_queue_LDADD = $(device_ldadd)
test_capsets_SOURCES = tests/unit/test_capsets.c
test_capsets_CFLAGS = $(unit_cflags)
test_capsets_LDADD = $(device_ldadd)
test_spin_SOURCES = tests/unit/test_spin.c
test_spin_CFLAGS = $(unit_cflags)
test_spin_LDADD = $(device_ldadd)
test_edid_SOURCES = tests/unit/test_edid.c
test_edid_CFLAGS = $(unit_cflags)
test_edid_LDADD = $(device_ldadd)
test_console_SOURCES = tests/unit/test_console.c
test_console_CFLAGS = $(unit_cflags)
test_console_LDADD = $(device_ldadd)
test_control_SOURCES = tests/unit/test_control.c
test_control_CFLAGS = $(unit_cflags)
test_control_LDADD = $(device_ldadd)
test_handover_SOURCES = tests/unit/test_handover.c
test_handover_CFLAGS = $(unit_cflags)
test_handover_LDADD = $(device_ldadd)

# octavod's and octavoctl's parts
unit_tests += test_backoff test_conf test_device test_doctor test_ident test_metrics test_nova \
	test_probe test_unit test_worker
daemon_test_cflags = $(unit_cflags) $(GLIB_CFLAGS)
daemon_test_ldadd = liboctavo-daemon.la $(GLIB_LIBS) $(CUNIT_LIBS)
test_backoff_SOURCES = tests/unit/test_backoff.c
test_backoff_CFLAGS = $(daemon_test_cflags)
test_backoff_LDADD = $(daemon_test_ldadd)
test_conf_SOURCES = tests/unit/test_conf.c
test_conf_CFLAGS = $(daemon_test_cflags)
test_conf_LDADD = $(daemon_test_ldadd)
test_device_SOURCES = tests/unit/test_device.c
test_device_CFLAGS = $(daemon_test_cflags)
test_device_LDADD = $(daemon_test_ldadd)
test_ident_SOURCES = tests/unit/test_ident.c
test_ident_CFLAGS = $(daemon_test_cflags)
test_ident_LDADD = $(daemon_test_ldadd)
check_LTLIBRARIES += libfake-host.la
libfake_host_la_SOURCES = tests/unit/fake_host.c tests/unit/fake_host.h
libfake_host_la_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
libfake_host_la_LIBADD = liboctavo-daemon.la
test_metrics_SOURCES = tests/unit/test_metrics.c
test_metrics_CFLAGS = $(daemon_test_cflags) $(JSON_CFLAGS)
test_metrics_LDADD = libfake-host.la $(daemon_test_ldadd) $(JSON_LIBS)
test_probe_SOURCES = tests/unit/test_probe.c
test_probe_CFLAGS = $(daemon_test_cflags)
test_probe_LDADD = $(daemon_test_ldadd)
test_unit_SOURCES = tests/unit/test_unit.c
test_unit_CFLAGS = $(daemon_test_cflags)
test_unit_LDADD = $(daemon_test_ldadd)
test_worker_SOURCES = tests/unit/test_worker.c
test_worker_CFLAGS = $(daemon_test_cflags)
test_worker_LDADD = $(daemon_test_ldadd)
test_doctor_SOURCES = tests/unit/test_doctor.c
test_doctor_CFLAGS = $(daemon_test_cflags)
test_doctor_LDADD = liboctavo-tools.la $(GLIB_LIBS) $(CUNIT_LIBS)
test_nova_SOURCES = tests/unit/test_nova.c
test_nova_CFLAGS = $(daemon_test_cflags)
test_nova_LDADD = liboctavo-tools.la $(GLIB_LIBS) $(CUNIT_LIBS)
EXTRA_DIST += tests/unit/folder.h

# Policies, turns, simulator
unit_tests += test_policy test_sim
test_policy_SOURCES = tests/unit/test_policy.c
test_policy_CFLAGS = $(unit_cflags)
test_policy_LDADD = liboctavo-policy.la $(CUNIT_LIBS)
test_sim_SOURCES = tests/unit/test_sim.c
test_sim_CFLAGS = $(unit_cflags)
test_sim_LDADD = liboctavo-sim.la $(CUNIT_LIBS)

# Gate and arbiter, with processes that are killed
unit_tests += test_gate test_arbiter
EXTRA_DIST += tests/unit/crew.h
test_gate_SOURCES = tests/unit/test_gate.c
test_gate_CFLAGS = $(unit_cflags)
test_gate_LDADD = liboctavo-gate.la $(CUNIT_LIBS)
test_arbiter_SOURCES = tests/unit/test_arbiter.c
test_arbiter_CFLAGS = $(unit_cflags)
test_arbiter_LDADD = liboctavo-arbiter.la $(CUNIT_LIBS)

if HAVE_CUNIT
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
