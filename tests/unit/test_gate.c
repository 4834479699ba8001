// SPDX-License-Identifier: LGPL-2.1-or-later
/* The gate between processes: who is alive, the lock that outlives its owner, lease, account. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/gate_private.h"
#include "tests/unit/crew.h"
#include "tests/unit/suite.h"

#define MS    1000000ull
#define SHARE 1000000ull

struct tally {
	_Atomic int ready;
	_Atomic int go;
	_Atomic uint64_t count;
	_Atomic uint64_t held; /* bytes that the process knows it holds, raised before it asks */
	_Atomic uint64_t refused;
	_Atomic int error;
	_Atomic uint64_t at_ns;
};

static struct gate *open_fd(int fd, struct tally *tally)
{
	char where[16];
	struct gate *gate;
	int err;

	snprintf(where, sizeof(where), "%d", fd);
	gate = gate_open(where, &err);
	if (!gate) {
		tally->error = err;
		tally->ready = -1;
		_exit(1);
	}
	return gate;
}

static void run_register(int fd, void *data)
{
	struct tally *tally = data;

	open_fd(fd, tally);
	tally->ready = 1;
	for (;;)
		pause();
}

static void test_registers_and_dies(void)
{
	struct tally *tally = crew_shared(sizeof(*tally));
	int fd = gate_create(0), err;
	struct gate *gate = gate_own(fd, &err);
	pid_t pid = crew_start(run_register, fd, tally);

	CU_ASSERT_PTR_NOT_NULL_FATAL(gate);
	CU_ASSERT(CREW_WAIT(tally->ready));
	CU_ASSERT_EQUAL(gate_slot_pid(gate, 0), pid);
	CU_ASSERT_TRUE(gate_is_registered(gate, pid));
	CU_ASSERT_FALSE(gate_is_registered(gate, getpid()));
	/* whatever the page says about the pid: the kernel knows better */
	gate_page(gate)->slots[0].pid = 1;
	CU_ASSERT_EQUAL(gate_slot_pid(gate, 0), pid);
	CU_ASSERT_EQUAL(gate_reap(gate), 0);
	CU_ASSERT_EQUAL(gate_slot_kill(gate, 0), 0);
	waitpid(pid, NULL, 0);
	CU_ASSERT_EQUAL(gate_slot_pid(gate, 0), 0);
	CU_ASSERT_EQUAL(gate_slot_kill(gate, 0), -ESRCH);
	CU_ASSERT_EQUAL(gate_reap(gate), 1);
	CU_ASSERT_EQUAL(gate_page(gate)->slots[0].pid, 0);
	gate_disown(gate);
	close(fd);
}

static void test_slots_run_out(void)
{
	struct tally *tally = crew_shared(sizeof(*tally) * (GATE_SLOTS + 1));
	int fd = gate_create(0);
	pid_t pids[GATE_SLOTS + 1];

	for (int i = 0; i <= GATE_SLOTS; i++) {
		pids[i] = crew_start(run_register, fd, &tally[i]);
		CU_ASSERT(CREW_WAIT(tally[i].ready));
	}
	CU_ASSERT_EQUAL(tally[GATE_SLOTS].error, -EUSERS);
	for (int i = 0; i <= GATE_SLOTS; i++)
		crew_kill(pids[i]);
	/* and are there again when their owners are gone */
	memset(tally, 0, sizeof(*tally));
	pids[0] = crew_start(run_register, fd, tally);
	CU_ASSERT(CREW_WAIT(tally->ready == 1));
	crew_kill(pids[0]);
	close(fd);
}

static void test_refuses_what_is_no_gate(void)
{
	char path[] = "/tmp/octavo-gate-XXXXXX";
	struct gate_page *page;
	int fd = mkstemp(path), err = 0, gate_fd;

	unlink(path);
	CU_ASSERT_PTR_NULL(gate_own(fd, &err));
	CU_ASSERT_EQUAL(err, -EPROTO);
	/* right size, but it could shrink under the arbiter */
	CU_ASSERT_EQUAL(ftruncate(fd, GATE_PAGE_SIZE), 0);
	CU_ASSERT_PTR_NULL(gate_own(fd, &err));
	CU_ASSERT_EQUAL(err, -EPROTO);
	close(fd);
	gate_fd = gate_create(0);
	CU_ASSERT(ftruncate(gate_fd, 0) != 0);
	page = mmap(NULL, GATE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, gate_fd, 0);
	page->version++;
	CU_ASSERT_PTR_NULL(gate_own(gate_fd, &err));
	CU_ASSERT_EQUAL(err, -EPROTO);
	munmap(page, GATE_PAGE_SIZE);
	close(gate_fd);
	unsetenv("OCTAVO_GATE_FD");
	unsetenv("OCTAVO_GATE");
	CU_ASSERT_PTR_NULL(gate_open(NULL, &err));
	CU_ASSERT_EQUAL(err, -ENOENT);
	CU_ASSERT_PTR_NULL(gate_open("12x", &err));
	CU_ASSERT_EQUAL(err, -EBADF);
	CU_ASSERT_PTR_NULL(gate_open("/nonexistent/gate", &err));
	CU_ASSERT_EQUAL(err, -ENOENT);
}

/* Takes the lock and dies with it when told. */
static void run_hold_lock(int fd, void *data)
{
	struct tally *tally = data;
	struct gate *gate = open_fd(fd, tally);

	gate_lock(gate, &gate->page->lock);
	gate_lock(gate, &gate->page->quota_lock);
	tally->ready = 1;
	for (;;)
		pause();
}

static void run_enter(int fd, void *data)
{
	struct tally *tally = data;
	struct gate *gate = open_fd(fd, tally);

	tally->ready = 1;
	for (;;) {
		if (gate_enter(gate, GATE_WORK))
			tally->error = 1;
		if (gate_charge(gate, 10))
			tally->error = 2;
		tally->at_ns = gate_now_ns();
		gate_uncharge(gate, 10);
		gate_leave(gate);
		tally->count++;
	}
}

static void test_lock_of_the_dead(void)
{
	struct tally *tally = crew_shared(sizeof(*tally) * 2);
	int fd = gate_create(SHARE);
	pid_t holder = crew_start(run_hold_lock, fd, &tally[0]), other;

	CU_ASSERT(CREW_WAIT(tally[0].ready));
	other = crew_start(run_enter, fd, &tally[1]);
	CU_ASSERT(CREW_WAIT(tally[1].ready));
	usleep(20000);
	CU_ASSERT_EQUAL(tally[1].count, 0);
	crew_kill(holder);
	CU_ASSERT(CREW_WAIT(tally[1].count > 100));
	CU_ASSERT_EQUAL(tally[1].error, 0);
	crew_kill(other);
	close(fd);
}

static void test_closed_gate_stops_and_lease_opens(void)
{
	struct tally *tally = crew_shared(sizeof(*tally));
	int fd = gate_create(0);
	struct gate *gate = gate_own(fd, NULL);
	struct gate_page *page = gate_page(gate);
	uint64_t count, closed_ns;
	pid_t pid;

	page->lease_ms = 100;
	pid = crew_start(run_enter, fd, tally);
	CU_ASSERT(CREW_WAIT(tally->count > 10));
	page->heartbeat++;
	gate_set_open(gate, false);
	CU_ASSERT(CREW_WAIT(page->slots[0].waiting == 1 && page->slots[0].in_flight == 0));
	count = tally->count;
	/* an arbiter that lives keeps it closed */
	for (int i = 0; i < 20; i++) {
		page->heartbeat++;
		usleep(10000);
	}
	CU_ASSERT_EQUAL(tally->count, count);
	closed_ns = gate_now_ns();
	CU_ASSERT(CREW_WAIT(tally->count > count + 10));
	CU_ASSERT(gate_now_ns() - closed_ns >= 70 * MS);
	/* and when it comes back the gate is closed again */
	page->heartbeat++;
	CU_ASSERT(CREW_WAIT(page->slots[0].waiting == 1));
	page->heartbeat++;
	gate_set_open(gate, true);
	count = tally->count;
	CU_ASSERT(CREW_WAIT(tally->count > count + 10));
	CU_ASSERT_EQUAL(tally->error, 0);
	crew_kill(pid);
	gate_disown(gate);
	close(fd);
}

/* Allocates and frees at random, never more than it is let. */
static void run_allocate(int fd, void *data)
{
	struct tally *tally = data;
	struct gate *gate = open_fd(fd, tally);
	uint64_t mine[16] = { 0 };
	uint32_t state = (uint32_t)getpid() * 2654435761u;

	tally->ready = 1;
	for (;;) {
		uint64_t *slot, bytes;

		state = state * 1664525u + 1013904223u;
		slot = &mine[state >> 28];
		if (*slot) {
			gate_uncharge(gate, *slot);
			tally->held -= *slot;
			*slot = 0;
			continue;
		}
		bytes = 1 + (state >> 8) % (SHARE / 20);
		if (gate_charge(gate, bytes) == 0) {
			*slot = bytes;
			tally->held += bytes;
			tally->count++;
		} else {
			tally->refused++;
		}
	}
}

static uint64_t sum_charged(struct gate *gate)
{
	uint64_t sum = 0;

	for (int i = 0; i < GATE_SLOTS; i++)
		sum += gate_page(gate)->slots[i].charged_bytes;
	return sum;
}

static int kills(void)
{
	const char *soak = getenv("OCTAVO_SOAK");

	return soak && *soak ? 500 : 40;
}

static void test_account_survives_kills(void)
{
	enum { CREW = 8 };
	struct tally *tally = crew_shared(sizeof(*tally) * CREW);
	int fd = gate_create(SHARE);
	struct gate *gate = gate_own(fd, NULL);
	struct gate_account account;
	uint64_t refused = 0, most = 0;
	pid_t pids[CREW];

	for (int i = 0; i < CREW; i++)
		pids[i] = crew_start(run_allocate, fd, &tally[i]);
	for (int i = 0; i < CREW; i++)
		CU_ASSERT(CREW_WAIT(tally[i].ready));
	for (int n = 0; n < kills(); n++) {
		int victim = (n * 5) % CREW;
		uint64_t count = tally[victim].count;

		CU_ASSERT(CREW_WAIT(tally[victim].count > count + 50));
		for (int i = 0; i < 200; i++) {
			uint64_t sum = sum_charged(gate);

			most = sum > most ? sum : most;
		}
		crew_kill(pids[victim]);
		refused += tally[victim].refused;
		memset(&tally[victim], 0, sizeof(tally[victim]));
		pids[victim] = crew_start(run_allocate, fd, &tally[victim]);
		CU_ASSERT(CREW_WAIT(tally[victim].ready));
	}
	/*
	 * Slots are read one by one while others move, so a sum can mix moments; what is exact is
	 * what each holds when nobody moves.
	 */
	for (int i = 0; i < CREW; i++)
		kill(pids[i], SIGSTOP);
	for (int i = 0; i < CREW; i++)
		waitpid(pids[i], NULL, WUNTRACED);
	gate_reap(gate);
	CU_ASSERT(sum_charged(gate) <= SHARE);
	CU_ASSERT(most > SHARE / 2);
	for (int i = 0; i < CREW; i++)
		crew_kill(pids[i]);
	gate_account(gate, &account);
	CU_ASSERT_EQUAL(account.used_bytes, 0);
	CU_ASSERT_EQUAL(account.share_bytes, SHARE);
	/* the load was one that passes the share */
	CU_ASSERT(refused > 0);
	gate_disown(gate);
	close(fd);
}

/* Everybody takes as much as there is, in steps of one: nothing more, nothing less. */
static void run_fill(int fd, void *data)
{
	struct tally *tally = data;
	struct gate *gate = open_fd(fd, tally);

	tally->ready = 1;
	while (!tally->go)
		;
	while (gate_charge(gate, 7) == 0)
		tally->held += 7;
	tally->count = 1;
	for (;;)
		pause();
}

static void test_not_one_byte_over(void)
{
	enum { CREW = 8 };
	struct tally *tally = crew_shared(sizeof(*tally) * CREW);
	uint64_t held = 0, share = 7 * 10000 + 6;
	int fd = gate_create(share);
	struct gate *gate = gate_own(fd, NULL);
	struct gate_account account;
	pid_t pids[CREW];

	for (int i = 0; i < CREW; i++)
		pids[i] = crew_start(run_fill, fd, &tally[i]);
	for (int i = 0; i < CREW; i++)
		CU_ASSERT(CREW_WAIT(tally[i].ready));
	for (int i = 0; i < CREW; i++)
		tally[i].go = 1;
	for (int i = 0; i < CREW; i++) {
		CU_ASSERT(CREW_WAIT(tally[i].count));
		held += tally[i].held;
	}
	CU_ASSERT_EQUAL(held, 70000);
	gate_account(gate, &account);
	CU_ASSERT_EQUAL(account.used_bytes, 70000);
	/* a dead one's part is for the living */
	crew_kill(pids[0]);
	gate_account(gate, &account);
	CU_ASSERT_EQUAL(account.used_bytes, 70000 - tally[0].held);
	for (int i = 1; i < CREW; i++)
		crew_kill(pids[i]);
	gate_disown(gate);
	close(fd);
}

/* A child of a process that has the gate open has a slot of its own. */
static void run_forks(int fd, void *data)
{
	struct tally *tally = data;
	struct gate *gate = open_fd(fd, &tally[0]);
	pid_t child;

	if (gate_charge(gate, 100))
		tally[0].error = 1;
	child = fork();
	if (child == 0) {
		gate_uncharge(gate, 100);
		if (gate_charge(gate, 5) || gate_enter(gate, GATE_WORK))
			tally[1].error = 1;
		tally[1].ready = 1;
		pause();
	}
	tally[0].ready = 1;
	pause();
	crew_kill(child);
}

static void test_fork(void)
{
	struct tally *tally = crew_shared(sizeof(*tally) * 2);
	int fd = gate_create(0);
	struct gate *gate = gate_own(fd, NULL);
	struct gate_account account;
	pid_t pid = crew_start(run_forks, fd, tally);

	CU_ASSERT(CREW_WAIT(tally[0].ready && tally[1].ready));
	CU_ASSERT_EQUAL(tally[0].error + tally[1].error, 0);
	gate_account(gate, &account);
	CU_ASSERT_EQUAL(account.used_bytes, 105);
	CU_ASSERT(gate_slot_pid(gate, 1) != pid);
	CU_ASSERT_EQUAL(gate_page(gate)->slots[1].in_flight, 1);
	CU_ASSERT_EQUAL(gate_slot_kill(gate, 1), 0);
	crew_kill(pid);
	gate_disown(gate);
	close(fd);
}

SUITE_RUN("gate",
	  { "a process registers, is known by the kernel's word, and is reaped",
	    test_registers_and_dies },
	  { "slots run out with an error and come back", test_slots_run_out },
	  { "what is no gate is refused", test_refuses_what_is_no_gate },
	  { "a lock that a dead process holds stops nobody", test_lock_of_the_dead },
	  { "a closed gate stops, a lapsed lease opens it", test_closed_gate_stops_and_lease_opens },
	  { "eight allocate at once: not one byte over", test_not_one_byte_over },
	  { "the account is exact after kills at random moments", test_account_survives_kills },
	  { "a forked child has a slot and an account of its own", test_fork })
