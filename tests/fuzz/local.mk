# SPDX-License-Identifier: LGPL-2.1-or-later
# Fuzz targets. With --enable-fuzzers (clang) fuzz_NAME is a libFuzzer program; in any build
# replay_NAME runs the same code over the corpus, and make check runs that.
fuzz_common = tests/fuzz/fuzz.c tests/fuzz/fuzz.h
fuzz_ldadd = libfake-guest.la liboctavo-gpu.la liboctavo-vfio.la
fuzz_replays = replay_control replay_cursor replay_queue replay_edid
EXTRA_DIST += tests/fuzz/corpus

check_PROGRAMS += $(fuzz_replays)
replay_control_SOURCES = tests/fuzz/fuzz_control.c tests/fuzz/replay.c $(fuzz_common)
replay_control_LDADD = $(fuzz_ldadd)
replay_cursor_SOURCES = tests/fuzz/fuzz_cursor.c tests/fuzz/replay.c $(fuzz_common)
replay_cursor_LDADD = $(fuzz_ldadd)
replay_queue_SOURCES = tests/fuzz/fuzz_queue.c tests/fuzz/replay.c $(fuzz_common)
replay_queue_LDADD = $(fuzz_ldadd)
replay_edid_SOURCES = tests/fuzz/fuzz_edid.c tests/fuzz/replay.c $(fuzz_common)
replay_edid_LDADD = $(fuzz_ldadd)
dist_check_SCRIPTS = tests/fuzz/replay-corpus
TESTS += tests/fuzz/replay-corpus

if ENABLE_FUZZERS
noinst_PROGRAMS += fuzz_control fuzz_cursor fuzz_queue fuzz_edid
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_control_SOURCES = tests/fuzz/fuzz_control.c $(fuzz_common)
fuzz_control_LDADD = $(fuzz_ldadd)
fuzz_control_LDFLAGS = $(fuzz_ldflags)
fuzz_cursor_SOURCES = tests/fuzz/fuzz_cursor.c $(fuzz_common)
fuzz_cursor_LDADD = $(fuzz_ldadd)
fuzz_cursor_LDFLAGS = $(fuzz_ldflags)
fuzz_queue_SOURCES = tests/fuzz/fuzz_queue.c $(fuzz_common)
fuzz_queue_LDADD = $(fuzz_ldadd)
fuzz_queue_LDFLAGS = $(fuzz_ldflags)
fuzz_edid_SOURCES = tests/fuzz/fuzz_edid.c $(fuzz_common)
fuzz_edid_LDADD = $(fuzz_ldadd)
fuzz_edid_LDFLAGS = $(fuzz_ldflags)
endif
