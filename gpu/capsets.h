/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capsets.h - what a vGPU says it can render, and the answers to the requests that ask for it
 *
 * A guest's driver waits 5 s for each of these answers. virglrenderer may take longer to start, so
 * the copy of a worker that takes over after a reset gets the sets of the one before it: they depend
 * on the host's GPU and the configuration only.
 *
 * Whoever fills the sets is the one writer; others read them once capsets_known().
 */
#ifndef OCTAVO_GPU_CAPSETS_H
#define OCTAVO_GPU_CAPSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/command.h"

#define CAPSETS_MAX	4

struct capset {
	uint32_t id;			/* enum virgl_renderer_capset */
	uint32_t version;
	uint32_t bytes;
	void *data;			/* NULL: memory was short, it is not given out */
};

struct capsets {
	bool known;			/* atomic */
	unsigned int count;
	struct capset sets[CAPSETS_MAX];
};

bool capsets_known(const struct capsets *capsets);
void capsets_publish(struct capsets *capsets);

/* The answer to GET_CAPSET_INFO or GET_CAPSET, into command->answer. */
void capsets_answer(const struct capsets *capsets, struct command *command);

/* A sealed memfd that holds them, the caller's; or -errno. */
int capsets_save(const struct capsets *capsets);
/* Takes over and publishes what capsets_save() wrote. -EINVAL: it is something else. */
int capsets_load(struct capsets *capsets, int fd);

#endif
