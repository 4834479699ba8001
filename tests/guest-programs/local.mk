# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs that run in a guest, with exact results. They use system libraries only; the lab hands
# them in as files.
noinst_PROGRAMS += vk_check gl_check vq_ping vq_bar2
vk_check_SOURCES = tests/guest-programs/vk_check.c
nodist_vk_check_SOURCES = tests/guest-programs/vk_check_spv.h
vk_check_CFLAGS = $(AM_CFLAGS) $(VULKAN_CFLAGS)
vk_check_LDADD = $(VULKAN_LIBS)
gl_check_SOURCES = tests/guest-programs/gl_check.c
gl_check_LDADD = -lEGL -lGLESv2
if HAVE_GGML
noinst_PROGRAMS += ggml_check
ggml_check_SOURCES = tests/guest-programs/ggml_check.c
ggml_check_CFLAGS = $(AM_CFLAGS) $(GGML_CFLAGS)
ggml_check_LDADD = -lggml -lggml-base
endif

vq_sources = tests/guest-programs/vq.c tests/guest-programs/vq.h
vq_ping_SOURCES = tests/guest-programs/vq_ping.c $(vq_sources)
vq_bar2_SOURCES = tests/guest-programs/vq_bar2.c $(vq_sources)

BUILT_SOURCES += tests/guest-programs/vk_check_spv.h
CLEANFILES += tests/guest-programs/vk_check_spv.h
EXTRA_DIST += tests/guest-programs/vk_check.comp
tests/guest-programs/vk_check_spv.h: tests/guest-programs/vk_check.comp
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(GLSLANG) -V --quiet --vn vk_check_spv -o $@ $<
tests/guest-programs/vk_check-vk_check.$(OBJEXT): tests/guest-programs/vk_check_spv.h
