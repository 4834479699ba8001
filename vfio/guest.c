// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfio/guest.h"

#include <errno.h>
#include <string.h>

static bool guest_contains(const struct guest *guest, uint64_t iova, uint64_t length)
{
	return length <= guest->bytes && iova <= guest->bytes - length;
}

uint64_t guest_errors(struct guest *guest)
{
	return guest->ops->errors(guest->context);
}

void *guest_address(struct guest *guest, uint64_t iova, uint64_t length)
{
	return guest_contains(guest, iova, length) ? guest->base + iova : NULL;
}

int guest_pin(struct guest *guest, uint64_t iova, uint64_t length, bool write)
{
	if (!guest_contains(guest, iova, length))
		return -EFAULT;
	while (length) {
		/* steps that end on the huge page's border, so that each is one lookup */
		uint64_t step = GUEST_PIN_MAX - (iova & (GUEST_PIN_MAX - 1));
		int ret;

		if (step > length)
			step = length;
		ret = guest->ops->pin(guest->context, iova, step, write);
		if (ret)
			return ret;
		iova += step;
		length -= step;
	}
	return 0;
}

/*
 * The copy met scratch, or another thread's did. Pinning says which, with the cause; a page that
 * can be pinned now was scratch from an earlier time, and the copy is worth a second try.
 */
static int guest_explain(struct guest *guest, uint64_t iova, uint64_t length, bool write)
{
	guest->ops->drop(guest->context, iova, length);
	return guest_pin(guest, iova, length, write);
}

static int guest_copy(struct guest *guest, void *to, const void *from, uint64_t iova, size_t length,
		      bool write)
{
	uint64_t errors;
	int tries, ret;

	if (length >= GUEST_PIN_FROM) {
		ret = guest_pin(guest, iova, length, write);
		if (ret)
			return ret;
	}
	for (tries = 0; tries < 3; tries++) {
		errors = guest_errors(guest);
		memcpy(to, from, length);
		/* the copy's loads and stores come before the second look at the counter */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (guest_errors(guest) == errors)
			return 0;
		ret = guest_explain(guest, iova, length, write);
		if (ret)
			return ret;
	}
	return -EFAULT;
}

int guest_read(struct guest *guest, void *to, uint64_t iova, size_t length)
{
	const void *from = guest_address(guest, iova, length);

	if (!from)
		return -EFAULT;
	return length ? guest_copy(guest, to, from, iova, length, false) : 0;
}

int guest_write(struct guest *guest, uint64_t iova, const void *from, size_t length)
{
	void *to = guest_address(guest, iova, length);

	if (!to)
		return -EFAULT;
	return length ? guest_copy(guest, to, from, iova, length, true) : 0;
}

int guest_load16(struct guest *guest, uint64_t iova, uint16_t *value)
{
	const uint16_t *from = guest_address(guest, iova, sizeof(*value));
	uint64_t errors;
	int tries, ret;

	if (!from || iova % sizeof(*value))
		return -EFAULT;
	for (tries = 0; tries < 3; tries++) {
		errors = guest_errors(guest);
		*value = __atomic_load_n(from, __ATOMIC_ACQUIRE);
		if (guest_errors(guest) == errors)
			return 0;
		ret = guest_explain(guest, iova, sizeof(*value), false);
		if (ret)
			return ret;
	}
	return -EFAULT;
}

int guest_store16(struct guest *guest, uint64_t iova, uint16_t value)
{
	uint16_t *to = guest_address(guest, iova, sizeof(value));
	uint64_t errors;
	int tries, ret;

	if (!to || iova % sizeof(value))
		return -EFAULT;
	for (tries = 0; tries < 3; tries++) {
		errors = guest_errors(guest);
		__atomic_store_n(to, value, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (guest_errors(guest) == errors)
			return 0;
		ret = guest_explain(guest, iova, sizeof(value), true);
		if (ret)
			return ret;
	}
	return -EFAULT;
}
