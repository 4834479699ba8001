// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A lock in shared memory that outlives its owner. glibc's robust mutexes would do the same, but
 * tie all processes of a vGPU (containers among them) to one C library's layout.
 */
#include "scheduler/gate_private.h"

#define LOCK_WAITERS 0x80000000u
/* A token: generation of the owner's slot (23 bits), slot + 1 (8 bits). 0: free. */
#define TOKEN_GENERATIONS 0x007fffffu
/* How long to wait before asking whether the owner lives: a critical section is under a us. */
#define LOCK_ASK_NS 2000000ull
#define LOCK_SPINS  200

static uint32_t token_of(struct gate *gate)
{
	int slot = gate->slot;

	return (gate->page->slots[slot].generation & TOKEN_GENERATIONS) << 8 | (uint32_t)(slot + 1);
}

static bool token_alive(struct gate *gate, uint32_t token)
{
	int slot = (int)(token & 0xff) - 1;

	if (slot < 0 || slot >= GATE_SLOTS)
		return false;
	if ((gate->page->slots[slot].generation & TOKEN_GENERATIONS) !=
	    ((token & ~LOCK_WAITERS) >> 8))
		return false;
	return gate_slot_alive(gate, slot);
}

static bool lock_try(_Atomic uint32_t *word, uint32_t expected, uint32_t token)
{
	return atomic_compare_exchange_strong(word, &expected, token);
}

void gate_lock(struct gate *gate, _Atomic uint32_t *word)
{
	uint32_t token = token_of(gate);

	for (int i = 0; i < LOCK_SPINS; i++) {
		if (*word == 0 && lock_try(word, 0, token))
			return;
		__builtin_ia32_pause();
	}
	/* from here on others may wait too, and only a lock word with the flag wakes them */
	token |= LOCK_WAITERS;
	for (;;) {
		uint32_t now = *word;

		if (now == 0) {
			if (lock_try(word, 0, token))
				return;
			continue;
		}
		if (!(now & LOCK_WAITERS)) {
			if (!lock_try(word, now, now | LOCK_WAITERS))
				continue;
			now |= LOCK_WAITERS;
		}
		futex_wait(word, now, LOCK_ASK_NS);
		if (*word == now && !token_alive(gate, now) && lock_try(word, now, token))
			return;
	}
}

void gate_unlock(_Atomic uint32_t *word)
{
	if (atomic_exchange(word, 0) & LOCK_WAITERS)
		futex_wake(word, 1);
}
