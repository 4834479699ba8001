// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scheduler/turn.h"

#include <string.h>

/* The part of a slice that may be forgiven as gaps: 1 / TURN_GAPS_PART. */
#define TURN_GAPS_PART 6

void turn_init(struct turn *turn, uint64_t now_ns)
{
	memset(turn, 0, sizeof(*turn));
	policy_init(&turn->policy, now_ns);
	turn->hold_ns = TURN_HOLD_NS;
	turn->watchdog_ns = TURN_WATCHDOG_NS;
	turn->holder = -1;
	turn->ahead = -1;
	turn->previous = -1;
	turn->looked_ns = now_ns;
	for (int i = 0; i < POLICY_MAX_VGPUS; i++)
		turn->lead_ns[i] = TURN_LEAD_NS;
}

static uint64_t clamp64(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* How long before it is to have the GPU a vGPU's gate must open. */
static uint64_t turn_lead(const struct turn *turn, const struct turn_view *views, int vgpu)
{
	return clamp64(turn->lead_ns[vgpu] + views[vgpu].way_ns, 0, TURN_LEAD_MOST_NS);
}

/* How long the holder took from the opening ahead of its turn. A report of its own, for it alone. */
static void turn_learn_lead(struct turn *turn, uint64_t first_ns)
{
	uint64_t *lead_ns = &turn->lead_ns[turn->holder];
	uint64_t took_ns;

	if (!turn->lead_due || first_ns < turn->ahead_ns)
		return;
	took_ns = clamp64(first_ns - turn->ahead_ns, 0, TURN_LEAD_MOST_NS);
	*lead_ns = (7 * *lead_ns + took_ns) / 8;
	turn->lead_due = false;
}

/* When the holder fell idle, as far as it is believed: no earlier than the last thing charged. */
static uint64_t turn_idle_since(const struct turn *turn, uint64_t now_ns,
				const struct turn_view *view)
{
	uint64_t least = turn->charged_to_ns;

	/* a hold plus the arbiter's own lateness ends the turn, so nothing earlier can be true */
	if (now_ns > turn->hold_ns + TURN_GRACE_NS && least < now_ns - turn->hold_ns - TURN_GRACE_NS)
		least = now_ns - turn->hold_ns - TURN_GRACE_NS;
	return clamp64(view->idle_since_ns, least, now_ns);
}

/* Charge the holder up to end_ns. */
static void turn_charge(struct turn *turn, uint64_t now_ns, uint64_t end_ns,
			const struct turn_view *view)
{
	uint64_t elapsed, gaps, most;

	if (end_ns <= turn->charged_to_ns)
		return;
	elapsed = end_ns - turn->charged_to_ns;
	gaps = view->gaps_ns >= turn->gaps_seen_ns ? view->gaps_ns - turn->gaps_seen_ns : 0;
	most = (turn->slice_used_ns + turn->slice_gaps_ns + elapsed) / TURN_GAPS_PART;
	most = most > turn->slice_gaps_ns ? most - turn->slice_gaps_ns : 0;
	gaps = clamp64(gaps, 0, most < elapsed ? most : elapsed);
	turn->gaps_seen_ns = view->gaps_ns;
	turn->charged_to_ns = end_ns;
	turn->slice_gaps_ns += gaps;
	turn->slice_used_ns += elapsed - gaps;
	policy_charge(&turn->policy, turn->holder, elapsed - gaps, now_ns);
}

/* Charge what the holder has used so far; the tail of an open gap is left for later. */
static void turn_account(struct turn *turn, uint64_t now_ns, const struct turn_view *view)
{
	if (!turn->started && (view->busy || view->first_ns >= turn->opened_ns)) {
		uint64_t first = view->first_ns ? view->first_ns : now_ns;
		uint64_t most = turn->opened_ns + TURN_GRACE_NS;

		turn->started = true;
		turn_learn_lead(turn, view->first_ns);
		turn->charged_to_ns = clamp64(first, turn->opened_ns, most < now_ns ? most : now_ns);
		turn->gaps_seen_ns = view->gaps_ns;
	}
	if (turn->started)
		turn_charge(turn, now_ns,
			    view->busy ? now_ns : turn_idle_since(turn, now_ns, view), view);
}

static void turn_slice_begin(struct turn *turn, uint64_t begin_ns)
{
	turn->slice_begin_ns = begin_ns;
	turn->slice_end_ns = begin_ns + turn->policy.slice_ns;
	turn->slice_used_ns = 0;
	turn->slice_gaps_ns = 0;
}

static uint32_t turn_others(const struct turn *turn)
{
	uint32_t others = 0;

	for (int i = 0; i < turn->policy.limit; i++)
		others += turn->policy.vgpus[i].used && turn->policy.vgpus[i].working &&
			  i != turn->holder;
	return others;
}

static void turn_ended(struct turn *turn, uint64_t end_ns, struct turn_action *action)
{
	action->act = TURN_ENDED;
	action->vgpu = turn->holder;
	action->slice = (struct turn_slice){
		.begin_ns = turn->slice_begin_ns,
		.end_ns = end_ns,
		.granted_ns = turn->slice_end_ns - turn->slice_begin_ns,
		.used_ns = turn->slice_used_ns,
		.overrun_ns = end_ns > turn->slice_end_ns ? end_ns - turn->slice_end_ns : 0,
		.vgpu = (uint32_t)turn->holder,
		.waiting = turn_others(turn),
	};
}

static void turn_begin(struct turn *turn, int vgpu, uint64_t now_ns)
{
	policy_begin(&turn->policy, vgpu, now_ns);
	turn->phase = TURN_PHASE_OPEN;
	turn->holder = vgpu;
	turn->parked = false;
	turn->started = false;
	turn->lapsed = false;
	turn->lead_due = false;
	turn->opened_ns = now_ns;
	turn->charged_to_ns = now_ns;
	turn_slice_begin(turn, now_ns);
	if (turn->previous >= 0 && turn->previous != vgpu)
		turn->switches++;
	turn->previous = vgpu;
}

static void turn_close(struct turn *turn, uint64_t now_ns, struct turn_action *action)
{
	turn->closed_ns = now_ns;
	turn->phase = TURN_PHASE_DRAIN;
	action->act = TURN_CLOSE;
	action->vgpu = turn->holder;
}

/* From when on work behind another's turn is charged. */
static uint64_t turn_charged_from(const struct turn *turn, int vgpu)
{
	if (vgpu != turn->ahead)
		return turn->looked_ns;
	return turn->due_ns > turn->looked_ns ? turn->due_ns : turn->looked_ns;
}

/* Tell the policy who has work. The holder has until its turn ends, whatever the moment shows. */
static void turn_look(struct turn *turn, uint64_t now_ns, const struct turn_view *views)
{
	for (int i = 0; i < turn->policy.limit; i++) {
		bool working = views[i].waiting || views[i].busy;
		uint64_t from = turn_charged_from(turn, i);

		if (!turn->policy.vgpus[i].used)
			continue;
		if (i == turn->holder && !turn->parked && !turn->lapsed)
			working = true;
		/* let in when a lease lapsed, let loose by a semaphore, or long ahead of its turn */
		if (i != turn->holder && views[i].busy && now_ns > from)
			policy_charge(&turn->policy, i, now_ns - from, now_ns);
		policy_set_working(&turn->policy, i, working, now_ns);
	}
	turn->looked_ns = now_ns;
}

/* Whether the policy would let the holder begin a turn now, if it alone had work. */
static bool turn_may_begin(struct turn *turn, uint64_t now_ns)
{
	uint64_t retry_ns;
	int next;

	policy_set_working(&turn->policy, turn->holder, true, now_ns);
	next = policy_next(&turn->policy, now_ns, &retry_ns);
	return next == turn->holder;
}

/* The idle hold of the holder is over: it gives the GPU up, or keeps it parked. */
static void turn_lapse(struct turn *turn, uint64_t now_ns, bool wanted, struct turn_action *action,
		       const struct turn_view *view)
{
	uint64_t since = turn->started ? turn_idle_since(turn, now_ns, view) : turn->opened_ns;

	if (wanted) {
		turn->hold_idle_ns += now_ns - since;
		turn_charge(turn, now_ns, now_ns, view);
		turn->lapsed = true;
		turn_close(turn, now_ns, action);
		return;
	}
	turn_ended(turn, now_ns, action);
	turn->parked = true;
}

static bool turn_step_open(struct turn *turn, uint64_t now_ns, const struct turn_view *views,
			   struct turn_action *action)
{
	const struct turn_view *view = &views[turn->holder];
	uint64_t retry_ns, again_ns, close_ns;
	int other = policy_next_but(&turn->policy, turn->holder, now_ns, &retry_ns);
	int next;

	if (turn->parked) {
		if (other >= 0 || (view->busy && !turn_may_begin(turn, now_ns))) {
			/* a submission may slip in before the gate is seen closed: charge it from here */
			turn_begin(turn, turn->holder, now_ns);
			turn->started = true;
			turn->lapsed = true;
			turn->gaps_seen_ns = view->gaps_ns;
			turn_close(turn, now_ns, action);
			return true;
		}
		if (!view->busy) {
			action->deadline_ns = retry_ns;
			action->parked = true;
			return false;
		}
		policy_set_working(&turn->policy, turn->holder, true, now_ns);
		turn_begin(turn, turn->holder, now_ns);
		turn_account(turn, now_ns, view);
	}
	if (!view->busy) {
		uint64_t hold_ns = turn->started ? turn->hold_ns : 2 * turn->hold_ns;
		uint64_t until = hold_ns + (turn->started ? turn_idle_since(turn, now_ns, view) :
							     turn->opened_ns);

		if (now_ns >= until) {
			bool wanted = other >= 0 || !turn_may_begin(turn, now_ns);

			turn_lapse(turn, now_ns, wanted, action, view);
			return true;
		}
		action->deadline_ns = until;
	}
	if (now_ns >= turn->slice_end_ns || turn->policy.vgpus[turn->holder].not_before_ns) {
		next = policy_next(&turn->policy, now_ns, &again_ns);
		if (next != turn->holder) {
			turn_close(turn, now_ns, action);
			return true;
		}
		turn_ended(turn, now_ns, action);
		policy_begin(&turn->policy, turn->holder, now_ns);
		turn_slice_begin(turn, now_ns);
		return true;
	}
	/* if another's turn follows, what would begin after its gate's opening begins in its turn */
	close_ns = turn->slice_end_ns - (other >= 0 ? turn_lead(turn, views, other) : 0);
	if (now_ns >= close_ns) {
		next = policy_next_after(&turn->policy, turn->holder, turn->slice_end_ns - now_ns, now_ns,
					 &again_ns);
		if (next != turn->holder) {
			turn_close(turn, now_ns, action);
			return true;
		}
		close_ns = turn->slice_end_ns;
	}
	if (close_ns < action->deadline_ns)
		action->deadline_ns = close_ns;
	action->contended = other >= 0 || turn_others(turn) > 0;
	return false;
}

/* The work that is left ends soon: open the next gate, if it is another's. */
static bool turn_step_ahead(struct turn *turn, uint64_t now_ns, const struct turn_view *views,
			    struct turn_action *action)
{
	const struct turn_view *view = &views[turn->holder];
	uint64_t open_ns, retry_ns;
	int next;

	if (turn->ahead >= 0 || view->ends_ns == 0)
		return false;
	next = policy_next_after(&turn->policy, turn->holder,
				 view->ends_ns > now_ns ? view->ends_ns - now_ns : 0, now_ns, &retry_ns);
	if (next < 0 || next == turn->holder)
		return false;
	open_ns = view->ends_ns - clamp64(turn_lead(turn, views, next), 0, view->ends_ns);
	if (now_ns < open_ns) {
		action->deadline_ns = open_ns;
		return false;
	}
	turn->ahead = next;
	turn->ahead_ns = now_ns;
	turn->due_ns = now_ns + turn_lead(turn, views, next);
	action->act = TURN_OPEN;
	action->vgpu = next;
	return true;
}

static bool turn_step_drain(struct turn *turn, uint64_t now_ns, const struct turn_view *views,
			    struct turn_action *action)
{
	const struct turn_view *view = &views[turn->holder];
	uint64_t end_ns;
	int next = turn->ahead;

	if (view->busy)
		return turn_step_ahead(turn, now_ns, views, action);
	end_ns = turn->lapsed || !turn->started ? now_ns : turn_idle_since(turn, now_ns, view);
	turn->phase = TURN_PHASE_NONE;
	turn_ended(turn, end_ns, action);
	turn->holder = -1;
	turn->ahead = -1;
	if (next >= 0) {
		/* what it was charged already is not charged again */
		if (now_ns > turn->due_ns)
			end_ns = now_ns;
		turn_begin(turn, next, clamp64(end_ns, turn->ahead_ns, now_ns));
		turn->gaps_seen_ns = views[next].gaps_ns;
		turn->lead_due = true;
		turn->aheads++;
	}
	return true;
}

static void turn_overrun(struct turn *turn, uint64_t now_ns, const struct turn_view *view,
			 struct turn_action *action)
{
	uint64_t since = view->stuck_since_ns;

	if (!view->busy || since == 0)
		return;
	/* a closed gate admits nothing: progress or what looks like it cannot go on for ever */
	if (turn->phase == TURN_PHASE_DRAIN && since > turn->closed_ns + turn->watchdog_ns)
		since = turn->closed_ns + turn->watchdog_ns;
	/* a kill takes a moment, and a second one for the same submission would count twice */
	if (turn->killed_ns && since < turn->killed_ns)
		since = turn->killed_ns;
	if (now_ns >= since + turn->watchdog_ns) {
		turn->killed_ns = now_ns;
		action->act = TURN_KILL;
		action->vgpu = turn->holder;
	} else if (since + turn->watchdog_ns < action->deadline_ns) {
		action->deadline_ns = since + turn->watchdog_ns;
	}
}

void turn_step(struct turn *turn, uint64_t now_ns, const struct turn_view *views,
	       struct turn_action *action)
{
	*action = (struct turn_action){
		.act = TURN_WAIT, .vgpu = -1, .deadline_ns = POLICY_NEVER
	};
	/* before others' wake-ups are told: what was used alone is no debt to them */
	if (turn->holder >= 0 && !turn->parked)
		turn_account(turn, now_ns, &views[turn->holder]);
	turn_look(turn, now_ns, views);
	if (turn->phase == TURN_PHASE_NONE) {
		int next = policy_next(&turn->policy, now_ns, &action->deadline_ns);

		/* its turn was to follow one that has been dropped */
		if (turn->ahead >= 0)
			next = turn->ahead;
		turn->ahead = -1;
		if (next < 0)
			return;
		turn_begin(turn, next, now_ns);
		action->act = TURN_OPEN;
		action->vgpu = next;
		return;
	}
	if (turn->phase == TURN_PHASE_OPEN ? turn_step_open(turn, now_ns, views, action) :
					     turn_step_drain(turn, now_ns, views, action))
		return;
	turn_overrun(turn, now_ns, &views[turn->holder], action);
}

void turn_resume(struct turn *turn, uint64_t now_ns)
{
	policy_forgive(&turn->policy, now_ns);
	turn->looked_ns = now_ns;
	turn->charged_to_ns = now_ns;
	turn->closed_ns = now_ns;
	if (turn->holder >= 0)
		turn_slice_begin(turn, now_ns);
}

void turn_forget(struct turn *turn, int vgpu)
{
	if (turn->holder == vgpu) {
		turn->holder = -1;
		turn->phase = TURN_PHASE_NONE;
		turn->parked = false;
	}
	if (turn->ahead == vgpu)
		turn->ahead = -1;
	if (turn->previous == vgpu)
		turn->previous = -1;
	turn->lead_ns[vgpu] = TURN_LEAD_NS;
}
