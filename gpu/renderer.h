/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * renderer.h - the thread on which virglrenderer lives
 *
 * Any call into virglrenderer may block for as long as the scheduler keeps this vGPU's gate closed,
 * and a hostile guest can make it longer. So they all happen on one thread, which runs the requests
 * of the control queue in order, and nobody waits for it: the worker's loop goes on walking queues,
 * moving the cursor and answering resets.
 *
 *   loop:      renderer_submit()  ------ FIFO ----->  renderer thread: render_run(), fences
 *              notify_fd          <---------------    answers go straight to the guest
 *
 * What a guest has made in virglrenderer is not trusted to be undone by it: once a request of the
 * 3D part was run (renderer_is_used()), the worker answers a reset by replacing itself.
 */
#ifndef OCTAVO_GPU_RENDERER_H
#define OCTAVO_GPU_RENDERER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/capsets.h"
#include "gpu/command.h"
#include "gpu/gpu.h"
#include "gpu/server.h"
#include "gpu/timeline.h"
#include "scheduler/gate.h"
#include "vfio/window.h"

/* VIRTIO_GPU_CAPSET_VENUS, not in the oldest headers */
#define CAPSET_VENUS		4

#define RENDERER_CAPSETS	3
_Static_assert(RENDERER_CAPSETS <= CAPSETS_MAX, "there is room for each");
#define RENDERER_CONTEXTS	128	/* of one vGPU */
#define RENDERER_PROCESSES	56	/* of them with a process of their own; GATE_SLOTS has 60 */
#define RENDERER_RINGS		64	/* of one context */
#define RENDERER_GATE_FENCES	4	/* OpenGL submissions that may be under way at once */
#define RENDERER_FIFO_BYTES	(64ULL << 20)

/* renderer_options.capsets */
#define RENDERER_VIRGL		(1u << 0)	/* OpenGL: capsets virgl and virgl2 */
#define RENDERER_VENUS		(1u << 1)	/* Vulkan */

struct renderer_options {
	unsigned int capsets;		/* RENDERER_*, not 0 */
	const char *render_node;	/* NULL: EGL without a device */
	const char *vulkan_device;	/* deviceUUID, for the scheduler's layer; NULL: any */
	uint32_t vulkan_ids[2];		/* vendor and device, 0: any */
	int gate_fd;			/* -1: none */
	int capsets_fd;			/* what a former copy of the worker knew; 0: none */
};

/*
 * What the thread asks of the transport, from the thread. The window's functions are those of
 * vfio/window.h.
 */
struct renderer_ops {
	/* Answers were given: tell the guest if it wants to know. */
	void (*answered)(void *context);
	int (*show)(void *context, struct window_mapping *mapping, uint64_t offset,
		    uint32_t caching);
	int (*hide)(void *context, struct window_mapping *mapping);
	int (*show_again)(void *context, struct window_mapping *mapping);
};

struct renderer_context {
	struct renderer_context *next;
	uint32_t id;
	uint32_t capset;
	pid_t pid;			/* of its render process; 0: virgl, in this process */
	int pidfd;			/* -1 likewise */
	int fence_fd;			/* -1, or virglrenderer's */
	bool lost;			/* its process ended */
	bool gated;			/* and was seen to have registered with the gate */
	struct timeline *rings[RENDERER_RINGS];
};

/* What somebody wants of the thread; see renderer.c. */
struct renderer_job;

struct renderer {
	struct gpu *gpu;
	const struct renderer_ops *ops;
	void *context;
	struct renderer_options options;
	int notify_fd;			/* eventfd, for the loop: look at the renderer */

	/* shared, under lock */
	pthread_mutex_t lock;
	struct renderer_job *first, *last;
	uint64_t fifo_bytes;
	bool quiet;			/* renderer_quiesce() was obeyed */
	bool full;			/* the loop stopped popping */
	bool refresh;			/* renderer_refresh() is to be obeyed */
	bool stop;
	struct {
		bool wanted;
		uint32_t resource_id;
	} cursor;
	int wake_fd;			/* eventfd, for the thread */
	bool used;			/* atomic */
	struct capsets capsets;		/* the thread's to fill, if they are not known before */

	/* the thread's own */
	pthread_t thread;
	int epoll;
	bool ready;			/* virglrenderer is initialised */
	bool answers;			/* were given since ops->answered() */
	int virgl_fd;			/* fences of virgl; -1: none */
	struct server server;
	unsigned int context_count;
	struct renderer_context *contexts;
	struct timeline timeline;	/* of the device */
	struct gate *gate;		/* NULL: none */
	unsigned int gate_fences;	/* OpenGL work under way; the gate is entered while not 0 */
	struct surface *shadow;		/* pixels of head 0 that were read back, or NULL */
	uint32_t shadow_resource;
	uint32_t shadow_stride;		/* of a blob: bytes a line, and where the first begins */
	uint64_t shadow_offset;
};

/*
 * Starts the thread, which initialises virglrenderer; requests wait in the FIFO meanwhile. The
 * options are copied but for their strings. -errno.
 */
int renderer_start(struct renderer *renderer, struct gpu *gpu, const struct renderer_ops *ops,
		   void *context, const struct renderer_options *options);

/* For tests: ends thread and render processes; what virglrenderer holds goes with the process. */
void renderer_stop(struct renderer *renderer);

/* virglrenderer's flags for these capsets. */
int renderer_flags(unsigned int capsets);

/* Number of capsets that these options stand for, in the order of their index. */
unsigned int renderer_capset_ids(unsigned int capsets, uint32_t ids[RENDERER_CAPSETS]);

/* Takes the request. False: the FIFO is full now; pop no further until notify_fd fires. */
bool renderer_submit(struct renderer *renderer, struct command *command);

/* Head 0's picture is wanted as it is now: somebody begins to look. */
void renderer_refresh(struct renderer *renderer);
/* A cursor whose pixels have to be read back. */
void renderer_cursor(struct renderer *renderer, uint32_t resource_id);
/* The module lost a range of the window. */
void renderer_window_lost(struct renderer *renderer, uint64_t offset, uint64_t length);

/* Whether a reset takes a new process. */
bool renderer_is_used(struct renderer *renderer);

/*
 * Drops what is in the FIFO; when the request under way is done notify_fd fires and
 * renderer_is_quiet() holds, until the next renderer_submit().
 */
void renderer_quiesce(struct renderer *renderer);
bool renderer_is_quiet(struct renderer *renderer);

/* Ends the render processes, from the loop, before the worker ends or replaces itself. */
void renderer_kill(struct renderer *renderer);

/* For render.c, on the thread: */
struct renderer_context *renderer_context(struct renderer *renderer, uint32_t id);
void renderer_answer(void *renderer, struct command *command);
/*
 * Before and after work that virgl gives to the GPU; blocks while the vGPU's gate is closed. The
 * gate is left when the GPU has done the work, so it drains in the time of a few submissions.
 */
void renderer_enter(struct renderer *renderer);
void renderer_leave(struct renderer *renderer);
/*
 * Whether the context's render process has registered with the gate; one that has not would submit
 * without asking, and is killed.
 */
bool renderer_is_gated(struct renderer *renderer, struct renderer_context *context);

#endif
