# SPDX-License-Identifier: LGPL-2.1-or-later

# octavod and octavoctl on a bus of their own
TESTS += tests/native/bus.sh
EXTRA_DIST += tests/native/bus.sh

# The device with the host's real renderer
native_tests = test_render
test_render_SOURCES = tests/native/test_render.c
test_render_CFLAGS = $(AM_CFLAGS) $(CUNIT_CFLAGS) $(VIRGL_CFLAGS)
test_render_LDADD = libfake-guest.la liboctavo-render.la liboctavo-gpu.la liboctavo-vfio.la liboctavo-gate.la $(CUNIT_LIBS) $(VIRGL_LIBS)
if HAVE_CUNIT
check_PROGRAMS += $(native_tests)
TESTS += $(native_tests)
endif
