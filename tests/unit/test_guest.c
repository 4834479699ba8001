// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fake_guest.h"
#include "tests/unit/suite.h"

static void test_copies(void)
{
	struct fake_guest fake;
	char there[] = "folio", back[sizeof(there)];

	fake_guest_create(&fake);
	CU_ASSERT_EQUAL(guest_write(&fake.guest, 4095, there, sizeof(there)), 0);
	CU_ASSERT_EQUAL(guest_read(&fake.guest, back, 4095, sizeof(back)), 0);
	CU_ASSERT_STRING_EQUAL(back, there);
	CU_ASSERT_EQUAL(fake.pins, 0);
	fake_guest_destroy(&fake);
}

static void test_edges(void)
{
	struct fake_guest fake;
	uint8_t byte = 1;
	uint16_t value;

	fake_guest_create(&fake);
	CU_ASSERT_EQUAL(guest_read(&fake.guest, &byte, FAKE_BYTES - 1, 1), 0);
	CU_ASSERT_EQUAL(guest_read(&fake.guest, &byte, FAKE_BYTES, 1), -EFAULT);
	CU_ASSERT_EQUAL(guest_read(&fake.guest, &byte, UINT64_MAX, 1), -EFAULT);
	CU_ASSERT_EQUAL(guest_write(&fake.guest, UINT64_MAX - 1, &byte, 4), -EFAULT);
	CU_ASSERT_EQUAL(guest_load16(&fake.guest, 1, &value), -EFAULT);
	CU_ASSERT_EQUAL(guest_store16(&fake.guest, FAKE_BYTES - 1, 1), -EFAULT);
	CU_ASSERT_PTR_NULL(guest_address(&fake.guest, FAKE_BYTES - 1, 2));
	CU_ASSERT_EQUAL(guest_read(&fake.guest, &byte, FAKE_BYTES, 0), 0);
	fake_guest_destroy(&fake);
}

static void test_hole(void)
{
	struct fake_guest fake;
	uint8_t bytes[64];
	uint16_t value;

	fake_guest_create(&fake);
	fake.hole = 0x4000;
	fake.hole_bytes = 0x1000;
	CU_ASSERT_EQUAL(guest_read(&fake.guest, bytes, 0x3fff, 2), -EFAULT);
	fake.hole_error = -ENOMEM;
	CU_ASSERT_EQUAL(guest_write(&fake.guest, 0x4fff, bytes, 1), -ENOMEM);
	CU_ASSERT_EQUAL(guest_load16(&fake.guest, 0x4000, &value), -ENOMEM);
	fake.hole_error = -EACCES;
	CU_ASSERT_EQUAL(guest_store16(&fake.guest, 0x4000, 1), -EACCES);
	fake_guest_destroy(&fake);
}

static void test_bulk(void)
{
	struct fake_guest fake;
	uint64_t length = 3 * GUEST_PIN_MAX;
	uint8_t *bytes = malloc(length);

	fake_guest_create(&fake);
	CU_ASSERT_EQUAL(guest_read(&fake.guest, bytes, GUEST_PIN_MAX / 2, length), 0);
	/* half a step, two whole ones, half a step */
	CU_ASSERT_EQUAL(fake.pins, 4);
	fake.hole = 2 * GUEST_PIN_MAX;
	fake.hole_bytes = 1;
	fake.hole_error = -ENOMEM;
	CU_ASSERT_EQUAL(guest_read(&fake.guest, bytes, GUEST_PIN_MAX / 2, length), -ENOMEM);
	free(bytes);
	fake_guest_destroy(&fake);
}

SUITE_RUN("guest",
	  { "what is written to guest memory is read back, without pinning small copies",
	    test_copies },
	  { "accesses past the end, around the end of the address space or unaligned are EFAULT",
	    test_edges },
	  { "an access that meets scratch gives the cause that pinning gives", test_hole },
	  { "a long copy pins in steps of 2 MiB and fails with the step that fails", test_bulk })
