/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who runs next on one GPU, and what a turn costs. Pure functions over virtual time: no clock, no
 * threads, no allocation. The arbiter and the simulator link the same object.
 *
 * Units. Time is nanoseconds on a clock of the caller's that never steps back. A weight is a
 * share of the whole GPU in POLICY_WHOLE-ths: a 1/4 vGPU weighs 250.
 *
 * The arithmetic
 * --------------
 * Every vGPU i has a virtual time v_i: what it has used, divided by its share,
 *
 *	charge:  v_i += used * POLICY_WHOLE / weight_i
 *
 * so on a fully committed GPU a vGPU that gets its exact share moves v_i at the speed of the wall
 * clock. The GPU's own virtual time V is the least v_i of those that have work. The next turn goes
 * to the least v_i; a tie to the one that has waited longest since its last turn.
 *
 * GPU work cannot be pre-empted, so a turn overruns its slice. The overrun is charged like the
 * rest, and v_i - V is the *debt* that others' turns pay back. When a vGPU wakes behind V, the
 * difference V - v_i is *credit*. Both are capped:
 *
 *	debt:    v_i <= V + POLICY_DEBT_NS
 *	         (a submission may cost its vGPU a wait of one second of a full GPU, never more)
 *	credit:  v_i >= V - slice * POLICY_WHOLE / weight_i
 *	         (who slept has one slice to its good, however long it slept)
 *
 * A lone busy vGPU is its own V: it owes nothing when others wake. While nobody has work V moves
 * with the wall clock, so debts are also paid by an idle GPU.
 *
 * fixed-share adds a bucket of GPU time b_i, which fills at weight_i / POLICY_WHOLE of the wall
 * clock whether or not others work, and is emptied by use:
 *
 *	charge:  b_i -= used
 *	fill:    b_i += elapsed * weight_i / POLICY_WHOLE
 *	cap:     |b_i| <= POLICY_DEBT_NS * weight_i / POLICY_WHOLE while it has work (a vGPU that
 *		 waits for others' long submissions keeps its claim), b_i <= slice while it has none
 *
 * A vGPU may begin a turn while b_i > 0. Among those that may, the least v_i is next.
 *
 *	policy       cost weight     may begin        order
 *	elastic      its own         has work         v_i      the default
 *	fixed-share  its own         has work, b_i>0  v_i
 *	equal-share  alike for all   has work         v_i
 *	best-effort  -               has work         longest since its last turn; no debts
 */
#ifndef OCTAVO_SCHEDULER_POLICY_H
#define OCTAVO_SCHEDULER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define POLICY_WHOLE	     1000u
#define POLICY_MAX_VGPUS     64
#define POLICY_SLICE_MIN_NS  1000000ull
#define POLICY_SLICE_MAX_NS  30000000ull
#define POLICY_SLICE_NS	     5000000ull
#define POLICY_DEBT_NS	     1000000000ll
#define POLICY_NEVER	     UINT64_MAX

enum policy_kind {
	POLICY_ELASTIC,
	POLICY_FIXED_SHARE,
	POLICY_EQUAL_SHARE,
	POLICY_BEST_EFFORT,
	POLICY_KINDS,
};

struct policy;

/* One policy: how it differs from the others. */
struct policy_ops {
	const char *name;
	/* weight that a charge of vGPU i is divided by */
	uint32_t (*weight)(const struct policy *policy, int i);
	/* earliest time at which i, if it has work, may begin a turn; <= now: at once */
	uint64_t (*ready_at)(const struct policy *policy, int i);
	/* true if a goes before b; false for both is a tie */
	bool (*before)(const struct policy *policy, int a, int b);
};

/* State of one vGPU. Read it freely; only the functions below write it. */
struct policy_vgpu {
	bool used;
	bool working;		/* has work waiting or on the GPU */
	uint32_t weight;
	int64_t v_ns;		/* v_i; rebased from time to time, so only differences mean anything */
	int64_t bucket_ns;	/* b_i as of policy.now_ns */
	uint64_t last_turn;	/* number of its last turn, 0: none */
	uint64_t not_before_ns; /* held off until then (see policy_hold_off) */
	uint64_t used_ns;	/* all that was ever charged */
};

struct policy {
	const struct policy_ops *ops;
	uint64_t slice_ns;
	uint64_t now_ns;
	int64_t v_ns; /* V */
	uint64_t turns;
	int limit; /* one more than the highest index in use */
	struct policy_vgpu vgpus[POLICY_MAX_VGPUS];
};

/* Elastic, default slice, no vGPUs, at time now. */
void policy_init(struct policy *policy, uint64_t now_ns);

/* Name to kind and back. policy_parse() returns -EINVAL for an unknown name. */
int policy_parse(const char *name);
const char *policy_name(enum policy_kind kind);

/*
 * Change policy or slice while vGPUs run. A new policy forgives all debt and credit, because they
 * were earned under other rules. -EINVAL: unknown kind; -ERANGE: slice outside 1-30 ms.
 */
int policy_set_kind(struct policy *policy, enum policy_kind kind, uint64_t now_ns);
int policy_set_slice(struct policy *policy, uint64_t slice_ns);

/*
 * Add a vGPU: its index (0 to POLICY_MAX_VGPUS - 1), which policy_remove() frees for reuse.
 * Weights may add up to more than the whole; shares are then relative. -ERANGE: weight not in
 * 1..POLICY_WHOLE; -ENOSPC: all indices taken.
 */
int policy_add(struct policy *policy, uint32_t weight, uint64_t now_ns);
void policy_remove(struct policy *policy, int vgpu);

/* vGPU has work (waiting or on the GPU) or has none. Repeating what is known changes nothing. */
void policy_set_working(struct policy *policy, int vgpu, bool working, uint64_t now_ns);

/*
 * No turn for vgpu before that time (absolute; 0: lift). For who hangs the GPU repeatedly. Until
 * then its work does not count: V goes on without it, and it comes back with one slice of credit.
 */
void policy_hold_off(struct policy *policy, int vgpu, uint64_t until_ns);

/*
 * The vGPU whose turn it is, or -1. With -1, *retry_ns is when one may begin for which it is too
 * early now (POLICY_NEVER: none; ask again after policy_set_working()). Changes nothing but the
 * clock. policy_begin() takes the turn. policy_next_but() leaves one vGPU out, policy_next_after()
 * asks as if vgpu had used used_ns more.
 */
int policy_next(struct policy *policy, uint64_t now_ns, uint64_t *retry_ns);
int policy_next_but(struct policy *policy, int but, uint64_t now_ns, uint64_t *retry_ns);
int policy_next_after(struct policy *policy, int vgpu, uint64_t used_ns, uint64_t now_ns,
		      uint64_t *retry_ns);
void policy_begin(struct policy *policy, int vgpu, uint64_t now_ns);

/*
 * vgpu used used_ns of the GPU. Call it for pieces of a turn as often as is convenient, at least
 * when another vGPU begins to have work: what a lone vGPU used before that is then no debt.
 */
void policy_charge(struct policy *policy, int vgpu, uint64_t used_ns, uint64_t now_ns);

/* Forget all debt and credit, when nobody can say any more who used what. */
void policy_forgive(struct policy *policy, uint64_t now_ns);

/* v_i - V in ns, positive: debt. 0 for vGPUs without debt or credit. */
int64_t policy_debt(const struct policy *policy, int vgpu);

#endif
