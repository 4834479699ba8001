/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arbiter of one GPU: a thread that opens one gate at a time (turn.h says when, gate.h how).
 * Make one arbiter per GPU. All functions may be called from any thread, but for create and
 * destroy; none blocks longer than a step of the thread takes (microseconds). No GLib.
 * Negative errno on failure.
 *
 * A vGPU's id is chosen by the arbiter, 0 to POLICY_MAX_VGPUS - 1, and free again after its
 * removal. Times are CLOCK_MONOTONIC in ns.
 *
 * Restart: when the process dies its gates close or stay as they are, and open by their lease
 * after GATE_LEASE_MS. The next process gets the same gate descriptors (from its service manager's
 * descriptor store, or from the workers with pidfd_getfd()) and adds them: whatever is in flight is
 * found there. arbiter_destroy() opens all gates at once and stops the lease.
 */
#ifndef OCTAVO_SCHEDULER_ARBITER_H
#define OCTAVO_SCHEDULER_ARBITER_H

#include <stddef.h>
#include <sys/types.h>

#include "scheduler/turn.h"

#define ARBITER_LOG_SIZE 4096
#define ARBITER_NAME_MAX 64

struct arbiter;

/* A submission overran the watchdog and its processes were sent SIGKILL. */
struct arbiter_kill {
	int vgpu;
	char name[ARBITER_NAME_MAX];
	void *cookie;
	pid_t pids[8];
	unsigned int n_pids;
	unsigned int kills;	/* of this vGPU within the guard's window, this one included */
	uint64_t held_off_ns;	/* how long the vGPU gets no turn now; 0: not held off */
};

struct arbiter_config {
	enum policy_kind policy;
	uint64_t slice_ns;	/* 0: POLICY_SLICE_NS */
	uint64_t hold_ns;	/* 0: TURN_HOLD_NS */
	uint64_t watchdog_ns;	/* 0: TURN_WATCHDOG_NS */
	/*
	 * Called on the arbiter's thread, with no lock held, after the kill; may be NULL. Do not call
	 * arbiter_destroy() in it; all else is allowed.
	 */
	void (*killed)(const struct arbiter_kill *kill, void *data);
	void *data;
};

struct arbiter *arbiter_create(const struct arbiter_config *config, int *err);
void arbiter_destroy(struct arbiter *arbiter);

/*
 * The gate is duplicated; fd stays the caller's. name is for logs (copied). Its id, or -EPROTO
 * (not a gate), -ERANGE (weight, POLICY_WHOLE-ths of the GPU), -ENOSPC.
 * arbiter_remove_vgpu() leaves the gate open and without lease; -ENOENT.
 */
int arbiter_add_vgpu(struct arbiter *arbiter, int fd, uint32_t weight, const char *name,
		     void *cookie);
int arbiter_remove_vgpu(struct arbiter *arbiter, int vgpu);

/*
 * The memory share of a vGPU, 0: no limit. arbiter_add_vgpu() takes what the page says, which is
 * right for a page just made; after an adoption say it again, the page may have been written to.
 */
int arbiter_set_share(struct arbiter *arbiter, int vgpu, uint64_t share_bytes);

/* At run time, vGPUs running. -EINVAL, -ERANGE as in policy.h; watchdog 100 ms to 1 h. */
int arbiter_set_policy(struct arbiter *arbiter, enum policy_kind policy);
int arbiter_set_slice(struct arbiter *arbiter, uint64_t slice_ns);
int arbiter_set_watchdog(struct arbiter *arbiter, uint64_t watchdog_ns);

/*
 * Slices in the order of their ends, from sequence number *cursor on (0: from the oldest kept).
 * Copies at most max, returns how many, and moves *cursor behind the last. The ring keeps
 * ARBITER_LOG_SIZE: a reader that is slower finds a gap in the numbers.
 */
struct arbiter_slice {
	uint64_t sequence; /* from 1 */
	char name[ARBITER_NAME_MAX];
	struct turn_slice slice;
};
size_t arbiter_read_log(struct arbiter *arbiter, uint64_t *cursor, struct arbiter_slice *slices,
			size_t max);

struct arbiter_stats {
	uint64_t turns;
	uint64_t used_ns;     /* charged */
	uint64_t overrun_ns;  /* past the ends of slices */
	uint64_t waited_ns;   /* somebody waited while the gate was closed */
	uint64_t gpu_ns;      /* as measured by living processes: a metric */
	int64_t debt_ns;      /* policy_debt() */
	uint64_t share_bytes; /* of memory; 0: no limit */
	uint64_t used_bytes;
	uint32_t processes;
	uint32_t in_flight;
	uint32_t kills;
	bool open;
	bool waiting;
	bool held_off;
};
int arbiter_stats(struct arbiter *arbiter, int vgpu, struct arbiter_stats *stats); /* -ENOENT */

struct arbiter_gpu_stats {
	enum policy_kind policy;
	uint64_t slice_ns;
	uint64_t watchdog_ns;
	uint64_t switches;
	uint64_t aheads; /* of the switches: the gate had opened ahead (turn.h) */
	uint64_t hold_idle_ns;
	uint64_t slices; /* sequence number of the newest in the log, 0: none yet */
	bool realtime; /* the thread has real-time priority */
};
void arbiter_gpu_stats(struct arbiter *arbiter, struct arbiter_gpu_stats *stats);

#endif
