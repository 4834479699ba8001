// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/ident.h"

#include "tests/unit/suite.h"

static void address_long_and_short(void)
{
	struct pci_address address;
	char *text;

	CU_ASSERT_TRUE(pci_address_parse("0000:01:1f.7", &address));
	CU_ASSERT_EQUAL(address.domain, 0);
	CU_ASSERT_EQUAL(address.bus, 1);
	CU_ASSERT_EQUAL(address.devfn, 0xff);
	CU_ASSERT_TRUE(pci_address_parse("10000:c1:00.0", &address));
	text = pci_address_format(&address);
	CU_ASSERT_STRING_EQUAL(text, "10000:c1:00.0");
	g_free(text);
	CU_ASSERT_TRUE(pci_address_parse("01:02.0", &address));
	text = pci_address_format(&address);
	CU_ASSERT_STRING_EQUAL(text, "0000:01:02.0");
	g_free(text);
}

static void address_refused(void)
{
	static const char *const wrong[] = {
		"", "01", "01:00", "01:00.8", "01:20.0", "01:00.0 ", " 01:00.0", "0000:001:00.0",
		"0000:01:00.0x", "g0:00.0", "0000:01:00.", ":01:00.0", "000000000:01:00.0",
	};
	struct pci_address address;

	for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
		CU_ASSERT_FALSE(pci_address_parse(wrong[i], &address));
}

static void uuid_there_and_back(void)
{
	uint8_t uuid[UUID_BYTES];
	char text[UUID_TEXT_BYTES];

	CU_ASSERT_TRUE(uuid_parse("83B8F4f2-509f-382f-3c1e-e6bfe0fa1001", uuid));
	CU_ASSERT_EQUAL(uuid[0], 0x83);
	CU_ASSERT_EQUAL(uuid[15], 0x01);
	uuid_format(uuid, text);
	CU_ASSERT_STRING_EQUAL(text, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001");
}

static void uuid_refused(void)
{
	static const char *const wrong[] = {
		"",
		"83b8f4f2509f382f3c1ee6bfe0fa1001",
		"83b8f4f2-509f-382f-3c1e-e6bfe0fa100",
		"83b8f4f2-509f-382f-3c1e-e6bfe0fa10012",
		"83b8f4f2-509f-382f-3c1e-e6bfe0fa100g",
		"{83b8f4f2-509f-382f-3c1e-e6bfe0fa1001}",
	};
	uint8_t uuid[UUID_BYTES];

	for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
		CU_ASSERT_FALSE(uuid_parse(wrong[i], uuid));
}

static void path_is_legal(void)
{
	char *path = ident_path("gpu", "0000:01:00.0");

	CU_ASSERT_STRING_EQUAL(path, "/org/octavo1/gpu/0000_01_00_0");
	g_free(path);
}

SUITE_RUN("ident",
	  { "a PCI address may leave out domain 0", address_long_and_short },
	  { "what is no PCI address is refused", address_refused },
	  { "a UUID comes back in lower case", uuid_there_and_back },
	  { "what is no UUID is refused", uuid_refused },
	  { "an object path has legal characters only", path_is_legal })
