/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The gate: one shared page per vGPU, through which the vGPU's render processes ask for the GPU
 * and for its memory. The slice layer uses it for Vulkan, the worker's renderer thread for virgl.
 *
 *	struct gate *gate = gate_open(NULL);		once per process (OCTAVO_GATE_FD, OCTAVO_GATE)
 *	gate_enter(gate, GATE_WORK);			blocks until this vGPU may submit
 *	... submit ...
 *	gate_leave(gate);				from any thread, when that work has finished
 *	gate_charge(gate, bytes); gate_uncharge(gate, bytes);
 *
 * The page
 * --------
 * A memfd of GATE_PAGE_SIZE bytes, sealed against shrinking and growing, so that nobody who maps
 * it can be killed by a truncation. All fields are naturally aligned and atomic.
 *
 *	   0  header   constants, written by the creator only
 *	  64  orders   written by the arbiter only
 *	 128  reports  written by the vGPU's processes
 *	 256  slots    GATE_SLOTS of 64 bytes, each written by the process that owns it
 *	4096
 *
 * The arbiter reads reports and slots as hints from a stranger: it keeps all state of its own in
 * private memory, bounds every number, and never waits for anything in the page without a time
 * limit. Whatever a compromised process writes there, it can harm its own vGPU only (and gain at
 * most what turn.h says is believed). `orders` is rewritten at each change, never read back.
 *
 * Who is alive
 * ------------
 * A process that uses the gate owns a slot, and owning means: it holds a POSIX record lock on byte
 * GATE_PAGE_SIZE + slot of the memfd. The kernel drops the lock when the process dies, however it
 * dies, and tells anybody who asks (F_GETLK) the true pid of the holder, whatever the page says.
 * The price is POSIX's rule that closing any descriptor of the file drops the process's locks:
 * open the gate once per process, through gate_open(), and leave its descriptors alone. After a
 * fork() the child has no slot; its first gate call takes one.
 * What a dead process left in its slot is cleared by whoever first needs to know (gate_reap(): it
 * takes the record lock of the slot, so it cannot clear a successor's).
 *
 * Admission
 * ---------
 * `lock` guards the sum of in_flight over slots. It is a futex word with the owner's slot and
 * generation in it, so one who waits for it can find out that the owner has died and take over.
 * Every state between two stores of a critical section is a valid one, therefore nothing has to be
 * repaired after a SIGKILL in it: at worst a report of times is stale.
 *
 * Closing is a handshake without that lock (the arbiter must not wait for processes):
 *	process: in_flight += 1; fence; read open: 0? in_flight -= 1, wait
 *	arbiter: open = 0; fence; read in_flight: 0? drained
 * with both fences sequentially consistent, so at least one of the two sees the other.
 *
 * In flight are at most bound_us microseconds of work, each submission taken for mean_us + spread_us,
 * and always at least one submission.
 *
 * Waking up
 *	wake	futex of processes: raised by the arbiter when it opens the gate, and by a process
 *		whose work has finished while others of its vGPU wait for the bound
 *	event	futex of the arbiter: raised by a process that begins to wait at a closed gate, whose
 *		last work finishes behind a closed gate, or that is admitted while GATE_REPORT is set
 *
 * Lease
 * -----
 * The arbiter raises `heartbeat` several times in lease_ms. A process that waits at a closed gate
 * and sees no heartbeat for lease_ms by its own clock goes on as if the gate were open, until the
 * heartbeat moves again: a dead or stalled arbiter costs fairness, not progress.
 */
#ifndef OCTAVO_SCHEDULER_GATE_H
#define OCTAVO_SCHEDULER_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GATE_MAGIC     0x4f475431u /* "OGT1" */
#define GATE_VERSION   1u
#define GATE_PAGE_SIZE 4096
#define GATE_SLOTS     60
#define GATE_LEASE_MS  1000u
#define GATE_BOUND_US  5000u /* until an arbiter says otherwise */

struct gate_slot {
	_Atomic uint32_t generation; /* raised by each process that takes the slot */
	_Atomic int32_t pid;	     /* as the process itself sees it: for people, not for kill() */
	_Atomic uint32_t in_flight;  /* submissions admitted and not finished */
	_Atomic uint32_t waiting;    /* threads waiting at the gate */
	_Atomic uint64_t charged_bytes;
	_Atomic uint64_t admitted;   /* submissions so far */
	_Atomic uint64_t finished;   /* of them */
	_Atomic uint64_t gpu_ns;     /* GPU time that the process measured: a metric, never charged */
	_Atomic uint32_t blocked;    /* submissions that wait for a semaphore, not in in_flight */
	uint32_t reserved[3];
};

struct gate_page {
	/* header */
	uint32_t magic;
	uint32_t version;
	uint32_t reserved_header[14];
	/* orders */
	_Atomic uint32_t open;	     /* 0 or 1 */
	_Atomic uint32_t wake;	     /* futex, also raised by processes */
	_Atomic uint32_t heartbeat;
	_Atomic uint32_t lease_ms;
	_Atomic uint32_t flags;	     /* GATE_REPORT */
	_Atomic uint32_t bound_us;   /* work to have in flight */
	_Atomic uint64_t share_bytes; /* device memory; 0: no limit */
	_Atomic uint32_t turn;	     /* raised at each opening */
	uint32_t reserved_orders[7];
	/* reports */
	_Atomic uint32_t event;	     /* futex */
	_Atomic uint32_t lock;
	_Atomic uint32_t quota_lock; /* guards the sum of charged_bytes, like lock */
	_Atomic uint32_t mean_us;    /* length of recent submissions; 0: unknown */
	_Atomic uint64_t first_ns;   /* CLOCK_MONOTONIC of the first admission in turn first_turn */
	_Atomic uint64_t idle_since_ns; /* when in_flight last became 0 */
	_Atomic uint64_t gaps_ns;    /* sum of the times with in_flight 0 between admissions */
	_Atomic uint64_t busy_since_ns; /* start of the running submission */
	_Atomic uint32_t slots_used; /* highest slot ever used, plus 1 */
	_Atomic uint32_t first_turn;
	_Atomic uint32_t spread_us;  /* mean deviation from mean_us */
	_Atomic uint32_t latency_us; /* see gate_set_latency() */
	uint32_t reserved_reports[16];
	/* slots */
	struct gate_slot slots[GATE_SLOTS];
};

_Static_assert(sizeof(struct gate_slot) == 64, "a slot is a cache line");
_Static_assert(sizeof(struct gate_page) == GATE_PAGE_SIZE, "the page is a page");

#define GATE_REPORT 1u /* flags: an admission that makes the vGPU busy raises `event` */

enum gate_class {
	GATE_WORK, /* takes a place in flight; gate_leave() when it has finished */
	GATE_PASS, /* only waits until the gate is open: a present, a submission that must wait for a
		      semaphore. No gate_leave(). */
};

struct gate;

/*
 * For processes of a vGPU. Thread-safe but for gate_close(). Negative errno on failure.
 *
 * gate_open(): where is the number of a descriptor, the path of a gate, or the path of a socket
 * of scheduler/join.h; NULL takes OCTAVO_GATE_FD (number) or OCTAVO_GATE (path) from the
 * environment. Registers the process (a slot). A second call for the same page gives the same
 * gate again. Errors, in *err if not NULL: -ENOENT (no gate in the environment), -EPROTO (not a
 * gate, or another version), -EUSERS (all slots taken), others of open(), connect(), mmap().
 */
struct gate *gate_open(const char *where, int *err);
void gate_close(struct gate *gate);

/* Block until admitted. -ECANCELED after gate_cancel(); -EUSERS after a fork when slots ran out. */
int gate_enter(struct gate *gate, enum gate_class class);
void gate_leave(struct gate *gate);

/* All present and future waits end with -ECANCELED, until gate_cancel(gate, false). */
void gate_cancel(struct gate *gate, bool on);

/*
 * A submission entered with GATE_PASS because its wait semaphore was not signalled yet, and that
 * is about to run: it counts from here as if entered with GATE_WORK, open or not.
 */
void gate_unblock(struct gate *gate);
void gate_block(struct gate *gate); /* counts one in `blocked` until gate_unblock() */

/*
 * What an empty submission takes from gate_enter() to gate_leave(): the way to the GPU and back,
 * which is no work of the GPU's. A submission that found the GPU idle counts as that much shorter.
 */
void gate_set_latency(struct gate *gate, uint64_t latency_ns);

/* GPU time that was measured for this process, for metrics. */
void gate_measured(struct gate *gate, uint64_t gpu_ns);

/* Device memory. -ENOSPC: it would pass the share; nothing is charged then. */
int gate_charge(struct gate *gate, uint64_t bytes);
void gate_uncharge(struct gate *gate, uint64_t bytes);

struct gate_account {
	uint64_t share_bytes; /* 0: no limit */
	uint64_t used_bytes;  /* of all living processes of the vGPU */
	uint64_t own_bytes;   /* of this process */
};
void gate_account(struct gate *gate, struct gate_account *account);

/*
 * For the owner: arbiter and whoever creates vGPUs. An owner has no slot.
 *
 * gate_create() makes a page, open and without arbiter: the descriptor (close-on-exec), or
 * negative errno. gate_own() maps it; the descriptor stays the caller's (it is duplicated).
 * -EPROTO: not a gate, another version, not sealed.
 */
int gate_create(uint64_t share_bytes);
struct gate *gate_own(int fd, int *err);
void gate_disown(struct gate *gate);

struct gate_page *gate_page(struct gate *gate);
void gate_set_open(struct gate *gate, bool open);
void gate_set_share(struct gate *gate, uint64_t share_bytes);
/* Clear slots of dead processes; how many were cleared. */
int gate_reap(struct gate *gate);
/* pid of the process that owns the slot, from the kernel; 0: nobody. */
pid_t gate_slot_pid(struct gate *gate, int slot);
/* SIGKILL the owner of slot, safe against reuse of its pid. 0, or -ESRCH. */
int gate_slot_kill(struct gate *gate, int slot);
/* Whether process pid has registered (its first device must not be created before). */
bool gate_is_registered(struct gate *gate, pid_t pid);

/* CLOCK_MONOTONIC in ns, the clock of all times in the page. */
uint64_t gate_now_ns(void);

#endif
