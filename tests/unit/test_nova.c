// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/nova.h"

#include <string.h>

#include "tests/unit/suite.h"
#include "tools/client.h"

#define TYPE(driver, size, eighths)                                                                \
	"{'id': <'" driver "-octavo_" size "'>, 'eighths': <uint32 " eighths ">}"
#define GPU(address, driver)                                                                       \
	"{'address': <'" address "'>, 'state': <'registered'>, 'types': <["                        \
	TYPE(driver, "1_2", "4") ", " TYPE(driver, "1_4", "2") ", " TYPE(driver, "1_8", "1") "]>}"
#define WAITING "{'address': <'0000:09:00.0'>, 'state': <'waiting'>, 'types': <@aa{sv} []>}"

/* Two GPUs of one driver, one of another, one that is not folded */
static GVariant *host(void)
{
	return g_variant_ref_sink(g_variant_new_parsed(
		"@aa{sv} [" GPU("0000:03:00.0", "amdgpu") ", " GPU("0000:04:00.0", "i915") ", "
		GPU("0000:05:00.0", "amdgpu") ", " WAITING "]"));
}

/* What the words of a command line give, as text; NULL with @error set */
static char *conf(const char *const *words, bool classes, GError **error)
{
	g_autoptr(GVariant) gpus = host();
	g_autoptr(GVariant) sections = nova_sections(gpus, words, classes, error);

	return sections ? nova_text(sections) : NULL;
}

#define CONF(classes, ...) conf((const char *const[]){ __VA_ARGS__, NULL }, classes, NULL)

/* Whether these words are refused with @code, by a message that has @text */
static bool refused(const char *const *words, enum client_error code, const char *text)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *answer = conf(words, false, &error);

	return !answer && g_error_matches(error, CLIENT_ERROR, (int)code) && strstr(error->message, text);
}

#define REFUSED(code, text, ...) refused((const char *const[]){ __VA_ARGS__, NULL }, code, text)

static void one_size(void)
{
	g_autofree char *text = CONF(false, "1/4");

	CU_ASSERT_STRING_EQUAL(text,
			       "# Written by octavoctl nova-conf\n"
			       "[devices]\n"
			       "enabled_mdev_types = amdgpu-octavo_1_4, i915-octavo_1_4\n"
			       "\n"
			       "# 1/4 of a GPU: flavors ask for it with resources:VGPU=1\n"
			       "[mdev_amdgpu-octavo_1_4]\n"
			       "device_addresses = 0000:03:00.0,0000:05:00.0\n"
			       "\n"
			       "# 1/4 of a GPU: flavors ask for it with resources:VGPU=1\n"
			       "[mdev_i915-octavo_1_4]\n"
			       "device_addresses = 0000:04:00.0\n");
}

static void several_sizes(void)
{
	g_autofree char *text = CONF(false, "1/8", "0000:05:00.0=1/2");

	CU_ASSERT_PTR_NOT_NULL(strstr(
		text, "enabled_mdev_types = amdgpu-octavo_1_8, i915-octavo_1_8, amdgpu-octavo_1_2\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "[mdev_amdgpu-octavo_1_2]\ndevice_addresses = 0000:05:00.0\n"
					    "mdev_class = CUSTOM_OCTAVO_1_2\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "[mdev_amdgpu-octavo_1_8]\ndevice_addresses = 0000:03:00.0\n"
					    "mdev_class = CUSTOM_OCTAVO_1_8\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "VGPU"));
}

static void some_gpus(void)
{
	g_autofree char *text = CONF(false, "0000:04:00.0=1/2");

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "enabled_mdev_types = i915-octavo_1_2\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "amdgpu"));
}

static void classes(void)
{
	g_autofree char *text = CONF(true, "1/4");

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "resources:CUSTOM_OCTAVO_1_4=1\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "mdev_class = CUSTOM_OCTAVO_1_4\n"));
}

static void wrong_words(void)
{
	CU_ASSERT_TRUE(REFUSED(CLIENT_ERROR_USAGE, "no type '1/3'", "1/3"));
	CU_ASSERT_TRUE(REFUSED(CLIENT_ERROR_USAGE, "no type ''", "0000:03:00.0="));
	CU_ASSERT_TRUE(REFUSED(CLIENT_ERROR_USAGE, "one for each GPU", "1/4", "1/8"));
	CU_ASSERT_TRUE(REFUSED(CLIENT_ERROR_USAGE, "named twice", "0000:03:00.0=1/4", "0000:03:00.0=1/8"));
	CU_ASSERT_TRUE(REFUSED(CLIENT_ERROR_NOT_FOUND, "no GPU '0000:07:00.0'", "0000:07:00.0=1/4"));
	CU_ASSERT_TRUE(REFUSED(CLIENT_ERROR_FAILED, "it is waiting", "0000:09:00.0=1/4"));
}

static void no_gpu(void)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GVariant) gpus =
		g_variant_ref_sink(g_variant_new_parsed("@aa{sv} [" WAITING "]"));

	CU_ASSERT_PTR_NULL(nova_sections(gpus, (const char *const[]){ "1/4", NULL }, false, &error));
	CU_ASSERT_TRUE(g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_FAILED));
}

SUITE_RUN("nova",
	  { "one size for all: a section for each driver, class VGPU", one_size },
	  { "several sizes: a resource class for each", several_sizes },
	  { "GPUs that are not named are left out without a size for all", some_gpus },
	  { "classes may be asked for with one size", classes },
	  { "wrong words say what is allowed", wrong_words },
	  { "a host without a folded GPU says so", no_gpu })
