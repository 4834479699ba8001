// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/policy.h"

#include <errno.h>
#include <string.h>

/* Virtual times are moved back when V passes this: a century before an int64_t overflows. */
#define POLICY_REBASE_NS (INT64_C(1) << 53)

/* What all vGPUs weigh where weights do not count: an eighth, so that debts mean the same. */
#define POLICY_ALIKE (POLICY_WHOLE / 8)

static uint32_t weight_own(const struct policy *policy, int i)
{
	return policy->vgpus[i].weight;
}

static uint32_t weight_alike(const struct policy *policy, int i)
{
	(void)policy;
	(void)i;
	return POLICY_ALIKE;
}

static uint64_t ready_now(const struct policy *policy, int i)
{
	(void)i;
	return policy->now_ns;
}

static uint64_t ready_bucket(const struct policy *policy, int i)
{
	const struct policy_vgpu *vgpu = &policy->vgpus[i];

	if (vgpu->bucket_ns > 0)
		return policy->now_ns;
	/* the first nanosecond at which the bucket holds at least one */
	return policy->now_ns +
	       ((uint64_t)(1 - vgpu->bucket_ns) * POLICY_WHOLE + vgpu->weight - 1) / vgpu->weight;
}

static bool before_v(const struct policy *policy, int a, int b)
{
	return policy->vgpus[a].v_ns < policy->vgpus[b].v_ns;
}

static bool before_none(const struct policy *policy, int a, int b)
{
	(void)policy;
	(void)a;
	(void)b;
	return false;
}

static const struct policy_ops policies[POLICY_KINDS] = {
	[POLICY_ELASTIC] = { "elastic", weight_own, ready_now, before_v },
	[POLICY_FIXED_SHARE] = { "fixed-share", weight_own, ready_bucket, before_v },
	[POLICY_EQUAL_SHARE] = { "equal-share", weight_alike, ready_now, before_v },
	[POLICY_BEST_EFFORT] = { "best-effort", weight_alike, ready_now, before_none },
};

int policy_parse(const char *name)
{
	for (int i = 0; i < POLICY_KINDS; i++)
		if (strcmp(policies[i].name, name) == 0)
			return i;
	return -EINVAL;
}

const char *policy_name(enum policy_kind kind)
{
	return policies[kind].name;
}

void policy_init(struct policy *policy, uint64_t now_ns)
{
	memset(policy, 0, sizeof(*policy));
	policy->ops = &policies[POLICY_ELASTIC];
	policy->slice_ns = POLICY_SLICE_NS;
	policy->now_ns = now_ns;
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ns of use at this weight, in virtual time; neither factor can overflow within a century */
static int64_t virtual_ns(uint64_t ns, uint32_t weight)
{
	return (int64_t)(ns * POLICY_WHOLE / weight);
}

/* Whether V waits for this one: who is held off must not hold V back, or the others pile up debt. */
static bool policy_counts(const struct policy_vgpu *vgpu)
{
	return vgpu->used && vgpu->working && vgpu->not_before_ns == 0;
}

/* What a bucket may be in debt, or save while its vGPU waits for others. */
static int64_t bucket_span(const struct policy *policy, int i)
{
	return (int64_t)((uint64_t)POLICY_DEBT_NS * policy->vgpus[i].weight / POLICY_WHOLE);
}

static int64_t bucket_most(const struct policy *policy, int i)
{
	if (!policy->vgpus[i].working)
		return (int64_t)policy->slice_ns;
	return max64((int64_t)policy->slice_ns, bucket_span(policy, i));
}

static void policy_clamp(struct policy *policy, int i)
{
	struct policy_vgpu *vgpu = &policy->vgpus[i];
	int64_t credit = virtual_ns(policy->slice_ns, policy->ops->weight(policy, i));

	vgpu->v_ns = max64(min64(vgpu->v_ns, policy->v_ns + POLICY_DEBT_NS), policy->v_ns - credit);
}

/* The policy's clock goes on: buckets fill, and V moves while nobody works. */
static void policy_advance(struct policy *policy, uint64_t now_ns)
{
	uint64_t elapsed;
	bool working = false;

	if (now_ns <= policy->now_ns)
		return;
	elapsed = now_ns - policy->now_ns;
	policy->now_ns = now_ns;
	for (int i = 0; i < policy->limit; i++) {
		struct policy_vgpu *vgpu = &policy->vgpus[i];

		if (!vgpu->used)
			continue;
		working |= policy_counts(vgpu);
		vgpu->bucket_ns += (int64_t)(elapsed * vgpu->weight / POLICY_WHOLE);
		vgpu->bucket_ns = min64(vgpu->bucket_ns, bucket_most(policy, i));
	}
	if (!working)
		policy->v_ns += (int64_t)elapsed;
	for (int i = 0; i < policy->limit; i++)
		if (policy->vgpus[i].not_before_ns && policy->vgpus[i].not_before_ns <= now_ns) {
			policy->vgpus[i].not_before_ns = 0;
			policy_clamp(policy, i);
		}
}

/* V follows the least v_i of those with work; it never goes back. */
static void policy_follow(struct policy *policy)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < policy->limit; i++)
		if (policy_counts(&policy->vgpus[i]))
			least = min64(least, policy->vgpus[i].v_ns);
	if (least != INT64_MAX)
		policy->v_ns = max64(policy->v_ns, least);
	if (policy->v_ns < POLICY_REBASE_NS)
		return;
	for (int i = 0; i < policy->limit; i++)
		policy->vgpus[i].v_ns -= policy->v_ns;
	policy->v_ns = 0;
}

void policy_forgive(struct policy *policy, uint64_t now_ns)
{
	policy_advance(policy, now_ns);
	for (int i = 0; i < policy->limit; i++) {
		policy->vgpus[i].v_ns = policy->v_ns;
		policy->vgpus[i].bucket_ns = 0;
	}
}

int policy_set_kind(struct policy *policy, enum policy_kind kind, uint64_t now_ns)
{
	if ((unsigned int)kind >= POLICY_KINDS)
		return -EINVAL;
	if (policy->ops == &policies[kind])
		return 0;
	policy->ops = &policies[kind];
	policy_forgive(policy, now_ns);
	return 0;
}

int policy_set_slice(struct policy *policy, uint64_t slice_ns)
{
	if (slice_ns < POLICY_SLICE_MIN_NS || slice_ns > POLICY_SLICE_MAX_NS)
		return -ERANGE;
	policy->slice_ns = slice_ns;
	return 0;
}

int policy_add(struct policy *policy, uint32_t weight, uint64_t now_ns)
{
	if (weight == 0 || weight > POLICY_WHOLE)
		return -ERANGE;
	policy_advance(policy, now_ns);
	for (int i = 0; i < POLICY_MAX_VGPUS; i++) {
		if (policy->vgpus[i].used)
			continue;
		if (i >= policy->limit)
			policy->limit = i + 1;
		policy->vgpus[i] = (struct policy_vgpu){
			.used = true,
			.weight = weight,
			.v_ns = policy->v_ns,
		};
		return i;
	}
	return -ENOSPC;
}

void policy_remove(struct policy *policy, int i)
{
	policy->vgpus[i] = (struct policy_vgpu){ 0 };
	while (policy->limit > 0 && !policy->vgpus[policy->limit - 1].used)
		policy->limit--;
	policy_follow(policy);
}

void policy_set_working(struct policy *policy, int i, bool working, uint64_t now_ns)
{
	struct policy_vgpu *vgpu = &policy->vgpus[i];

	policy_advance(policy, now_ns);
	if (vgpu->working == working)
		return;
	if (working)
		policy_clamp(policy, i);
	vgpu->working = working;
	policy_follow(policy);
}

void policy_hold_off(struct policy *policy, int i, uint64_t until_ns)
{
	policy->vgpus[i].not_before_ns = until_ns > policy->now_ns ? until_ns : 0;
	policy_follow(policy);
}

static bool policy_before(const struct policy *policy, int a, int b)
{
	if (policy->ops->before(policy, a, b))
		return true;
	if (policy->ops->before(policy, b, a))
		return false;
	return policy->vgpus[a].last_turn < policy->vgpus[b].last_turn;
}

int policy_next_but(struct policy *policy, int but, uint64_t now_ns, uint64_t *retry_ns)
{
	int next = -1;

	policy_advance(policy, now_ns);
	*retry_ns = POLICY_NEVER;
	for (int i = 0; i < policy->limit; i++) {
		const struct policy_vgpu *vgpu = &policy->vgpus[i];
		uint64_t at;

		if (!vgpu->used || !vgpu->working || i == but)
			continue;
		at = policy->ops->ready_at(policy, i);
		if (at < vgpu->not_before_ns)
			at = vgpu->not_before_ns;
		if (at > policy->now_ns)
			*retry_ns = at < *retry_ns ? at : *retry_ns;
		else if (next < 0 || policy_before(policy, i, next))
			next = i;
	}
	return next;
}

int policy_next(struct policy *policy, uint64_t now_ns, uint64_t *retry_ns)
{
	return policy_next_but(policy, POLICY_MAX_VGPUS, now_ns, retry_ns);
}

int policy_next_after(struct policy *policy, int i, uint64_t used_ns, uint64_t now_ns,
		      uint64_t *retry_ns)
{
	struct policy_vgpu *vgpu = &policy->vgpus[i];
	int64_t v_ns, bucket_ns;
	int next;

	policy_advance(policy, now_ns);
	v_ns = vgpu->v_ns;
	bucket_ns = vgpu->bucket_ns;
	vgpu->v_ns += virtual_ns(used_ns, policy->ops->weight(policy, i));
	vgpu->bucket_ns -= (int64_t)used_ns;
	next = policy_next(policy, now_ns, retry_ns);
	vgpu->v_ns = v_ns;
	vgpu->bucket_ns = bucket_ns;
	return next;
}

void policy_begin(struct policy *policy, int i, uint64_t now_ns)
{
	policy_advance(policy, now_ns);
	policy->vgpus[i].last_turn = ++policy->turns;
}

void policy_charge(struct policy *policy, int i, uint64_t used_ns, uint64_t now_ns)
{
	struct policy_vgpu *vgpu = &policy->vgpus[i];

	policy_advance(policy, now_ns);
	vgpu->used_ns += used_ns;
	vgpu->bucket_ns = max64(vgpu->bucket_ns - (int64_t)used_ns, -bucket_span(policy, i));
	vgpu->v_ns += virtual_ns(used_ns, policy->ops->weight(policy, i));
	policy_follow(policy);
	vgpu->v_ns = min64(vgpu->v_ns, policy->v_ns + POLICY_DEBT_NS);
}

int64_t policy_debt(const struct policy *policy, int i)
{
	return policy->vgpus[i].v_ns - policy->v_ns;
}
