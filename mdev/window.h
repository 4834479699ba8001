/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * window.h - what window.c and capture.c share: a range of BAR2
 */
#ifndef OCTAVO_WINDOW_H
#define OCTAVO_WINDOW_H

#include <linux/interval_tree.h>
#include <linux/mmu_notifier.h>

struct octavo_vgpu_device;
struct octavo_window;

/*
 * A range of the worker's memory, captured. Shared memory is pinned and stays whatever the worker
 * does; memory of a device is watched, and lost when the worker's mapping of it changes.
 */
struct window_range {
	struct interval_tree_node node;		/* pages of the window, both ends inclusive */
	struct octavo_vgpu_device *vgpu;
	unsigned long addr;			/* in the worker's address space */
	unsigned long count;			/* pages */
	unsigned long captured;			/* of them, while capturing */
	bool write_combined;
	bool pinned;
	bool watched;				/* @notifier is in use */
	bool shown;				/* window.lock; in the window */
	bool lost;				/* window.lock */
	bool given_up;				/* window.lock; accesses no longer wait */
	struct mmu_interval_notifier notifier;
	unsigned long sequence;
	unsigned long pfns[];
};

/* Knows what kind of memory it is; nothing is captured yet. Errors as OCTAVO_WINDOW_MAP. */
struct window_range *range_create(struct octavo_vgpu_device *vgpu,
				  const struct octavo_window *request);
/* Captures the frames; again after range_moved(). */
int range_capture(struct window_range *range);
/* Has the memory moved since the capture? window.lock held; false until it is let go. */
bool range_moved(struct window_range *range);
void range_free(struct window_range *range);

/* window.lock held */
void window_zap(struct octavo_vgpu_device *vgpu, unsigned long first, unsigned long last);

#endif /* OCTAVO_WINDOW_H */
