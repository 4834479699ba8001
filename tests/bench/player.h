/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* player.h - loads that play on one GPU under one arbiter, and what they get done */
#ifndef OCTAVO_TESTS_PLAYER_H
#define OCTAVO_TESTS_PLAYER_H

#include <stdbool.h>
#include <sys/types.h>

#include "scheduler/arbiter.h"
#include "tests/native/load.h"

#define PLAYERS_MAX 10

struct player_config {
	uint32_t weight;    /* 0: no gate and no layer */
	double length_ms;   /* of a piece of work */
	unsigned int depth; /* pieces queued */
	unsigned int pause_us;
	bool gl; /* load-gl instead of load */
};

struct player {
	struct player_config config;
	struct load_tally *tally;
	char tally_path[64];
	char name[16];
	pid_t pid;
	int gate_fd;
	int id;
	uint64_t mark;
	double piece_ms; /* of one piece; length_ms until it is measured */
};

struct stage {
	const char *load, *load_gl; /* programs */
	const char *layer_dir;	    /* of the layer's manifest */
	/* ns of a piece of work without steps and of a step, Vulkan and GL */
	double fixed_ns[2], step_ns[2];
	struct arbiter *arbiter; /* NULL: gates stay open */
	struct player players[PLAYERS_MAX];
	int n;
};

/* Programs and a manifest for the layer of this build; calibrates. Exits with a message. */
void stage_init(struct stage *stage, const char *build_dir, bool gl);
void stage_finish(struct stage *stage);

/* A new arbiter for what follows. slice_ns 0: default. */
void stage_arbiter(struct stage *stage, enum policy_kind policy, uint64_t slice_ns);
/* Start a player; it is ready, and waits for player_go(). */
struct player *stage_player(struct stage *stage, const struct player_config *config);
/* Stop all players; true if all results were right. Their counts stay. */
bool stage_clear(struct stage *stage);

void player_go(struct player *player, bool go);
/* ms of the GPU that the work done since the last player_mark() takes, see piece_ms */
void player_mark(struct player *player);
double player_work_ms(const struct player *player);
/*
 * What a piece of work of this length takes here and now, measured with a client that is alone,
 * has no gate and keeps the GPU busy. Sets piece_ms of all players of that length.
 */
void stage_measure(struct stage *stage, double length_ms, bool gl, double seconds);
/* Longest and p99 time in ms from submission to finished, since *from (0: the beginning). */
void player_latency(const struct player *player, uint64_t from, double *longest, double *p99);

void stage_sleep(double seconds);

#endif
