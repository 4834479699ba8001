// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every mode that the interface allows gives an EDID that is whole. */
#include <stdlib.h>
#include <string.h>

#include "gpu/edid.h"
#include "mdev/octavo.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t edid[EDID_BYTES];
	uint16_t numbers[3];
	uint32_t width, height;

	if (size < sizeof(numbers))
		return 0;
	memcpy(numbers, data, sizeof(numbers));
	width = OCTAVO_MODE_MIN + numbers[0] % (OCTAVO_MODE_WIDTH_MAX - OCTAVO_MODE_MIN + 1);
	height = OCTAVO_MODE_MIN + numbers[1] % (OCTAVO_MODE_HEIGHT_MAX - OCTAVO_MODE_MIN + 1);
	width &= ~7u;
	edid_build(edid, width, height, numbers[2]);
	for (unsigned int block = 0; block < EDID_BYTES; block += 128) {
		unsigned int sum = 0;

		for (unsigned int i = 0; i < 128; i++)
			sum += edid[block + i];
		if (sum & 0xff)
			abort();
	}
	if ((uint32_t)(edid[56] | (edid[58] >> 4) << 8) != width ||
	    (uint32_t)(edid[59] | (edid[61] >> 4) << 8) != height || !(edid[54] | edid[55]))
		abort();
	return 0;
}
