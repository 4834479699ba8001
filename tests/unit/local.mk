# SPDX-License-Identifier: LGPL-2.1-or-later
# A unit test is a CUnit program of one file: append its name to unit_tests and give it _SOURCES
# and _LDADD. It needs no VM, no GPU and no privilege.
unit_tests =
unit_cflags = $(AM_CFLAGS) $(CUNIT_CFLAGS)

if HAVE_CUNIT
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
