// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/arbiter.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "scheduler/gate_private.h"
#include "scheduler/guard.h"

#define MS 1000000ull
/* Heartbeats come four times a lease, so that one that is late costs nothing. */
#define ARBITER_BEAT_NS (GATE_LEASE_MS * MS / 4)
/* Not drained after this long: look whether the owner of the work still lives. */
#define ARBITER_REAP_NS (20 * MS)
/* Work in flight while others wait: enough that short submissions follow each other closely. */
#define ARBITER_BOUND_CONTENDED_US 3000u
/* How well the length of submissions must be known to open the next gate ahead of their end. */
#define ARBITER_SPREAD_MOST_US 200u
/* A vGPU whose events mean nothing so often in a beat is not listened to until the next. */
#define ARBITER_SPAM 2000u
#define ARBITER_PRIORITY 10

struct arbiter_vgpu {
	struct gate *gate;
	char name[ARBITER_NAME_MAX];
	void *cookie;
	struct guard guard;
	struct arbiter_stats stats;
	/* orders as given; the page is not read back */
	bool open;
	uint32_t flags;
	uint32_t bound_us;
	uint32_t turn;
	/* what was seen last */
	uint32_t event;
	uint32_t finished[GATE_SLOTS];
	uint64_t stuck_since_ns[GATE_SLOTS];
	uint64_t seen_ns;
	uint64_t drain_ns;
	uint32_t spam;
};

struct arbiter {
	pthread_mutex_t mutex;
	pthread_t thread;
	_Atomic uint32_t kick; /* futex: something changed that no gate tells */
	bool stop;
	bool realtime;
	struct arbiter_config config;
	struct turn turn;
	struct turn_view views[POLICY_MAX_VGPUS];
	struct arbiter_vgpu *vgpus[POLICY_MAX_VGPUS];
	uint64_t beat_ns;
	uint32_t beat;
	uint64_t log_next; /* sequence number of the next slice */
	struct arbiter_slice log[ARBITER_LOG_SIZE];
};

/* What a vGPU's page claims, as a view. Sums cannot wrap to nothing: they are only compared to 0. */
static void arbiter_look(struct arbiter_vgpu *vgpu, uint64_t now_ns, struct turn_view *view)
{
	const struct gate_page *page = gate_page(vgpu->gate);
	uint32_t processes = 0, in_flight = 0;

	*view = (struct turn_view){ 0 };
	for (int i = 0; i < gate_slots(page); i++) {
		const struct gate_slot *slot = &page->slots[i];
		uint32_t finished = (uint32_t)slot->finished;
		bool busy = slot->in_flight > 0;

		processes += slot->pid != 0;
		view->waiting |= slot->waiting > 0;
		view->busy |= busy;
		if (!busy) {
			vgpu->stuck_since_ns[i] = 0;
			continue;
		}
		in_flight += slot->in_flight;
		if (vgpu->stuck_since_ns[i] == 0 || finished != vgpu->finished[i]) {
			vgpu->stuck_since_ns[i] = now_ns;
			vgpu->finished[i] = finished;
		}
		if (view->stuck_since_ns == 0 || vgpu->stuck_since_ns[i] < view->stuck_since_ns)
			view->stuck_since_ns = vgpu->stuck_since_ns[i];
	}
	if (page->first_turn == vgpu->turn)
		view->first_ns = page->first_ns;
	view->idle_since_ns = page->idle_since_ns;
	view->gaps_ns = page->gaps_ns;
	/* Lengths that vary tell no end: on an engine per process two would run at once. */
	if (view->busy && page->mean_us && page->spread_us <= ARBITER_SPREAD_MOST_US)
		view->ends_ns = page->busy_since_ns +
				(uint64_t)in_flight * ((uint64_t)page->mean_us + page->spread_us) * 1000;
	view->way_ns = (uint64_t)page->latency_us * 1000 / 2;
	if (!vgpu->open && view->waiting && vgpu->stats.waiting)
		vgpu->stats.waited_ns += now_ns - vgpu->seen_ns;
	vgpu->seen_ns = now_ns;
	vgpu->stats.waiting = view->waiting;
	vgpu->stats.in_flight = in_flight;
	vgpu->stats.processes = processes;
}

static void arbiter_look_all(struct arbiter *arbiter, uint64_t now_ns)
{
	for (int i = 0; i < arbiter->turn.policy.limit; i++)
		if (arbiter->vgpus[i])
			arbiter_look(arbiter->vgpus[i], now_ns, &arbiter->views[i]);
}

static void arbiter_order(struct arbiter_vgpu *vgpu, bool open)
{
	struct gate_page *page = gate_page(vgpu->gate);

	if (open)
		page->turn = ++vgpu->turn;
	vgpu->open = open;
	gate_set_open(vgpu->gate, open);
}

/* How the open gate is to be: how much in flight, and whether an admission must be told. */
static void arbiter_tune(struct arbiter *arbiter, const struct turn_action *action)
{
	struct arbiter_vgpu *vgpu;
	uint32_t flags = action->parked ? GATE_REPORT : 0;
	uint32_t bound_us = action->contended ? ARBITER_BOUND_CONTENDED_US :
						(uint32_t)(arbiter->turn.policy.slice_ns / 1000);

	if (arbiter->turn.holder < 0)
		return;
	vgpu = arbiter->vgpus[arbiter->turn.holder];
	if (vgpu->flags != flags || vgpu->bound_us != bound_us) {
		gate_page(vgpu->gate)->flags = vgpu->flags = flags;
		gate_page(vgpu->gate)->bound_us = vgpu->bound_us = bound_us;
	}
}

/* Time for heartbeats: a page is a stranger's, so all orders are written anew. */
static void arbiter_beat(struct arbiter *arbiter, uint64_t now_ns)
{
	if (now_ns < arbiter->beat_ns)
		return;
	arbiter->beat_ns = now_ns + ARBITER_BEAT_NS;
	arbiter->beat++;
	for (int i = 0; i < arbiter->turn.policy.limit; i++) {
		struct arbiter_vgpu *vgpu = arbiter->vgpus[i];
		struct gate_page *page;

		if (!vgpu)
			continue;
		page = gate_page(vgpu->gate);
		if (page->open != vgpu->open)
			gate_set_open(vgpu->gate, vgpu->open);
		page->lease_ms = GATE_LEASE_MS;
		page->flags = vgpu->flags;
		page->bound_us = vgpu->bound_us;
		page->turn = vgpu->turn;
		page->share_bytes = vgpu->stats.share_bytes;
		page->heartbeat = arbiter->beat;
		vgpu->spam = 0;
		gate_reap(vgpu->gate);
	}
}

static void arbiter_log(struct arbiter *arbiter, const struct turn_slice *slice)
{
	struct arbiter_vgpu *vgpu = arbiter->vgpus[slice->vgpu];
	struct arbiter_slice *entry = &arbiter->log[arbiter->log_next % ARBITER_LOG_SIZE];

	if (slice->used_ns == 0)
		return;
	entry->sequence = arbiter->log_next++;
	entry->slice = *slice;
	memcpy(entry->name, vgpu->name, sizeof(entry->name));
	vgpu->stats.turns++;
	vgpu->stats.used_ns += slice->used_ns;
	vgpu->stats.overrun_ns += slice->overrun_ns;
}

static bool slot_overdue(const struct arbiter *arbiter, const struct arbiter_vgpu *vgpu, int slot,
			 uint64_t now_ns)
{
	uint64_t since = vgpu->stuck_since_ns[slot];

	return since && now_ns - since >= arbiter->turn.watchdog_ns;
}

/* End the processes of a vGPU whose work does not. Drops the mutex for the callback. */
static void arbiter_end(struct arbiter *arbiter, int id, uint64_t now_ns)
{
	struct arbiter_vgpu *vgpu = arbiter->vgpus[id];
	struct gate_page *page = gate_page(vgpu->gate);
	struct arbiter_kill kill = { .vgpu = id, .cookie = vgpu->cookie };
	bool overdue = false;

	for (int i = 0; i < gate_slots(page); i++)
		overdue |= slot_overdue(arbiter, vgpu, i, now_ns);
	for (int i = 0; i < gate_slots(page); i++) {
		pid_t pid;

		/* nobody in particular: then all who keep it from draining */
		if (overdue ? !slot_overdue(arbiter, vgpu, i, now_ns) : vgpu->stuck_since_ns[i] == 0)
			continue;
		pid = gate_slot_pid(vgpu->gate, i);
		if (pid > 0 && gate_slot_kill(vgpu->gate, i) == 0 &&
		    kill.n_pids < sizeof(kill.pids) / sizeof(kill.pids[0]))
			kill.pids[kill.n_pids++] = pid;
	}
	kill.held_off_ns = guard_strike(&vgpu->guard, now_ns, &kill.kills);
	vgpu->stats.kills++;
	if (kill.held_off_ns)
		policy_hold_off(&arbiter->turn.policy, id, now_ns + kill.held_off_ns);
	memcpy(kill.name, vgpu->name, sizeof(kill.name));
	if (arbiter->config.killed) {
		pthread_mutex_unlock(&arbiter->mutex);
		arbiter->config.killed(&kill, arbiter->config.data);
		pthread_mutex_lock(&arbiter->mutex);
	}
}

/*
 * Nothing to do before action's deadline? Then true. False: something is new that calls for another
 * look.
 */
static bool arbiter_rest(struct arbiter *arbiter, struct turn_action *action, uint64_t now_ns)
{
	struct arbiter_vgpu *vgpu;

	if (arbiter->turn.holder < 0)
		return true;
	vgpu = arbiter->vgpus[arbiter->turn.holder];
	/* who was admitted before the flag did not tell: look once more */
	if (action->parked && !(vgpu->flags & GATE_REPORT)) {
		arbiter_tune(arbiter, action);
		return false;
	}
	arbiter_tune(arbiter, action);
	if (arbiter->turn.phase != TURN_PHASE_DRAIN)
		return true;
	if (now_ns >= vgpu->drain_ns + ARBITER_REAP_NS) {
		vgpu->drain_ns = now_ns;
		if (gate_reap(vgpu->gate))
			return false;
	}
	if (vgpu->drain_ns + ARBITER_REAP_NS < action->deadline_ns)
		action->deadline_ns = vgpu->drain_ns + ARBITER_REAP_NS;
	return true;
}

/* Act until there is nothing to do before the deadline that is returned. */
static uint64_t arbiter_act(struct arbiter *arbiter)
{
	uint64_t now_ns = 0;

	/* a page that changes under each look must not keep the thread here */
	for (int steps = 0; steps < 64; steps++) {
		struct turn_action action;
		struct arbiter_vgpu *vgpu;

		now_ns = gate_now_ns();
		arbiter_look_all(arbiter, now_ns);
		turn_step(&arbiter->turn, now_ns, arbiter->views, &action);
		if (action.act == TURN_WAIT) {
			if (arbiter_rest(arbiter, &action, now_ns))
				return action.deadline_ns;
			continue;
		}
		vgpu = arbiter->vgpus[action.vgpu];
		if (!vgpu)
			continue;
		if (action.act == TURN_OPEN) {
			/* others have work, or one of them just had */
			vgpu->flags = 0;
			vgpu->bound_us = ARBITER_BOUND_CONTENDED_US;
			gate_page(vgpu->gate)->flags = 0;
			gate_page(vgpu->gate)->bound_us = vgpu->bound_us;
			arbiter_order(vgpu, true);
		} else if (action.act == TURN_CLOSE) {
			arbiter_order(vgpu, false);
			vgpu->drain_ns = now_ns;
		} else if (action.act == TURN_ENDED) {
			arbiter_log(arbiter, &action.slice);
		} else if (action.act == TURN_KILL) {
			arbiter_end(arbiter, action.vgpu, now_ns);
		}
	}
	return now_ns + MS / 10;
}

/* The words to wait for. Their values are taken before looking, so no change is missed. */
static unsigned int arbiter_words(struct arbiter *arbiter, struct futex_word *words)
{
	unsigned int count = 0;

	words[count++] = (struct futex_word){ &arbiter->kick, arbiter->kick };
	for (int i = 0; i < arbiter->turn.policy.limit; i++) {
		struct arbiter_vgpu *vgpu = arbiter->vgpus[i];
		struct gate_page *page;
		uint32_t event;

		if (!vgpu)
			continue;
		page = gate_page(vgpu->gate);
		event = page->event;
		vgpu->spam += event != vgpu->event;
		vgpu->event = event;
		if (vgpu->spam < ARBITER_SPAM)
			words[count++] = (struct futex_word){ &page->event, event };
	}
	return count;
}

static void *arbiter_run(void *data)
{
	struct arbiter *arbiter = data;
	struct futex_word words[POLICY_MAX_VGPUS + 1];

	prctl(PR_SET_NAME, "octavo-arbiter");
	/* the default of 50 us would be a percent of a slice */
	prctl(PR_SET_TIMERSLACK, 1);
	pthread_mutex_lock(&arbiter->mutex);
	while (!arbiter->stop) {
		unsigned int count = arbiter_words(arbiter, words);
		uint64_t deadline_ns = arbiter_act(arbiter);

		arbiter_beat(arbiter, gate_now_ns());
		if (arbiter->beat_ns < deadline_ns)
			deadline_ns = arbiter->beat_ns;
		pthread_mutex_unlock(&arbiter->mutex);
		futex_wait_any(words, count, deadline_ns);
		pthread_mutex_lock(&arbiter->mutex);
		if (gate_now_ns() > deadline_ns + GATE_LEASE_MS * MS / 2)
			turn_resume(&arbiter->turn, gate_now_ns());
	}
	pthread_mutex_unlock(&arbiter->mutex);
	return NULL;
}

static void arbiter_kick(struct arbiter *arbiter)
{
	arbiter->kick++;
	futex_wake(&arbiter->kick, 1);
}

/* Real-time where allowed: the engine that it feeds may be on the same core (a software one is). */
static int arbiter_start(struct arbiter *arbiter)
{
	const struct sched_param param = { .sched_priority = ARBITER_PRIORITY };
	int err = pthread_create(&arbiter->thread, NULL, arbiter_run, arbiter);

	if (err == 0)
		arbiter->realtime = pthread_setschedparam(arbiter->thread,
							  SCHED_FIFO | SCHED_RESET_ON_FORK,
							  &param) == 0;
	return -err;
}

struct arbiter *arbiter_create(const struct arbiter_config *config, int *err)
{
	struct arbiter *arbiter = calloc(1, sizeof(*arbiter));
	int rc = -ENOMEM;

	if (arbiter) {
		uint64_t slice_ns = config->slice_ns ? config->slice_ns : POLICY_SLICE_NS;

		arbiter->config = *config;
		arbiter->log_next = 1;
		/* a number that the last arbiter's pages are unlikely to show */
		arbiter->beat = (uint32_t)gate_now_ns();
		pthread_mutex_init(&arbiter->mutex, NULL);
		turn_init(&arbiter->turn, gate_now_ns());
		if (config->hold_ns)
			arbiter->turn.hold_ns = config->hold_ns;
		if (config->watchdog_ns)
			arbiter->turn.watchdog_ns = config->watchdog_ns;
		rc = policy_set_kind(&arbiter->turn.policy, config->policy, gate_now_ns());
		if (rc == 0)
			rc = policy_set_slice(&arbiter->turn.policy, slice_ns);
		if (rc == 0)
			rc = arbiter_start(arbiter);
		if (rc) {
			pthread_mutex_destroy(&arbiter->mutex);
			free(arbiter);
			arbiter = NULL;
		}
	}
	if (err)
		*err = rc;
	return arbiter;
}

/* The vGPU runs ungoverned from here on: gate open, nobody's lease. */
static void vgpu_destroy(struct arbiter_vgpu *vgpu)
{
	gate_page(vgpu->gate)->flags = 0;
	gate_set_open(vgpu->gate, true);
	gate_disown(vgpu->gate);
	free(vgpu);
}

void arbiter_destroy(struct arbiter *arbiter)
{
	if (!arbiter)
		return;
	pthread_mutex_lock(&arbiter->mutex);
	arbiter->stop = true;
	pthread_mutex_unlock(&arbiter->mutex);
	arbiter_kick(arbiter);
	pthread_join(arbiter->thread, NULL);
	for (int i = 0; i < POLICY_MAX_VGPUS; i++)
		if (arbiter->vgpus[i])
			vgpu_destroy(arbiter->vgpus[i]);
	pthread_mutex_destroy(&arbiter->mutex);
	free(arbiter);
}

int arbiter_add_vgpu(struct arbiter *arbiter, int fd, uint32_t weight, const char *name,
		     void *cookie)
{
	struct arbiter_vgpu *vgpu = calloc(1, sizeof(*vgpu));
	int id, err;

	if (!vgpu)
		return -ENOMEM;
	vgpu->gate = gate_own(fd, &err);
	if (!vgpu->gate) {
		free(vgpu);
		return err;
	}
	snprintf(vgpu->name, sizeof(vgpu->name), "%s", name);
	vgpu->cookie = cookie;
	vgpu->stats.share_bytes = gate_page(vgpu->gate)->share_bytes;
	vgpu->turn = gate_page(vgpu->gate)->turn;
	vgpu->seen_ns = gate_now_ns();
	pthread_mutex_lock(&arbiter->mutex);
	id = policy_add(&arbiter->turn.policy, weight, gate_now_ns());
	if (id >= 0) {
		gate_page(vgpu->gate)->heartbeat = ++arbiter->beat;
		arbiter_order(vgpu, false);
		arbiter->vgpus[id] = vgpu;
		arbiter->views[id] = (struct turn_view){ 0 };
	}
	pthread_mutex_unlock(&arbiter->mutex);
	if (id < 0) {
		gate_disown(vgpu->gate);
		free(vgpu);
		return id;
	}
	arbiter_kick(arbiter);
	/* cppcheck-suppress memleak ; the arbiter has it */
	return id;
}

int arbiter_remove_vgpu(struct arbiter *arbiter, int id)
{
	struct arbiter_vgpu *vgpu;

	if (id < 0 || id >= POLICY_MAX_VGPUS)
		return -ENOENT;
	pthread_mutex_lock(&arbiter->mutex);
	vgpu = arbiter->vgpus[id];
	if (vgpu) {
		turn_forget(&arbiter->turn, id);
		policy_remove(&arbiter->turn.policy, id);
		arbiter->vgpus[id] = NULL;
	}
	pthread_mutex_unlock(&arbiter->mutex);
	if (!vgpu)
		return -ENOENT;
	arbiter_kick(arbiter);
	/* the thread may be about to wait for this page's word: EFAULT there only makes it look again */
	vgpu_destroy(vgpu);
	return 0;
}

int arbiter_set_share(struct arbiter *arbiter, int id, uint64_t share_bytes)
{
	struct arbiter_vgpu *vgpu = NULL;

	pthread_mutex_lock(&arbiter->mutex);
	if (id >= 0 && id < POLICY_MAX_VGPUS)
		vgpu = arbiter->vgpus[id];
	if (vgpu) {
		vgpu->stats.share_bytes = share_bytes;
		gate_set_share(vgpu->gate, share_bytes);
	}
	pthread_mutex_unlock(&arbiter->mutex);
	return vgpu ? 0 : -ENOENT;
}

int arbiter_set_policy(struct arbiter *arbiter, enum policy_kind policy)
{
	int err;

	pthread_mutex_lock(&arbiter->mutex);
	err = policy_set_kind(&arbiter->turn.policy, policy, gate_now_ns());
	pthread_mutex_unlock(&arbiter->mutex);
	arbiter_kick(arbiter);
	return err;
}

int arbiter_set_slice(struct arbiter *arbiter, uint64_t slice_ns)
{
	int err;

	pthread_mutex_lock(&arbiter->mutex);
	err = policy_set_slice(&arbiter->turn.policy, slice_ns);
	pthread_mutex_unlock(&arbiter->mutex);
	arbiter_kick(arbiter);
	return err;
}

int arbiter_set_watchdog(struct arbiter *arbiter, uint64_t watchdog_ns)
{
	if (watchdog_ns < 100 * MS || watchdog_ns > 3600 * 1000 * MS)
		return -ERANGE;
	pthread_mutex_lock(&arbiter->mutex);
	arbiter->turn.watchdog_ns = watchdog_ns;
	pthread_mutex_unlock(&arbiter->mutex);
	arbiter_kick(arbiter);
	return 0;
}

size_t arbiter_read_log(struct arbiter *arbiter, uint64_t *cursor, struct arbiter_slice *slices,
			size_t max)
{
	size_t count = 0;

	pthread_mutex_lock(&arbiter->mutex);
	if (arbiter->log_next > ARBITER_LOG_SIZE && *cursor < arbiter->log_next - ARBITER_LOG_SIZE)
		*cursor = arbiter->log_next - ARBITER_LOG_SIZE;
	if (*cursor == 0)
		*cursor = 1;
	while (count < max && *cursor < arbiter->log_next)
		slices[count++] = arbiter->log[(*cursor)++ % ARBITER_LOG_SIZE];
	pthread_mutex_unlock(&arbiter->mutex);
	return count;
}

int arbiter_stats(struct arbiter *arbiter, int id, struct arbiter_stats *stats)
{
	struct arbiter_vgpu *vgpu = NULL;

	pthread_mutex_lock(&arbiter->mutex);
	if (id >= 0 && id < POLICY_MAX_VGPUS)
		vgpu = arbiter->vgpus[id];
	if (vgpu) {
		const struct gate_page *page = gate_page(vgpu->gate);
		struct gate_account account;

		gate_account(vgpu->gate, &account);
		*stats = vgpu->stats;
		stats->used_bytes = account.used_bytes;
		stats->debt_ns = policy_debt(&arbiter->turn.policy, id);
		stats->open = vgpu->open;
		stats->held_off = arbiter->turn.policy.vgpus[id].not_before_ns != 0;
		for (int i = 0; i < gate_slots(page); i++)
			stats->gpu_ns += page->slots[i].gpu_ns;
	}
	pthread_mutex_unlock(&arbiter->mutex);
	return vgpu ? 0 : -ENOENT;
}

void arbiter_gpu_stats(struct arbiter *arbiter, struct arbiter_gpu_stats *stats)
{
	pthread_mutex_lock(&arbiter->mutex);
	*stats = (struct arbiter_gpu_stats){
		.policy = (enum policy_kind)policy_parse(arbiter->turn.policy.ops->name),
		.slice_ns = arbiter->turn.policy.slice_ns,
		.watchdog_ns = arbiter->turn.watchdog_ns,
		.switches = arbiter->turn.switches,
		.aheads = arbiter->turn.aheads,
		.hold_idle_ns = arbiter->turn.hold_idle_ns,
		.slices = arbiter->log_next - 1,
		.realtime = arbiter->realtime,
	};
	pthread_mutex_unlock(&arbiter->mutex);
}
