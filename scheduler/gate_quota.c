// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The memory account of a vGPU. There is no total: it is summed over the slots whenever it is
 * needed, so a process that dies takes its charge with it and nothing can be left wrong.
 */
#include <errno.h>

#include "scheduler/gate_private.h"

static uint64_t sum_charged(const struct gate_page *page)
{
	uint64_t sum = 0;

	for (int i = 0; i < gate_slots(page); i++)
		if (__builtin_add_overflow(sum, page->slots[i].charged_bytes, &sum))
			return UINT64_MAX;
	return sum;
}

static bool fits(const struct gate_page *page, uint64_t bytes)
{
	uint64_t share = page->share_bytes, used = sum_charged(page);

	return share == 0 || (used <= share && bytes <= share - used);
}

int gate_charge(struct gate *gate, uint64_t bytes)
{
	struct gate_page *page = gate->page;
	int err = 0;

	if (gate->slot < 0) {
		err = gate_register(gate);
		if (err)
			return err;
	}
	gate_lock(gate, &page->quota_lock);
	if (!fits(page, bytes)) {
		/* what the dead held is free, if nobody has noticed yet */
		gate_reap(gate);
		if (!fits(page, bytes))
			err = -ENOSPC;
	}
	if (err == 0)
		page->slots[gate->slot].charged_bytes += bytes;
	gate_unlock(&page->quota_lock);
	return err;
}

void gate_uncharge(struct gate *gate, uint64_t bytes)
{
	/* no lock: to shrink the sum can break no promise. After a fork the charge is the parent's. */
	if (gate->slot >= 0)
		gate->page->slots[gate->slot].charged_bytes -= bytes;
}

void gate_account(struct gate *gate, struct gate_account *account)
{
	gate_reap(gate);
	account->share_bytes = gate->page->share_bytes;
	account->used_bytes = sum_charged(gate->page);
	account->own_bytes = gate->slot >= 0 ? gate->page->slots[gate->slot].charged_bytes : 0;
}

void gate_set_share(struct gate *gate, uint64_t share_bytes)
{
	gate->page->share_bytes = share_bytes;
}
