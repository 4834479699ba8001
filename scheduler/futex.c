// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/gate_private.h"

/* futex_waitv() takes this many; a GPU has half as many vGPUs */
#define FUTEX_WORDS_MAX 128

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};
}

int futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = timespec_of(timeout_ns);

	return syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0) ? -errno : 0;
}

void futex_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

int futex_wait_any(const struct futex_word *words, unsigned int count, uint64_t deadline_ns)
{
	struct timespec timeout = timespec_of(deadline_ns);
	struct futex_waitv waiters[FUTEX_WORDS_MAX] = { 0 };

	if (count > FUTEX_WORDS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < count; i++) {
		waiters[i].uaddr = (uintptr_t)words[i].word;
		waiters[i].val = words[i].value;
		waiters[i].flags = FUTEX_32;
	}
	return syscall(SYS_futex_waitv, waiters, count, 0, &timeout, CLOCK_MONOTONIC) < 0 ? -errno :
											     0;
}
