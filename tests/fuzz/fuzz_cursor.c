// SPDX-License-Identifier: LGPL-2.1-or-later
/* A history of requests on the cursor queue, of which every other goes to the control queue first. */
#include <string.h>

#include "gpu/control.h"
#include "gpu/cursor.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_device *device = fuzz_device();
	struct command *command;
	const uint8_t *record;
	size_t length;
	bool control = true;

	while (fuzz_record(&data, &size, &record, &length)) {
		memcpy(device->fake.guest.base + FUZZ_REQUEST, record, length);
		fake_request(&device->driver, FUZZ_REQUEST, (uint32_t)length, 0, 0);
		while (command_pop(&device->queue, &command) == 1) {
			if (control)
				control_run(&device->gpu, command);
			else
				cursor_run(&device->gpu, command);
			command_finish(command);
		}
		control = !control;
	}
	fuzz_device_end(device);
	return 0;
}
