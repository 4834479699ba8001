# SPDX-License-Identifier: LGPL-2.1-or-later

# octavod and octavoctl on a bus of their own
TESTS += tests/native/bus.sh
EXTRA_DIST += tests/native/bus.sh tests/native/daemon.sh tests/expect.sh

# octavod's HTTP server over a made-up host
check_PROGRAMS += serve_status
serve_status_SOURCES = tests/native/serve_status.c
serve_status_CFLAGS = $(AM_CFLAGS) $(GLIB_CFLAGS)
serve_status_LDADD = libfake-host.la liboctavo-endpoint.la $(GLIB_LIBS)

# Run by ./lab check native
EXTRA_DIST += tests/native/60-libvirt-xml.sh tests/native/61-json.sh tests/native/62-kubevirt-names.sh tests/json-check

# The device with the host's real renderer
native_tests = test_render
test_render_SOURCES = tests/native/test_render.c
test_render_CFLAGS = $(AM_CFLAGS) $(CUNIT_CFLAGS) $(VIRGL_CFLAGS)
test_render_LDADD = libfake-guest.la liboctavo-render.la liboctavo-gpu.la liboctavo-vfio.la liboctavo-gate.la $(CUNIT_LIBS) $(VIRGL_LIBS)
if HAVE_CUNIT
check_PROGRAMS += $(native_tests)
TESTS += $(native_tests)
endif
