/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guest.h - the guest's memory as the device sees it
 *
 * One mapping covers every IOVA: the byte at @base + iova is the guest's byte at iova. Where the
 * guest has no memory the mapping shows a scratch page and an error is counted, so a bad address
 * never raises a signal; it has to be asked for. The functions here do that.
 *
 * Whatever is read can change the next moment, since the guest runs meanwhile: copy once, check the
 * copy, use the copy.
 *
 * Threads: all functions may be called from any thread. An error that another thread met at the
 * same time is told apart by pinning the range, so it costs time and nothing else.
 *
 * Errors, everywhere: 0, or -EFAULT (the guest has no memory there), -EACCES (it may not be
 * written), -ENOMEM (the memlock limit of the VM's owner is too low to pin it), -ESTALE (the device
 * was reset; the copy is worthless).
 */
#ifndef OCTAVO_VFIO_GUEST_H
#define OCTAVO_VFIO_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands behind the window: the session, or a test's array. */
struct guest_ops {
	/* Makes the range present; the errors above. @length is at most GUEST_PIN_MAX. */
	int (*pin)(void *context, uint64_t iova, uint64_t length, bool write);
	/* Takes scratch pages out of the range, so that the next access tries again. */
	void (*drop)(void *context, uint64_t iova, uint64_t length);
	/* Number of accesses that met a scratch page since the beginning. */
	uint64_t (*errors)(void *context);
};

struct guest {
	uint8_t *base;
	uint64_t bytes;		/* IOVAs at and above are errors */
	const struct guest_ops *ops;
	void *context;
};

#define GUEST_PIN_MAX		(2ULL << 20)
/* From this length on a copy pins first: one call instead of a fault a page. */
#define GUEST_PIN_FROM		(16ULL << 10)

int guest_read(struct guest *guest, void *to, uint64_t iova, size_t length);
int guest_write(struct guest *guest, uint64_t iova, const void *from, size_t length);

/* Single aligned values of a ring, with acquire and release order. */
int guest_load16(struct guest *guest, uint64_t iova, uint16_t *value);
int guest_store16(struct guest *guest, uint64_t iova, uint16_t value);

/*
 * A range as an address, for a library that takes an iovec. NULL if it lies outside the window.
 * Nothing is pinned or checked: guest_pin() it first, or compare guest_errors() around its use.
 */
void *guest_address(struct guest *guest, uint64_t iova, uint64_t length);
int guest_pin(struct guest *guest, uint64_t iova, uint64_t length, bool write);
uint64_t guest_errors(struct guest *guest);

#endif
