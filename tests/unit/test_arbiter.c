// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The arbiter with real gates and processes. The GPU is a nap of a millisecond, so what is tested
 * is who may go, not how fast: shares have wide margins here and narrow ones in the benchmark.
 */
#include <errno.h>
#include <string.h>
#include <stdio.h>

#include "scheduler/arbiter.h"
#include "scheduler/gate_private.h"
#include "scheduler/guard.h"
#include "tests/unit/crew.h"
#include "tests/unit/suite.h"

#define MS 1000000ull

struct client {
	int fd;
	pid_t pid;
	int id;
	_Atomic uint64_t count;
	_Atomic uint64_t longest_wait_ns;
	_Atomic int hang;
	_Atomic int garbage;
	unsigned int nap_us;
};

static void run_client(int fd, void *data)
{
	struct client *client = data;
	char where[16];
	struct gate *gate;

	snprintf(where, sizeof(where), "%d", fd);
	gate = gate_open(where, NULL);
	if (!gate)
		_exit(1);
	for (;;) {
		uint64_t begin_ns = gate_now_ns(), waited_ns;

		if (gate_enter(gate, GATE_WORK))
			_exit(1);
		waited_ns = gate_now_ns() - begin_ns;
		if (waited_ns > client->longest_wait_ns)
			client->longest_wait_ns = waited_ns;
		while (client->hang)
			usleep(1000);
		if (client->garbage) {
			/* all that a compromised process can do to its page, again and again */
			uint32_t *words = (uint32_t *)gate_page(gate), state = 1;

			for (;;)
				for (unsigned int i = 0; i < GATE_PAGE_SIZE / 4; i++) {
					state = state * 1664525u + 1013904223u;
					words[i] = state;
					if (i % 64 == 0)
						futex_wake(&gate_page(gate)->event, 1);
				}
		}
		usleep(client->nap_us);
		client->count++;
		gate_leave(gate);
	}
}

struct stage {
	struct arbiter *arbiter;
	struct client *clients;
	int n;
	struct arbiter_kill kill;
	_Atomic int kills;
};

static void killed(const struct arbiter_kill *kill, void *data)
{
	struct stage *stage = data;

	stage->kill = *kill;
	stage->kills++;
}

static void client_start(struct client *client)
{
	client->pid = crew_start(run_client, client->fd, client);
}

static void stage_up(struct stage *stage, enum policy_kind policy, const uint32_t *weights, int n)
{
	struct arbiter_config config = {
		.policy = policy,
		.watchdog_ns = 200 * MS,
		.killed = killed,
		.data = stage,
	};

	stage->clients = crew_shared(sizeof(struct client) * (size_t)n);
	stage->n = n;
	stage->arbiter = arbiter_create(&config, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(stage->arbiter);
	for (int i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "vgpu%d", i);
		stage->clients[i].fd = gate_create(0);
		stage->clients[i].nap_us = 1000;
		stage->clients[i].id = arbiter_add_vgpu(stage->arbiter, stage->clients[i].fd,
							weights[i], name, &stage->clients[i]);
		CU_ASSERT_EQUAL(stage->clients[i].id, i);
	}
	for (int i = 0; i < n; i++)
		client_start(&stage->clients[i]);
}

static void stage_down(struct stage *stage)
{
	for (int i = 0; i < stage->n; i++) {
		crew_kill(stage->clients[i].pid);
		close(stage->clients[i].fd);
	}
	arbiter_destroy(stage->arbiter);
}

/*
 * Part of all work that client i gets done while `work` pieces get done by all. On a loaded machine
 * naps are longer than asked, and not alike, so this is only good for wide margins.
 */
static double measure(struct stage *stage, int i, uint64_t work)
{
	uint64_t before[8], sum = 0, mine = 0;

	for (int j = 0; j < stage->n; j++)
		before[j] = stage->clients[j].count;
	CU_ASSERT(CREW_WAIT(({
		sum = 0;
		for (int j = 0; j < stage->n; j++)
			sum += stage->clients[j].count - before[j];
		sum >= work;
	})));
	mine = stage->clients[i].count - before[i];
	return (double)mine / (double)sum;
}

/* Part of the charged time that client i gets while `work` pieces of work get done by all. */
static double measure_charged(struct stage *stage, int i, uint64_t work)
{
	struct arbiter_stats stats;
	uint64_t before[8], sum = 0, mine = 0;

	for (int j = 0; j < stage->n; j++) {
		CU_ASSERT_EQUAL(arbiter_stats(stage->arbiter, j, &stats), 0);
		before[j] = stats.used_ns;
	}
	measure(stage, i, work);
	for (int j = 0; j < stage->n; j++) {
		CU_ASSERT_EQUAL(arbiter_stats(stage->arbiter, j, &stats), 0);
		sum += stats.used_ns - before[j];
		if (j == i)
			mine = stats.used_ns - before[j];
	}
	return (double)mine / (double)sum;
}

static void test_quarter(void)
{
	struct stage stage = { 0 };
	struct arbiter_stats stats;
	struct arbiter_gpu_stats gpu_stats;
	struct arbiter_slice slices[64];
	uint64_t cursor = 0;
	size_t n;

	stage_up(&stage, POLICY_ELASTIC, (const uint32_t[]){ 250, 750 }, 2);
	measure(&stage, 0, 100);
	CU_ASSERT_DOUBLE_EQUAL(measure_charged(&stage, 0, 1500), 0.25, 0.03);
	/* at run time: equal shares, then back */
	CU_ASSERT_EQUAL(arbiter_set_policy(stage.arbiter, POLICY_EQUAL_SHARE), 0);
	CU_ASSERT_EQUAL(arbiter_set_slice(stage.arbiter, 10 * MS), 0);
	measure(&stage, 0, 50);
	CU_ASSERT_DOUBLE_EQUAL(measure_charged(&stage, 0, 1500), 0.5, 0.03);
	CU_ASSERT_EQUAL(arbiter_set_slice(stage.arbiter, 31 * MS), -ERANGE);
	CU_ASSERT_EQUAL(arbiter_set_policy(stage.arbiter, POLICY_KINDS), -EINVAL);
	CU_ASSERT_EQUAL(arbiter_stats(stage.arbiter, 0, &stats), 0);
	CU_ASSERT(stats.turns > 10 && stats.used_ns > 100 * MS && stats.waited_ns > 100 * MS);
	CU_ASSERT_EQUAL(stats.processes, 1);
	CU_ASSERT_EQUAL(arbiter_stats(stage.arbiter, 5, &stats), -ENOENT);
	n = arbiter_read_log(stage.arbiter, &cursor, slices, 64);
	CU_ASSERT_EQUAL_FATAL(n, 64);
	for (size_t i = 1; i < n; i++) {
		CU_ASSERT_EQUAL(slices[i].sequence, slices[i - 1].sequence + 1);
		CU_ASSERT(slices[i].slice.end_ns >= slices[i - 1].slice.end_ns);
	}
	/* the newest, without reading all before it */
	arbiter_gpu_stats(stage.arbiter, &gpu_stats);
	cursor = gpu_stats.slices;
	n = arbiter_read_log(stage.arbiter, &cursor, slices, 64);
	CU_ASSERT_FATAL(n >= 1);
	CU_ASSERT_EQUAL(slices[0].sequence, gpu_stats.slices);
	stage_down(&stage);
}

static void test_fixed_share_alone(void)
{
	struct stage stage = { 0 };
	struct arbiter_stats before, after;
	uint64_t begin_ns;
	double share;

	stage_up(&stage, POLICY_FIXED_SHARE, (const uint32_t[]){ 250 }, 1);
	measure(&stage, 0, 50);
	arbiter_stats(stage.arbiter, 0, &before);
	begin_ns = gate_now_ns();
	measure(&stage, 0, 250);
	arbiter_stats(stage.arbiter, 0, &after);
	share = (double)(after.used_ns - before.used_ns) / (double)(gate_now_ns() - begin_ns);
	CU_ASSERT_DOUBLE_EQUAL(share, 0.25, 0.03);
	stage_down(&stage);
}

static void test_watchdog_kills_and_holds_off(void)
{
	struct stage stage = { 0 };
	struct client *bad;
	struct arbiter_stats stats;

	stage_up(&stage, POLICY_ELASTIC, (const uint32_t[]){ 500, 500 }, 2);
	bad = &stage.clients[0];
	for (int strike = 1; strike <= 3; strike++) {
		uint64_t others = stage.clients[1].count;

		bad->hang = 1;
		CU_ASSERT(CREW_WAIT(stage.kills == strike));
		CU_ASSERT_EQUAL(stage.kill.vgpu, 0);
		CU_ASSERT_STRING_EQUAL(stage.kill.name, "vgpu0");
		CU_ASSERT_PTR_EQUAL(stage.kill.cookie, bad);
		CU_ASSERT_EQUAL(stage.kill.n_pids, 1);
		CU_ASSERT_EQUAL(stage.kill.pids[0], bad->pid);
		CU_ASSERT_EQUAL(stage.kill.kills, (unsigned int)strike);
		CU_ASSERT_EQUAL(stage.kill.held_off_ns, strike < 3 ? 0 : GUARD_PAUSE_NS);
		waitpid(bad->pid, NULL, 0);
		/* the other goes on */
		CU_ASSERT(CREW_WAIT(stage.clients[1].count > others + 20));
		bad->hang = 0;
		client_start(bad);
		if (strike < 3) {
			uint64_t mine = bad->count;

			CU_ASSERT(CREW_WAIT(bad->count > mine + 5));
		}
	}
	CU_ASSERT_EQUAL(arbiter_stats(stage.arbiter, 0, &stats), 0);
	CU_ASSERT_TRUE(stats.held_off);
	CU_ASSERT_EQUAL(stats.kills, 3);
	CU_ASSERT(measure(&stage, 0, 200) < 0.01);
	stage_down(&stage);
}

/* A process of vGPU 0 writes garbage to its page as fast as it can: vGPU 1 has its half still. */
static void test_garbage_in_the_page(void)
{
	struct stage stage = { 0 };
	uint64_t begin_ns, others;

	stage_up(&stage, POLICY_ELASTIC, (const uint32_t[]){ 500, 500 }, 2);
	measure(&stage, 0, 50);
	stage.clients[0].garbage = 1;
	usleep(50000);
	begin_ns = gate_now_ns();
	others = stage.clients[1].count;
	/* the garbage may say "in flight" for a watchdog's time, then its writer is ended */
	CU_ASSERT(CREW_WAIT(stage.clients[1].count > others + 300));
	CU_ASSERT(gate_now_ns() - begin_ns < 4000 * MS);
	stage_down(&stage);
}

/* A client that dies with work in flight does not keep the GPU. */
static void test_death_in_flight(void)
{
	struct stage stage = { 0 };

	stage_up(&stage, POLICY_ELASTIC, (const uint32_t[]){ 500, 500 }, 2);
	for (int i = 0; i < 10; i++) {
		uint64_t others;

		measure(&stage, 0, 20);
		crew_kill(stage.clients[0].pid);
		others = stage.clients[1].count;
		CU_ASSERT(CREW_WAIT(stage.clients[1].count > others + 20));
		client_start(&stage.clients[0]);
	}
	stage_down(&stage);
}

struct hosted {
	int fds[2];
	_Atomic int ready;
};

/* octavod in short: an arbiter in a process of its own that can be stopped and killed */
static void run_arbiter(int fd, void *data)
{
	struct hosted *hosted = data;
	struct arbiter_config config = { .policy = POLICY_ELASTIC };
	struct arbiter *arbiter = arbiter_create(&config, NULL);

	(void)fd;
	for (int i = 0; i < 2; i++)
		if (!arbiter || arbiter_add_vgpu(arbiter, hosted->fds[i], i ? 750 : 250, "v", NULL) != i)
			_exit(1);
	hosted->ready = 1;
	for (;;)
		pause();
}

/* Client 0's part of the work comes to be within limits, on a loaded machine too. */
static bool settles(struct stage *stage, double least, double most)
{
	for (int i = 0; i < 12; i++) {
		double part = measure(stage, 0, 500);

		if (part >= least && part <= most)
			return true;
	}
	return false;
}

static void test_arbiter_stalls_dies_returns(void)
{
	struct hosted *hosted = crew_shared(sizeof(*hosted));
	struct stage stage = { .n = 2 };
	pid_t pid;

	stage.clients = crew_shared(sizeof(struct client) * 2);
	for (int i = 0; i < 2; i++) {
		stage.clients[i].fd = hosted->fds[i] = gate_create(0);
		stage.clients[i].nap_us = 1000;
		client_start(&stage.clients[i]);
	}
	/* no arbiter yet: both run */
	CU_ASSERT(CREW_WAIT(stage.clients[0].count > 20 && stage.clients[1].count > 20));
	pid = crew_start(run_arbiter, -1, hosted);
	CU_ASSERT(CREW_WAIT(hosted->ready));
	CU_ASSERT(settles(&stage, 0.17, 0.33));
	/* stalled: after its lease both run, so neither has a quarter */
	kill(pid, SIGSTOP);
	CU_ASSERT(settles(&stage, 0.42, 0.58));
	kill(pid, SIGCONT);
	CU_ASSERT(settles(&stage, 0.17, 0.33));
	/* killed: likewise, and its successor adopts the gates as they are */
	crew_kill(pid);
	CU_ASSERT(settles(&stage, 0.42, 0.58));
	hosted->ready = 0;
	pid = crew_start(run_arbiter, -1, hosted);
	CU_ASSERT(CREW_WAIT(hosted->ready));
	CU_ASSERT(settles(&stage, 0.17, 0.33));
	crew_kill(pid);
	for (int i = 0; i < 2; i++)
		crew_kill(stage.clients[i].pid);
}

static void test_add_and_remove(void)
{
	struct stage stage = { 0 };
	int fd = gate_create(123);
	struct arbiter_stats stats;
	uint64_t count;

	stage_up(&stage, POLICY_ELASTIC, (const uint32_t[]){ 500, 500 }, 2);
	for (int i = 0; i < 200; i++) {
		int id = arbiter_add_vgpu(stage.arbiter, fd, 125, "guest", NULL);

		CU_ASSERT_EQUAL_FATAL(id, 2);
		CU_ASSERT_EQUAL(arbiter_remove_vgpu(stage.arbiter, id), 0);
	}
	CU_ASSERT_EQUAL(arbiter_remove_vgpu(stage.arbiter, 2), -ENOENT);
	CU_ASSERT_EQUAL(arbiter_add_vgpu(stage.arbiter, fd, 0, "guest", NULL), -ERANGE);
	CU_ASSERT_EQUAL(arbiter_add_vgpu(stage.arbiter, 0, 5, "stdin", NULL), -EPROTO);
	CU_ASSERT_EQUAL(arbiter_add_vgpu(stage.arbiter, fd, 125, "guest", NULL), 2);
	CU_ASSERT_EQUAL(arbiter_stats(stage.arbiter, 2, &stats), 0);
	CU_ASSERT_EQUAL(stats.share_bytes, 123);
	CU_ASSERT_EQUAL(arbiter_set_share(stage.arbiter, 2, 456), 0);
	CU_ASSERT_EQUAL(arbiter_stats(stage.arbiter, 2, &stats), 0);
	CU_ASSERT_EQUAL(stats.share_bytes, 456);
	/* a vGPU that is removed in its turn runs on, and the other too */
	CU_ASSERT_EQUAL(arbiter_remove_vgpu(stage.arbiter, 0), 0);
	count = stage.clients[0].count;
	CU_ASSERT(CREW_WAIT(stage.clients[0].count > count + 50));
	count = stage.clients[1].count;
	CU_ASSERT(CREW_WAIT(stage.clients[1].count > count + 50));
	stage_down(&stage);
	close(fd);
}

static void test_guard(void)
{
	struct guard guard = { 0 };
	unsigned int n;

	CU_ASSERT_EQUAL(guard_strike(&guard, 1, &n), 0);
	CU_ASSERT_EQUAL(guard_strike(&guard, 2, &n), 0);
	CU_ASSERT_EQUAL(guard_strike(&guard, 3, &n), GUARD_PAUSE_NS);
	CU_ASSERT_EQUAL(guard_strike(&guard, 4, &n), 2 * GUARD_PAUSE_NS);
	CU_ASSERT_EQUAL(n, 4);
	for (uint64_t i = 5; i < 40; i++)
		CU_ASSERT(guard_strike(&guard, i, &n) <= GUARD_PAUSE_MAX_NS);
	CU_ASSERT_EQUAL(guard_strike(&guard, 41, &n), GUARD_PAUSE_MAX_NS);
	/* a window later all is forgotten */
	CU_ASSERT_EQUAL(guard_strike(&guard, 42 + GUARD_WINDOW_NS, &n), 0);
	CU_ASSERT_EQUAL(n, 1);
}

SUITE_RUN("arbiter",
	  { "25/75, equal-share at run time, slice log", test_quarter },
	  { "fixed-share keeps a lone 1/4 at 25 %", test_fixed_share_alone },
	  { "a hang is ended, the third time held off, the others go on",
	    test_watchdog_kills_and_holds_off },
	  { "garbage in one page does not stop the other vGPU", test_garbage_in_the_page },
	  { "a death in flight does not keep the GPU", test_death_in_flight },
	  { "stalled and killed arbiters: gates open, a successor adopts them",
	    test_arbiter_stalls_dies_returns },
	  { "vGPUs come and go", test_add_and_remove },
	  { "the guard's pauses grow and are forgotten", test_guard })
