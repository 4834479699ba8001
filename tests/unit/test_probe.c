// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/probe.h"

#include "daemon/share.h"
#include "scheduler/gate.h"
#include "tests/unit/folder.h"
#include "tests/unit/suite.h"

static void lines(void)
{
	struct probe_facts *facts = probe_parse("capsets virgl,virgl2,venus\nnews of tomorrow\n"
						"render-node /dev/dri/renderD128\n"
						"vulkan-device 0123456789abcdef0123456789abcdef AMD Radeon RX\n"
						"vulkan-ids 1002:73bf\nvram-bytes 17163091968\n");

	g_assert_nonnull(facts);
	CU_ASSERT_STRING_EQUAL(facts->capsets, "virgl,virgl2,venus");
	CU_ASSERT_STRING_EQUAL(facts->render_node, "/dev/dri/renderD128");
	CU_ASSERT_STRING_EQUAL(facts->vulkan_device, "0123456789abcdef0123456789abcdef");
	CU_ASSERT_STRING_EQUAL(facts->vulkan_name, "AMD Radeon RX");
	CU_ASSERT_STRING_EQUAL(facts->vulkan_ids, "1002:73bf");
	CU_ASSERT_EQUAL(facts->vram_bytes, 17163091968ULL);
	probe_facts_free(facts);
	facts = probe_parse("capsets none\n");
	g_assert_nonnull(facts);
	CU_ASSERT_PTR_NULL(facts->vulkan_device);
	probe_facts_free(facts);
	CU_ASSERT_PTR_NULL(probe_parse(""));
	CU_ASSERT_PTR_NULL(probe_parse("capsetsvirgl\n"));
}

static void cache(void)
{
	char *root = folder_new();
	g_autofree char *path = g_build_filename(root, "probe", NULL);
	struct probe_facts *facts = probe_parse("capsets virgl\nvulkan-device 0123 A = \"B\"\nvram-bytes 7\n");
	struct probe_facts *back;

	CU_ASSERT_PTR_NULL(probe_cache_read(path, "0000:01:00.0", "auto x"));
	probe_cache_write(path, "0000:01:00.0", "auto x", facts);
	probe_cache_write(path, "0000:02:00.0", "auto x", facts);
	back = probe_cache_read(path, "0000:01:00.0", "auto x");
	g_assert_nonnull(back);
	CU_ASSERT_STRING_EQUAL(back->capsets, "virgl");
	CU_ASSERT_STRING_EQUAL(back->vulkan_name, "A = \"B\"");
	CU_ASSERT_PTR_NULL(back->render_node);
	CU_ASSERT_EQUAL(back->vram_bytes, 7);
	CU_ASSERT_PTR_NULL(probe_cache_read(path, "0000:01:00.0", "venus x"));
	probe_cache_write(path, "0000:01:00.0", "auto x", NULL);
	CU_ASSERT_PTR_NULL(probe_cache_read(path, "0000:01:00.0", "auto x"));
	probe_facts_free(back);
	probe_facts_free(facts);
	folder_free(root);
}

struct watch {
	GMainLoop *loop;
	struct probe_facts *facts;
	bool failed;
};

static void done(struct probe_facts *facts, const GError *error, void *data)
{
	struct watch *watch = data;

	watch->facts = facts;
	watch->failed = error != NULL;
	g_main_loop_quit(watch->loop);
}

static void run(const char *script, struct watch *watch)
{
	char *root = folder_new();
	g_autofree char *program = g_build_filename(root, "worker", NULL);
	struct probe_setup setup = {
		.gpu = "0000:01:00.0", .renderer = "auto", .vulkan_device = "llvmpipe",
	};
	struct probe *probe;

	*watch = (struct watch){ .loop = g_main_loop_new(NULL, FALSE) };
	folder_write(root, "worker", script);
	CU_ASSERT_EQUAL(g_chmod(program, 0755), 0);
	setup.program = program;
	probe = probe_start(&setup, done, watch, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(probe);
	g_main_loop_run(watch->loop);
	probe_free(probe);
	g_main_loop_unref(watch->loop);
	folder_free(root);
}

static void program(void)
{
	const struct probe_setup absent = { .program = "/no/such", .gpu = "g", .renderer = "auto" };
	struct watch watch;

	run("#!/bin/sh\ntest \"$*\" = '--probe --gpu 0000:01:00.0 --renderer auto --vulkan-device llvmpipe' "
	    "&& echo capsets virgl\n", &watch);
	CU_ASSERT_FALSE(watch.failed);
	g_assert_nonnull(watch.facts);
	CU_ASSERT_STRING_EQUAL(watch.facts->capsets, "virgl");
	probe_facts_free(watch.facts);

	run("#!/bin/sh\necho capsets virgl\nexit 1\n", &watch);
	CU_ASSERT_TRUE(watch.failed);
	CU_ASSERT_PTR_NULL(watch.facts);
	CU_ASSERT_PTR_NULL(probe_start(&absent, done, &watch, NULL));
}

static void freed_while_it_runs(void)
{
	const struct probe_setup setup = { .program = "/usr/bin/yes", .gpu = "g", .renderer = "auto" };
	struct watch watch = { 0 };
	struct probe *probe = probe_start(&setup, done, &watch, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(probe);
	probe_free(probe);
	while (g_main_context_iteration(NULL, FALSE))
		;
	CU_ASSERT_FALSE(watch.failed);
}

static void share(void)
{
	struct arbiter_config config = { .policy = POLICY_ELASTIC };
	struct arbiter *arbiter = arbiter_create(&config, NULL);
	struct share share = { 0 };
	struct arbiter_stats stats;

	CU_ASSERT_PTR_NOT_NULL_FATAL(arbiter);
	CU_ASSERT_TRUE_FATAL(share_open(&share, arbiter, 2, 1 << 30, "u", NULL));
	CU_ASSERT_EQUAL(arbiter_stats(arbiter, share.id, &stats), 0);
	CU_ASSERT_EQUAL(stats.share_bytes, 1 << 30);
	share_close(&share);
	CU_ASSERT_PTR_NULL(share.arbiter);
	CU_ASSERT_NOT_EQUAL(arbiter_stats(arbiter, 0, &stats), 0);
	share_close(&share);
	arbiter_destroy(arbiter);
}

SUITE_RUN("probe",
	  { "what the worker program prints is understood, and what it adds later skipped", lines },
	  { "the program is asked with the GPU's configuration; a failure has no facts", program },
	  { "facts are remembered for the same question only", cache },
	  { "a probe can be given up while it runs", freed_while_it_runs },
	  { "an open gets its share of time and memory, and gives it back", share })
