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

# The gate is what render processes and the worker link; the arbiter is octavod's and octavo-run's.
noinst_LTLIBRARIES += liboctavo-gate.la liboctavo-arbiter.la
liboctavo_gate_la_SOURCES = \
	scheduler/futex.c \
	scheduler/gate.c scheduler/gate.h scheduler/gate_private.h \
	scheduler/gate_lock.c \
	scheduler/gate_map.c \
	scheduler/gate_quota.c \
	scheduler/gate_slot.c \
	scheduler/join.c scheduler/join.h
liboctavo_arbiter_la_SOURCES = \
	scheduler/arbiter.c scheduler/arbiter.h \
	scheduler/guard.c scheduler/guard.h \
	scheduler/join_server.c
liboctavo_arbiter_la_LIBADD = liboctavo-policy.la liboctavo-gate.la

# The Vulkan layer: a module that the loader opens by the path in its manifest
layerdir = $(pkglibdir)
layer_LTLIBRARIES = VkLayer_octavo_slice.la
VkLayer_octavo_slice_la_SOURCES = \
	scheduler/layer/device.c \
	scheduler/layer/entry.c \
	scheduler/layer/instance.c \
	scheduler/layer/layer.h \
	scheduler/layer/memory.c \
	scheduler/layer/semaphore.c \
	scheduler/layer/submit.c \
	scheduler/layer/watcher.c
VkLayer_octavo_slice_la_CFLAGS = $(AM_CFLAGS) $(VULKAN_CFLAGS)
VkLayer_octavo_slice_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -Wl,-z,defs
VkLayer_octavo_slice_la_LIBADD = liboctavo-gate.la
layermanifestdir = $(datadir)/vulkan/explicit_layer.d
nodist_layermanifest_DATA = VkLayer_octavo_slice.json
EXTRA_DIST += scheduler/layer/VkLayer_octavo_slice.json.in
CLEANFILES += VkLayer_octavo_slice.json
VkLayer_octavo_slice.json: scheduler/layer/VkLayer_octavo_slice.json.in Makefile
	$(AM_V_GEN)sed 's|@LAYER_LIBRARY@|$(layerdir)/VkLayer_octavo_slice.so|' \
		$(srcdir)/scheduler/layer/VkLayer_octavo_slice.json.in > $@

bin_PROGRAMS += octavo-sim
octavo_sim_SOURCES = tools/octavo-sim.c
octavo_sim_LDADD = liboctavo-sim.la

bin_PROGRAMS += octavo-run
octavo_run_SOURCES = tools/octavo-run.c
octavo_run_CPPFLAGS = $(AM_CPPFLAGS) -DLAYER_MANIFEST_DIR=\"$(layermanifestdir)\" \
	-DLAYER_LIBRARY=\"$(layerdir)/VkLayer_octavo_slice.so\"
octavo_run_CFLAGS = $(AM_CFLAGS) $(VULKAN_CFLAGS)
octavo_run_LDADD = liboctavo-arbiter.la

# Loads with exact results, and the benchmark of shares: `make check` builds them
check_PROGRAMS += load shares
chain_sources = tests/native/vulkan.c tests/native/vulkan.h tests/native/load.h
EXTRA_DIST += tests/native/chain.comp tests/native/layer.sh tests/native/20-layer.sh \
	tests/native/30-run.sh tests/native/40-shares.sh tests/bench/shares
CLEANFILES += tests/native/chain.spv.h
tests/native/chain.spv.h: tests/native/chain.comp
	$(AM_V_GEN)$(MKDIR_P) tests/native && \
		$(GLSLANG) -V --vn chain_spv -o $@ $(srcdir)/tests/native/chain.comp >/dev/null
load_SOURCES = tests/native/load.c $(chain_sources)
nodist_load_SOURCES = tests/native/chain.spv.h
load_CFLAGS = $(AM_CFLAGS) $(VULKAN_CFLAGS)
load_LDADD = $(VULKAN_LIBS)
shares_SOURCES = tests/bench/shares.c tests/bench/player.c tests/bench/player.h
shares_LDADD = liboctavo-arbiter.la -lm
# A script beside shares.c: make's own rule would make it anew of a source that is newer
tests/bench/shares: ;
tests/native/load-vulkan.$(OBJEXT): tests/native/chain.spv.h

check_PROGRAMS += test_layer
test_layer_SOURCES = tests/native/test_layer.c $(chain_sources)
nodist_test_layer_SOURCES = tests/native/chain.spv.h
test_layer_CFLAGS = $(AM_CFLAGS) $(VULKAN_CFLAGS) $(CUNIT_CFLAGS)
test_layer_LDADD = liboctavo-arbiter.la $(VULKAN_LIBS) $(CUNIT_LIBS)
tests/native/test_layer-vulkan.$(OBJEXT): tests/native/chain.spv.h

check_PROGRAMS += load-gl
load_gl_SOURCES = tests/native/load-gl.c tests/native/load.h
load_gl_CFLAGS = $(AM_CFLAGS) $(EPOXY_CFLAGS)
load_gl_LDADD = liboctavo-gate.la $(EPOXY_LIBS)
