// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/conf.h"

#include <string.h>

#include "tests/unit/folder.h"
#include "tests/unit/suite.h"

/* Loads @text as octavo.conf and, unless NULL, @extra as octavo.conf.d/50-x.conf. */
static struct conf *load(const char *text, const char *extra, GError **error)
{
	char *root = folder_new();
	g_autofree char *path = g_build_filename(root, "octavo.conf", NULL);
	struct conf *conf;

	if (text)
		folder_write(root, "octavo.conf", text);
	if (extra) {
		folder_write(root, "octavo.conf.d/50-x.conf", extra);
		folder_write(root, "octavo.conf.d/90-y.conf.bak", "nonsense");
	}
	conf = conf_load(path, error);
	folder_free(root);
	return conf;
}

static void must_fail(const char *text, const char *where, const char *allowed)
{
	g_autoptr(GError) error = NULL;
	struct conf *conf = load(text, NULL, &error);

	CU_ASSERT_PTR_NULL(conf);
	conf_free(conf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(error);
	if (!strstr(error->message, where) || !strstr(error->message, allowed)) {
		CU_FAIL("message");
		printf("\n    '%s' lacks '%s' or '%s'\n", error->message, where, allowed);
	}
}

static void nothing_gives_defaults(void)
{
	const struct pci_address address = { 0, 1, 0 };
	struct conf *conf = load(NULL, NULL, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(conf);
	CU_ASSERT_TRUE(conf_gpu(conf, &address)->enable);
	CU_ASSERT_EQUAL(conf_gpu(conf, &address)->vram_bytes, 0);
	CU_ASSERT_EQUAL(conf_gpu(conf, &address)->heads, 1);
	CU_ASSERT_EQUAL(conf_gpu(conf, &address)->policy, CONF_POLICY_ELASTIC);
	CU_ASSERT_FALSE(conf_has_gpu(conf, &address));
	conf_free(conf);
	conf = load("", NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL(conf);
	conf_free(conf);
}

static void every_key(void)
{
	const struct pci_address address = { 0, 1, 0 };
	struct conf *conf = load("# first\n"
				 "[octavod]\nworker = /bin/worker\nlauncher = systemd\nlog-level = debug\n"
				 "metrics-port = 9400\nmetrics-address = ::1\n"
				 "[gpu 0000:01:00.0]\nenable = false\nvram = 4 GiB\nheads = 4\n"
				 "renderer = venus\npolicy = fixed-share\nslice = 2500 us\n"
				 "vulkan-device = 01234567-89AB-cdef-0123-456789abcdef\n",
				 NULL, NULL);
	const struct conf_gpu *gpu;

	CU_ASSERT_PTR_NOT_NULL_FATAL(conf);
	CU_ASSERT_STRING_EQUAL(conf->worker, "/bin/worker");
	CU_ASSERT_EQUAL(conf->launcher, CONF_LAUNCHER_SYSTEMD);
	CU_ASSERT_EQUAL(conf->log_level, G_LOG_LEVEL_DEBUG);
	CU_ASSERT_EQUAL(conf->metrics_port, 9400);
	CU_ASSERT_STRING_EQUAL(conf->metrics_address, "::1");
	CU_ASSERT_TRUE(conf_has_gpu(conf, &address));
	gpu = conf_gpu(conf, &address);
	CU_ASSERT_FALSE(gpu->enable);
	CU_ASSERT_EQUAL(gpu->vram_bytes, 4ULL << 30);
	CU_ASSERT_EQUAL(gpu->heads, 4);
	CU_ASSERT_EQUAL(gpu->renderer, CONF_RENDERER_VENUS);
	CU_ASSERT_EQUAL(gpu->policy, CONF_POLICY_FIXED_SHARE);
	CU_ASSERT_EQUAL(gpu->slice_us, 2500);
	CU_ASSERT_STRING_EQUAL(gpu->vulkan_device, "0123456789abcdef0123456789abcdef");
	conf_free(conf);
}

static void own_group_over_any(void)
{
	const struct pci_address own = { 0, 1, 0 }, other = { 0, 2, 0 };
	struct conf *conf = load("[gpu 01:00.0]\nheads = 2\n[gpu any]\nheads = 3\nvram = 1GiB\n", NULL,
				 NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(conf);
	CU_ASSERT_EQUAL(conf_gpu(conf, &own)->heads, 2);
	CU_ASSERT_EQUAL(conf_gpu(conf, &own)->vram_bytes, 1ULL << 30);
	CU_ASSERT_EQUAL(conf_gpu(conf, &other)->heads, 3);
	conf_free(conf);
}

static void folder_over_file(void)
{
	const struct pci_address address = { 0, 1, 0 };
	struct conf *conf = load("[gpu any]\nheads = 2\nvram = 1 GiB\n", "[gpu any]\nheads = 4\n", NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(conf);
	CU_ASSERT_EQUAL(conf_gpu(conf, &address)->heads, 4);
	CU_ASSERT_EQUAL(conf_gpu(conf, &address)->vram_bytes, 1ULL << 30);
	conf_free(conf);
}

static void wrong_values(void)
{
	must_fail("[gpu any]\n\nheads = 5\n", "octavo.conf:3: [gpu any] heads = 5", "1 to 4");
	must_fail("[gpu any]\nheads =\n", "octavo.conf:2", "1 to 4");
	must_fail("[gpu any]\nvram = 64 MiB\n", "octavo.conf:2", "128 MiB");
	must_fail("[gpu any]\nvram = 99999999999 GiB\n", "octavo.conf:2", "128 MiB");
	must_fail("[gpu any]\nvram = 4 GB\n", "octavo.conf:2", "8 GiB");
	must_fail("[gpu any]\nenable = perhaps\n", "octavo.conf:2", "true or false");
	must_fail("[gpu any]\nslice = 31 ms\n", "octavo.conf:2", "1 ms to 30 ms");
	must_fail("[gpu any]\nslice = 4\n", "octavo.conf:2", "1 ms to 30 ms");
	must_fail("[gpu any]\nbusy-poll = 11 ms\n", "octavo.conf:2", "0 us to 10 ms");
	must_fail("[gpu any]\nwatchdog = 601 s\n", "octavo.conf:2", "1 s to 600 s");
	must_fail("[gpu any]\nwatchdog = 999 ms\n", "octavo.conf:2", "1 s to 600 s");
	must_fail("[gpu any]\nbusy-poll = on\n", "octavo.conf:2", "0 us to 10 ms");
	must_fail("[gpu any]\npolicy = fair\n", "octavo.conf:2", "elastic");
	must_fail("[gpu any]\nrenderer = gl\n", "octavo.conf:2", "virgl or venus");
	must_fail("[gpu any]\nvulkan-device =\n", "octavo.conf:2", "deviceUUID");
	must_fail("[octavod]\nworker = here\n", "octavo.conf:2", "absolute path");
	must_fail("[octavod]\nmetrics-port = 70000\n", "octavo.conf:2", "TCP port");
}

static void unknown_names(void)
{
	must_fail("[gpu any]\nhead = 1\n", "octavo.conf:2: [gpu any] head is no key", "heads, renderer");
	must_fail("[octavod]\nheads = 1\n", "octavo.conf:2: [octavod] heads is no key", "worker");
	must_fail("\n[gpus]\n", "octavo.conf:2: [gpus] is no group", "[gpu any]");
	must_fail("[gpu 01]\n", "octavo.conf:1: [gpu 01] is no group", "DDDD:BB:SS.F");
}

static void no_key_file(void)
{
	must_fail("[gpu any]\nheads 2\n", "octavo.conf:2", "KEY = VALUE");
	must_fail("heads = 2\n", "octavo.conf:1", "[GROUP]");
}

static void same_gpu_twice(void)
{
	must_fail("[gpu 01:00.0]\nheads = 1\n[gpu 0000:01:00.0]\nheads = 2\n", "octavo.conf:3",
		  "the same as the group of line 1");
	must_fail("[gpu any]\n[gpu any]\n", "octavo.conf:2", "line 1");
}

static void bad_folder_names_its_file(void)
{
	g_autoptr(GError) error = NULL;
	struct conf *conf = load("[gpu any]\nheads = 2\n", "[gpu any]\nheads = 0\n", &error);

	CU_ASSERT_PTR_NULL(conf);
	CU_ASSERT_PTR_NOT_NULL_FATAL(error);
	CU_ASSERT_PTR_NOT_NULL(strstr(error->message, "octavo.conf.d/50-x.conf:2"));
}

static void sizes(void)
{
	uint64_t bytes = 0;

	CU_ASSERT_TRUE(conf_size_parse("17", &bytes));
	CU_ASSERT_EQUAL(bytes, 17);
	CU_ASSERT_TRUE(conf_size_parse("3 KiB", &bytes));
	CU_ASSERT_EQUAL(bytes, 3072);
	CU_ASSERT_TRUE(conf_size_parse("16383TiB", &bytes));
	CU_ASSERT_FALSE(conf_size_parse("16777216TiB", &bytes));
	CU_ASSERT_FALSE(conf_size_parse("-1", &bytes));
	CU_ASSERT_FALSE(conf_size_parse("1 GiB x", &bytes));
	CU_ASSERT_FALSE(conf_size_parse("99999999999999999999", &bytes));
}

SUITE_RUN("conf",
	  { "no file and an empty file give the defaults", nothing_gives_defaults },
	  { "every key is read", every_key },
	  { "a GPU's own group goes over [gpu any], in any order", own_group_over_any },
	  { "octavo.conf.d goes over octavo.conf, *.conf only", folder_over_file },
	  { "a wrong value is refused with line and allowed values", wrong_values },
	  { "an unknown key or group is refused with the known ones", unknown_names },
	  { "a line that is no key file is refused with its number", no_key_file },
	  { "a GPU that has two groups is refused", same_gpu_twice },
	  { "an error in octavo.conf.d names that file", bad_folder_names_its_file },
	  { "sizes have binary units and fit 64 bits", sizes })
