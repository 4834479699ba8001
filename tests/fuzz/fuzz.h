/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz.h - a device without a session, for libFuzzer targets
 *
 * A target reads its input as a list of records, [16-bit length][bytes], so that one input holds a
 * history of requests and its parts can be exchanged by the mutator.
 */
#ifndef OCTAVO_TESTS_FUZZ_H
#define OCTAVO_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "tests/unit/fake_guest.h"

#define FUZZ_REQUEST	0x200000
#define FUZZ_ANSWER	0x280000

struct fuzz_device {
	struct fake_guest fake;
	struct fake_driver driver;
	struct queue queue;
	struct console console;
	struct gpu gpu;
};

/* One device for the life of the process, as new. */
struct fuzz_device *fuzz_device(void);
/* What a run left behind. */
void fuzz_device_end(struct fuzz_device *device);

/* The next record, cut to what is left; false at the end. */
bool fuzz_record(const uint8_t **data, size_t *size, const uint8_t **record, size_t *length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
