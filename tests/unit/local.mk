# SPDX-License-Identifier: LGPL-2.1-or-later
# A unit test is a CUnit program of one file: append its name to unit_tests and give it _SOURCES
# and _LDADD. It needs no VM, no GPU and no privilege.
unit_tests =
unit_cflags = $(AM_CFLAGS) $(CUNIT_CFLAGS)

# Guest memory and a driver's virtqueues without a guest
check_LTLIBRARIES += libfake-guest.la
libfake_guest_la_SOURCES = tests/unit/fake_guest.c tests/unit/fake_guest.h tests/unit/suite.h

unit_tests += test_guest test_queue test_edid test_console test_control
device_ldadd = libfake-guest.la liboctavo-gpu.la liboctavo-vfio.la $(CUNIT_LIBS)
test_guest_SOURCES = tests/unit/test_guest.c
test_guest_CFLAGS = $(unit_cflags)
test_guest_LDADD = $(device_ldadd)
test_queue_SOURCES = tests/unit/test_queue.c
test_queue_CFLAGS = $(unit_cflags)
test_queue_LDADD = $(device_ldadd)
test_edid_SOURCES = tests/unit/test_edid.c
test_edid_CFLAGS = $(unit_cflags)
test_edid_LDADD = $(device_ldadd)
test_console_SOURCES = tests/unit/test_console.c
test_console_CFLAGS = $(unit_cflags)
test_console_LDADD = $(device_ldadd)
test_control_SOURCES = tests/unit/test_control.c
test_control_CFLAGS = $(unit_cflags)
test_control_LDADD = $(device_ldadd)

if HAVE_CUNIT
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
