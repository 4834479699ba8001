// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/timeline.h"

#include <stdlib.h>

uint64_t timeline_next(struct timeline *timeline)
{
	return ++timeline->sequence;
}

static void timeline_retire(struct timeline *timeline, timeline_answer *answer, void *context)
{
	while (timeline->first && timeline->first->done) {
		struct timeline_entry *entry = timeline->first;

		timeline->first = entry->next;
		if (!timeline->first)
			timeline->last = NULL;
		answer(context, entry->command);
		free(entry);
	}
}

void timeline_add(struct timeline *timeline, struct command *command, uint64_t sequence,
		  timeline_answer *answer, void *context)
{
	struct timeline_entry *entry;

	if (!sequence && !timeline->first) {
		answer(context, command);
		return;
	}
	entry = malloc(sizeof(*entry));
	if (!entry)
		abort();	/* 32 bytes: an answer in the wrong order would corrupt the guest */
	*entry = (struct timeline_entry){
		.command = command, .sequence = sequence, .done = sequence == 0,
	};
	if (timeline->last)
		timeline->last->next = entry;
	else
		timeline->first = entry;
	timeline->last = entry;
}

void timeline_signal(struct timeline *timeline, uint32_t sequence, timeline_answer *answer,
		     void *context)
{
	for (struct timeline_entry *entry = timeline->first; entry; entry = entry->next) {
		/* numbers under way span far less than half of 32 bits */
		if ((int32_t)(sequence - (uint32_t)entry->sequence) >= 0)
			entry->done = true;
	}
	timeline_retire(timeline, answer, context);
}

void timeline_abort(struct timeline *timeline, timeline_answer *answer, void *context)
{
	for (struct timeline_entry *entry = timeline->first; entry; entry = entry->next)
		entry->done = true;
	timeline_retire(timeline, answer, context);
}
