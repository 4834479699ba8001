// SPDX-License-Identifier: LGPL-2.1-or-later
/* A history of requests on the control queue, over a real ring. */
#include <stdlib.h>
#include <string.h>

#include "gpu/control.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_device *device = fuzz_device();
	struct vring_used_elem elem;
	struct command *command;
	const uint8_t *record;
	size_t length;

	while (fuzz_record(&data, &size, &record, &length)) {
		memcpy(device->fake.guest.base + FUZZ_REQUEST, record, length);
		fake_request(&device->driver, FUZZ_REQUEST, (uint32_t)length, FUZZ_ANSWER, 2048);
		while (command_pop(&device->queue, &command) == 1) {
			control_run(&device->gpu, command);
			if (command->answer < VIRTIO_GPU_RESP_OK_NODATA)
				abort();
			command_finish(command);
		}
		if (!fake_used(&device->driver, &elem) || elem.len > 2048)
			abort();
	}
	fuzz_device_end(device);
	return 0;
}
