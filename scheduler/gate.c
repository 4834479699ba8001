// SPDX-License-Identifier: LGPL-2.1-or-later
/* Admission: in at an open gate, within the bound, and out again. */
#include "scheduler/gate.h"

#include <errno.h>
#include <time.h>

#include "scheduler/gate_private.h"

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
/* However short submissions are, a closing gate must drain soon. */
#define IN_FLIGHT_MAX 32u

uint64_t gate_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint32_t sum_in_flight(const struct gate_page *page)
{
	uint32_t sum = 0;

	for (int i = 0; i < gate_slots(page); i++)
		sum += page->slots[i].in_flight;
	return sum;
}

static bool any_waiting(const struct gate_page *page)
{
	for (int i = 0; i < gate_slots(page); i++)
		if (page->slots[i].waiting)
			return true;
	return false;
}

static void notify_arbiter(struct gate_page *page)
{
	page->event++;
	futex_wake(&page->event, 1);
}

static void wake_processes(struct gate_page *page)
{
	page->wake++;
	futex_wake(&page->wake, INT32_MAX);
}

/* Look at the heartbeat; true while the arbiter's lease has lapsed. */
static bool gate_lapsed(struct gate *gate, uint64_t now_ns)
{
	uint32_t heartbeat = gate->page->heartbeat;

	if (gate->heartbeat_ns == 0 || gate->heartbeat != heartbeat) {
		gate->heartbeat = heartbeat;
		gate->heartbeat_ns = now_ns;
		gate->lapsed = false;
	} else if (!gate->lapsed && now_ns >= gate->heartbeat_ns + gate->page->lease_ms * NS_PER_MS) {
		gate->lapsed = true;
	}
	return gate->lapsed;
}

static bool within_bound(const struct gate_page *page, uint32_t in_flight)
{
	uint64_t length_us = (uint64_t)page->mean_us + page->spread_us;

	if (in_flight == 0)
		return true;
	if (in_flight >= IN_FLIGHT_MAX)
		return false;
	/* unknown lengths are long until one is measured */
	return length_us && (in_flight + 1) * length_us <= page->bound_us;
}

/* The lock is held and one more is in flight; before, there were so many. */
static void admitted(struct gate_page *page, uint32_t before, uint64_t now_ns)
{
	uint32_t turn = page->turn;

	if (page->first_turn != turn) {
		page->first_ns = now_ns;
		page->first_turn = turn;
	}
	if (before == 0) {
		uint64_t idle_since = page->idle_since_ns;

		if (idle_since && now_ns > idle_since)
			page->gaps_ns += now_ns - idle_since;
		page->busy_since_ns = now_ns;
	}
}

/* The lock is held: what is expected of the next submissions. */
static void learn_length(struct gate_page *page, uint32_t length_us)
{
	uint32_t mean_us = page->mean_us, spread_us = page->spread_us;
	uint32_t off_us = length_us > mean_us ? length_us - mean_us : mean_us - length_us;

	page->mean_us = mean_us ? mean_us - mean_us / 8 + length_us / 8 : length_us;
	page->spread_us = mean_us ? spread_us - spread_us / 8 + off_us / 8 : length_us / 2;
}

/* One try. 0: admitted. -EAGAIN: closed or too much in flight. */
static int gate_try(struct gate *gate, enum gate_class class, uint64_t now_ns)
{
	struct gate_page *page = gate->page;
	struct gate_slot *slot = &page->slots[gate->slot];
	uint32_t before;
	int err = -EAGAIN;

	if (!page->open && !gate_lapsed(gate, now_ns))
		return -EAGAIN;
	if (class == GATE_PASS)
		return 0;
	gate_lock(gate, &page->lock);
	before = sum_in_flight(page);
	if (within_bound(page, before)) {
		slot->in_flight++;
		/* see "Closing" in gate.h */
		atomic_thread_fence(memory_order_seq_cst);
		if (page->open || gate->lapsed) {
			slot->admitted++;
			admitted(page, before, now_ns);
			err = 0;
		} else {
			slot->in_flight--;
		}
	}
	gate_unlock(&page->lock);
	if (err == 0 && before == 0 && (page->flags & GATE_REPORT))
		notify_arbiter(page);
	return err;
}

/* Wait until the gate may have changed, a quarter of the lease at most. */
static void gate_wait(struct gate *gate, uint32_t wake)
{
	uint64_t lease_ns = gate->page->lease_ms * NS_PER_MS;

	if (!gate->cancelled)
		futex_wait(&gate->page->wake, wake, lease_ns / 4 < NS_PER_MS ? NS_PER_MS : lease_ns / 4);
}

int gate_enter(struct gate *gate, enum gate_class class)
{
	struct gate_page *page = gate->page;
	struct gate_slot *slot;
	uint32_t wake;
	int err;

	if (gate->slot < 0) {
		err = gate_register(gate);
		if (err)
			return err;
	}
	slot = &page->slots[gate->slot];
	if (gate->cancelled)
		return -ECANCELED;
	err = gate_try(gate, class, gate_now_ns());
	if (err == 0)
		return 0;
	slot->waiting++;
	if (!page->open)
		notify_arbiter(page);
	for (;;) {
		wake = page->wake;
		if (gate->cancelled) {
			err = -ECANCELED;
			break;
		}
		err = gate_try(gate, class, gate_now_ns());
		if (err == 0)
			break;
		gate_wait(gate, wake);
		/* a process that dies with work in flight leaves a full bound behind */
		if (page->wake == wake && page->open)
			gate_reap(gate);
	}
	slot->waiting--;
	return err;
}

void gate_leave(struct gate *gate)
{
	struct gate_page *page = gate->page;
	int index = gate->slot;
	struct gate_slot *slot;
	uint64_t now_ns = gate_now_ns(), latency_ns = gate->latency_ns, began_ns;
	uint32_t left;

	/* the submission was the parent's, before a fork */
	if (index < 0)
		return;
	slot = &page->slots[index];
	gate_lock(gate, &page->lock);
	if (slot->in_flight > 0)
		slot->in_flight--;
	slot->finished++;
	left = sum_in_flight(page);
	began_ns = page->busy_since_ns < now_ns ? page->busy_since_ns : now_ns;
	learn_length(page, (uint32_t)((now_ns - began_ns) / NS_PER_US));
	page->busy_since_ns = now_ns;
	if (left == 0)
		page->idle_since_ns = latency_ns < now_ns - began_ns ? now_ns - latency_ns : began_ns;
	gate_unlock(&page->lock);
	atomic_thread_fence(memory_order_seq_cst);
	if (page->open || gate->lapsed) {
		if (any_waiting(page))
			wake_processes(page);
	} else if (left == 0) {
		notify_arbiter(page);
	}
}

void gate_block(struct gate *gate)
{
	if (gate->slot >= 0)
		gate->page->slots[gate->slot].blocked++;
}

void gate_unblock(struct gate *gate)
{
	struct gate_page *page = gate->page;
	uint32_t before;

	if (gate->slot < 0)
		return;
	gate_lock(gate, &page->lock);
	before = sum_in_flight(page);
	page->slots[gate->slot].blocked--;
	page->slots[gate->slot].in_flight++;
	page->slots[gate->slot].admitted++;
	admitted(page, before, gate_now_ns());
	gate_unlock(&page->lock);
	if (before == 0)
		notify_arbiter(page);
}

void gate_cancel(struct gate *gate, bool on)
{
	gate->cancelled = on;
	if (on)
		wake_processes(gate->page);
}

void gate_set_latency(struct gate *gate, uint64_t latency_ns)
{
	gate->latency_ns = latency_ns;
	gate->page->latency_us = (uint32_t)(latency_ns / NS_PER_US);
}

void gate_measured(struct gate *gate, uint64_t gpu_ns)
{
	if (gate->slot >= 0)
		gate->page->slots[gate->slot].gpu_ns += gpu_ns;
}

void gate_set_open(struct gate *gate, bool open)
{
	struct gate_page *page = gate->page;

	if (open && !page->open)
		page->turn++;
	page->open = open;
	if (open) {
		wake_processes(page);
	} else {
		/* see "Closing" in gate.h */
		atomic_thread_fence(memory_order_seq_cst);
	}
}
