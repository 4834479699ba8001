# SPDX-License-Identifier: LGPL-2.1-or-later
# A unit test is a CUnit program of one file, tests/unit/test_NOUN.c: append its name to unit_tests
# and say what it links. It needs no VM, no GPU and no privilege.
unit_tests =
# Its source follows from its name; the flags are by pattern, as _CFLAGS would be a line a test.
AM_DEFAULT_SOURCE_EXT = .c
tests/unit/test_%.o: AM_CFLAGS += $(CUNIT_CFLAGS) $(GLIB_CFLAGS) $(JSON_CFLAGS)

# Guest memory and a driver's virtqueues without a guest
check_LTLIBRARIES += libfake-guest.la
libfake_guest_la_SOURCES = tests/unit/fake_guest.c tests/unit/fake_guest.h tests/unit/suite.h

unit_tests += tests/unit/test_capsets tests/unit/test_console tests/unit/test_control \
	tests/unit/test_edid tests/unit/test_guest tests/unit/test_handover tests/unit/test_queue \
	tests/unit/test_spin
device_ldadd = libfake-guest.la liboctavo-gpu.la liboctavo-vfio.la $(CUNIT_LIBS)
tests_unit_test_capsets_LDADD = $(device_ldadd)
tests_unit_test_console_LDADD = $(device_ldadd)
tests_unit_test_control_LDADD = $(device_ldadd)
tests_unit_test_edid_LDADD = $(device_ldadd)
tests_unit_test_guest_LDADD = $(device_ldadd)
tests_unit_test_handover_LDADD = $(device_ldadd)
tests_unit_test_queue_LDADD = $(device_ldadd)
tests_unit_test_spin_LDADD = $(device_ldadd)

# octavod's parts
check_LTLIBRARIES += libfake-host.la
libfake_host_la_SOURCES = tests/unit/fake_host.c tests/unit/fake_host.h
libfake_host_la_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
libfake_host_la_LIBADD = liboctavo-daemon.la
unit_tests += tests/unit/test_backoff tests/unit/test_conf tests/unit/test_device \
	tests/unit/test_ident tests/unit/test_metrics tests/unit/test_probe tests/unit/test_unit \
	tests/unit/test_worker
daemon_ldadd = liboctavo-daemon.la $(GLIB_LIBS) $(CUNIT_LIBS)
tests_unit_test_backoff_LDADD = $(daemon_ldadd)
tests_unit_test_conf_LDADD = $(daemon_ldadd)
tests_unit_test_device_LDADD = $(daemon_ldadd)
tests_unit_test_ident_LDADD = $(daemon_ldadd)
tests_unit_test_metrics_LDADD = libfake-host.la $(daemon_ldadd) $(JSON_LIBS)
tests_unit_test_probe_LDADD = $(daemon_ldadd)
tests_unit_test_unit_LDADD = $(daemon_ldadd)
tests_unit_test_worker_LDADD = $(daemon_ldadd)
EXTRA_DIST += tests/unit/folder.h

# octavoctl's parts
unit_tests += tests/unit/test_doctor tests/unit/test_nova
tools_ldadd = liboctavo-tools.la $(GLIB_LIBS) $(CUNIT_LIBS)
tests_unit_test_doctor_LDADD = $(tools_ldadd)
tests_unit_test_nova_LDADD = $(tools_ldadd)

# Policies, turns, simulator
unit_tests += tests/unit/test_policy tests/unit/test_sim
tests_unit_test_policy_LDADD = liboctavo-policy.la $(CUNIT_LIBS)
tests_unit_test_sim_LDADD = liboctavo-sim.la $(CUNIT_LIBS)

# Gate and arbiter, with processes that are killed
unit_tests += tests/unit/test_gate tests/unit/test_arbiter
tests_unit_test_gate_LDADD = liboctavo-gate.la $(CUNIT_LIBS)
tests_unit_test_arbiter_LDADD = liboctavo-arbiter.la $(CUNIT_LIBS)
EXTRA_DIST += tests/unit/crew.h

if HAVE_CUNIT
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
