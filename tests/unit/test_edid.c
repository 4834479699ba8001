// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "gpu/edid.h"
#include "tests/unit/suite.h"

static unsigned int sum(const uint8_t *block)
{
	unsigned int total = 0;

	for (unsigned int i = 0; i < 128; i++)
		total += block[i];
	return total & 0xff;
}

/* Size and refresh rate in mHz of a detailed timing. */
static void decode(const uint8_t *at, uint32_t *width, uint32_t *height, uint32_t *mhz)
{
	uint64_t clock = 10000ULL * (uint32_t)(at[0] | at[1] << 8);
	uint32_t h_blank = (uint32_t)(at[3] | (at[4] & 0xf) << 8);
	uint32_t v_blank = (uint32_t)(at[6] | (at[7] & 0xf) << 8);

	*width = (uint32_t)(at[2] | (at[4] >> 4) << 8);
	*height = (uint32_t)(at[5] | (at[7] >> 4) << 8);
	*mhz = (uint32_t)(clock * 1000 / ((uint64_t)(*width + h_blank) * (*height + v_blank)));
}

static void test_modes(void)
{
	static const uint16_t modes[][2] = {
		{ 64, 64 }, { 640, 480 }, { 1024, 768 }, { 1280, 800 }, { 1920, 1080 },
		{ 2560, 1440 }, { 3840, 64 }, { 64, 2160 }, { 3840, 2160 },
	};
	uint8_t edid[EDID_BYTES];

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		uint32_t width, height, mhz;

		edid_build(edid, modes[i][0], modes[i][1], 0);
		decode(edid + 54, &width, &height, &mhz);
		CU_ASSERT_EQUAL(width, modes[i][0]);
		CU_ASSERT_EQUAL(height, modes[i][1]);
		/* the clock's steps of 250 kHz are coarse for the smallest mode */
		CU_ASSERT(mhz > (modes[i][0] * modes[i][1] < 100000 ? 50000 : 59400) && mhz < 60500);
		CU_ASSERT_EQUAL(sum(edid), 0);
		CU_ASSERT_EQUAL(sum(edid + 128), 0);
	}
}

static void test_blocks(void)
{
	static const uint8_t header[] = { 0, 255, 255, 255, 255, 255, 255, 0 };
	uint8_t edid[EDID_BYTES], other[EDID_BYTES];
	uint32_t width, height, mhz;
	const uint8_t *at;

	edid_build(edid, 1920, 1080, 0);
	edid_build(other, 1920, 1080, 1);
	CU_ASSERT_EQUAL(memcmp(edid, header, 8), 0);
	CU_ASSERT_EQUAL(edid[18], 1);
	CU_ASSERT_EQUAL(edid[19], 4);
	CU_ASSERT_EQUAL(edid[126], 1);
	CU_ASSERT_EQUAL(edid[128], 2);
	CU_ASSERT_NOT_EQUAL(memcmp(edid, other, 128), 0);
	/* 3840x2160 can be chosen whatever is preferred */
	at = edid + 128 + edid[130];
	decode(at, &width, &height, &mhz);
	CU_ASSERT_EQUAL(width, 3840);
	CU_ASSERT_EQUAL(height, 2160);
}

static void test_cvt(void)
{
	struct edid_timing timing;

	/* the figures of VESA's own calculator for reduced blanking */
	edid_timing_cvt(&timing, 1920, 1080);
	CU_ASSERT_EQUAL(timing.clock_10khz, 13850);
	CU_ASSERT_EQUAL(timing.v_blank, 31);
	edid_timing_cvt(&timing, 3840, 2160);
	CU_ASSERT_EQUAL(timing.clock_10khz, 53325);
	CU_ASSERT_EQUAL(timing.v_blank, 62);
}

SUITE_RUN("edid",
	  { "the first detailed timing is the preferred mode at 60 Hz", test_modes },
	  { "base block and extension are well formed, heads differ", test_blocks },
	  { "timings are those of CVT with reduced blanking", test_cvt })
