/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * timeline.h - fenced requests that wait for the GPU, in the order in which they must be answered
 *
 * A guest waits for "this fence or a later one" of a timeline, so answers of one timeline never
 * overtake each other: a request that is done stays until all before it are. There is one timeline
 * of the device and one for each ring of each context.
 *
 * Threads: one.
 */
#ifndef OCTAVO_GPU_TIMELINE_H
#define OCTAVO_GPU_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

struct command;

struct timeline_entry {
	struct timeline_entry *next;
	struct command *command;
	uint64_t sequence;
	bool done;
};

struct timeline {
	struct timeline_entry *first;
	struct timeline_entry *last;
	uint64_t sequence;	/* of the last fence that was asked for */
};

typedef void timeline_answer(void *context, struct command *command);

/*
 * The number for a new fence, from 1 on. Its low 32 bits are never those of another fence that is
 * under way.
 */
uint64_t timeline_next(struct timeline *timeline);

/*
 * Puts a request at the end. With @sequence 0 it waits for those before it only, and is answered at
 * once if there are none.
 */
void timeline_add(struct timeline *timeline, struct command *command, uint64_t sequence,
		  timeline_answer *answer, void *context);

/* The GPU has reached @sequence, of which the low 32 bits suffice: answers what may be answered. */
void timeline_signal(struct timeline *timeline, uint32_t sequence, timeline_answer *answer,
		     void *context);

/* The GPU will reach nothing any more. */
void timeline_abort(struct timeline *timeline, timeline_answer *answer, void *context);

#endif
