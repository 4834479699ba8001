/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The turns of one GPU: whose gate is open, when it closes, what is charged. A state machine over
 * virtual time around a policy, pure like it: the arbiter drives it with gates and a clock, the
 * simulator with a list of events.
 *
 * It is level-triggered. The caller looks at every vGPU (struct turn_view), calls turn_step(),
 * does what it says, looks again, and so on until the answer is TURN_WAIT; then it waits for a
 * change of any view or for the deadline. A lost or spurious wake-up can therefore do no harm.
 *
 *	NONE --TURN_OPEN--> OPEN --slice over, idle, held off--TURN_CLOSE--> DRAIN --drained--> NONE
 *	                     ^                                                 |
 *	                     +------- drained, and the next one is open -------+
 *
 * A GPU has a queue of its own, so the next gate opens before the last work of a turn is expected
 * to end, by as much as that vGPU takes from an opening to its first admission (as seen lately) and
 * from there to the GPU: what is admitted then begins when that work has ended, and the way from one
 * gate to the other costs no GPU time. Its turn, and what it is charged, begins with that end. An
 * expectation that fails is no gift: from when it could have begun on, both are charged.
 *
 * A turn is charged from its first admission to drained. Within it
 *  - a gap shorter than the idle hold is not charged, up to 1/6 of the slice: a client that waits
 *    for each of its submissions gets as much work done as one that queues them. What is forgiven
 *    is bounded because gaps are reported by the vGPU's own processes;
 *  - a gap as long as the idle hold ends the turn if somebody else has work, and is charged: the
 *    hold keeps the GPU from the others;
 *  - if nobody else has work the gate stays open and nothing is charged: the turn is *parked*. A
 *    parked vGPU's next submission need not wait for the arbiter.
 * At the end of its slice a vGPU that would be chosen again keeps its gate open.
 */
#ifndef OCTAVO_SCHEDULER_TURN_H
#define OCTAVO_SCHEDULER_TURN_H

#include "scheduler/policy.h"

#define TURN_HOLD_NS	 1500000ull
#define TURN_WATCHDOG_NS 10000000000ull
/* How late the arbiter may see something; a view's times are believed back to here. */
#define TURN_GRACE_NS	 300000ull
/* How long before the expected end of a turn's work the next gate opens: at first, and at most. */
#define TURN_LEAD_NS	 100000ull
#define TURN_LEAD_MOST_NS 300000ull

/* What is seen of a vGPU. Times are believed within limits only, see turn.c. */
struct turn_view {
	bool waiting;		/* somebody waits at the gate */
	bool busy;		/* admitted work is not finished */
	uint64_t first_ns;	/* first admission since the gate opened, 0: none yet */
	uint64_t idle_since_ns; /* when busy became false */
	uint64_t gaps_ns;	/* all gaps between admitted work so far, only ever grows */
	uint64_t stuck_since_ns; /* busy: no submission has finished since; 0: unknown */
	uint64_t ends_ns;	/* busy: when all admitted is expected to have finished; 0: unknown */
	uint64_t way_ns;	/* from an admission to the GPU's beginning */
};

enum turn_phase { TURN_PHASE_NONE, TURN_PHASE_OPEN, TURN_PHASE_DRAIN };

/* One slice, as the log has it. */
struct turn_slice {
	uint64_t begin_ns; /* when it began (the first one of a turn: when the gate was opened) */
	uint64_t end_ns;   /* drained, or renewed */
	uint64_t granted_ns;
	uint64_t used_ns; /* charged */
	uint64_t overrun_ns;
	uint32_t vgpu;
	uint32_t waiting; /* other vGPUs that had work when it ended */
};

enum turn_act {
	TURN_WAIT,  /* nothing to do until deadline_ns or a change */
	TURN_OPEN,  /* open the gate of vgpu */
	TURN_CLOSE, /* close the gate of vgpu, then look again */
	TURN_ENDED, /* slice is a finished slice for the log */
	TURN_KILL,  /* vgpu has not drained in the watchdog's time: end whose work it is */
};

struct turn_action {
	enum turn_act act;
	int vgpu;
	uint64_t deadline_ns;	 /* TURN_WAIT; POLICY_NEVER: none */
	bool parked;		 /* TURN_WAIT: the holder's next admission must be reported */
	bool contended;		 /* TURN_WAIT: others have work, keep little in flight */
	struct turn_slice slice; /* TURN_ENDED */
};

struct turn {
	struct policy policy;
	uint64_t hold_ns;
	uint64_t watchdog_ns;
	uint64_t switches;	/* turns that began after another vGPU's */
	uint64_t aheads;	/* of them, those whose gate had opened ahead */
	uint64_t hold_idle_ns;	/* GPU time that idle holds took */
	/* private from here */
	enum turn_phase phase;
	int holder;
	int ahead; /* DRAIN: whose gate is open already; -1: nobody's */
	int previous;
	bool parked;
	bool started;
	bool lapsed;
	uint64_t killed_ns;
	uint64_t closed_ns;
	uint64_t looked_ns;
	uint64_t opened_ns;
	uint64_t ahead_ns;
	uint64_t due_ns; /* when what is admitted ahead is expected to begin */
	bool lead_due; /* the holder's gate opened ahead, and its first admission is not known yet */
	uint64_t lead_ns[POLICY_MAX_VGPUS];
	uint64_t slice_begin_ns;
	uint64_t slice_end_ns;
	uint64_t charged_to_ns;
	uint64_t gaps_seen_ns;
	uint64_t slice_used_ns;
	uint64_t slice_gaps_ns;
};

void turn_init(struct turn *turn, uint64_t now_ns);

/* views has POLICY_MAX_VGPUS elements, those of unused indices are not read. */
void turn_step(struct turn *turn, uint64_t now_ns, const struct turn_view *views,
	       struct turn_action *action);

/*
 * The caller could not look for so long that gates may have opened by their lease: what was used
 * since is unknown, so nobody is charged for it, and all begin anew.
 */
void turn_resume(struct turn *turn, uint64_t now_ns);

/*
 * vgpu goes away. turn_forget() drops its turn without waiting for it; the caller lets its gate
 * go, and removes it from the policy.
 */
void turn_forget(struct turn *turn, int vgpu);

#endif
