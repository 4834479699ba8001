// SPDX-License-Identifier: GPL-2.0-only
/*
 * capture.c - frames of the worker's memory for BAR2
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "vgpu.h"
#include "window.h"

#define PIN_BATCH	512ul		/* pages pinned in one go of the caller's mmap_lock */

/* May the guest be shown this mapping, and is it shared memory or a device's? mmap_lock held. */
static int capture_kind(const struct vm_area_struct *vma, bool *device)
{
	if (!(vma->vm_flags & VM_WRITE))
		return -EFAULT;
	if (window_vma_is_vgpu(vma) || vma->vm_ops == &guest_vm_ops)
		return -EPERM;
	if (!(vma->vm_flags & VM_SHARED) || !vma->vm_file)
		return -EPERM;
	*device = vma->vm_flags & VM_PFNMAP;
	return *device || shmem_mapping(vma->vm_file->f_mapping) ? 0 : -EPERM;
}

/* ------------------------------------------------------------------------------------------------
 * Memory of a device: watched
 *
 * The invalidation of the worker's mapping takes BAR2 out of the VM's mm, which is an invalidation
 * there (KVM's notifier). The two never meet: no interval here lies over a BAR2, since those are not
 * captured, and KVM's notifier takes nothing of ours. Lockdep has one class for the invalidations of
 * all mms and reports the nesting; it is right about the class and wrong about the deadlock.
 */

static bool range_invalidate(struct mmu_interval_notifier *notifier,
			     const struct mmu_notifier_range *change, unsigned long sequence)
{
	struct window_range *range = container_of(notifier, struct window_range, notifier);
	struct octavo_vgpu_device *vgpu = range->vgpu;
	struct octavo_window_state *w = &vgpu->window;
	bool told = false;

	if (mmu_notifier_range_blockable(change))
		mutex_lock(&w->lock);
	else if (!mutex_trylock(&w->lock))
		return false;
	mmu_interval_set_seq(notifier, sequence);
	/* not in the window yet: range_moved() finds out */
	if (range->shown && !range->lost) {
		range->lost = true;
		window_zap(vgpu, range->node.start, range->node.last);
		told = w->epoch.session;
	}
	mutex_unlock(&w->lock);
	if (told)
		events_post(vgpu, OCTAVO_EVENT_WINDOW_LOST, 0, (u64)range->node.start << PAGE_SHIFT,
			    (u64)range->count << PAGE_SHIFT);
	return true;
}

static const struct mmu_interval_notifier_ops range_notifier_ops = {
	.invalidate = range_invalidate,
};

bool range_moved(struct window_range *range)
{
	return range->watched && mmu_interval_read_retry(&range->notifier, range->sequence);
}

/* The caching that the guest gets must be the one that the worker's own mapping has. */
static int caching_check(const struct window_range *range, pgprot_t host)
{
	bool combined = pgprot_val(pgprot_writecombine(host)) == pgprot_val(host);
	bool uncached = pgprot_val(pgprot_noncached(host)) == pgprot_val(host);

	return uncached || combined != range->write_combined ? -EINVAL : 0;
}

/* Captures one page; -EAGAIN when it had to be faulted in, and mmap_lock may have been let go. */
static int capture_device_page(struct window_range *range, struct vm_area_struct *vma,
			       unsigned long index)
{
	struct follow_pfnmap_args args = {
		.vma = vma,
		.address = range->addr + (index << PAGE_SHIFT),
	};
	bool writable, unlocked = false;
	int ret;

	if (!follow_pfnmap_start(&args)) {
		range->pfns[index] = args.pfn;
		writable = args.writable;
		ret = caching_check(range, args.pgprot);
		follow_pfnmap_end(&args);
		if (ret || writable)
			return ret;
	}
	ret = fixup_user_fault(vma->vm_mm, args.address, FAULT_FLAG_WRITE, &unlocked);
	return ret ? -EFAULT : -EAGAIN;
}

static int capture_device(struct window_range *range)
{
	struct mm_struct *mm = range->notifier.mm;
	struct vm_area_struct *vma;
	unsigned long index = 0, last_fault = ULONG_MAX;
	bool device;
	int ret = 0;

	range->sequence = mmu_interval_read_begin(&range->notifier);
	mmap_read_lock(mm);
	while (!ret && index < range->count) {
		vma = vma_lookup(mm, range->addr + (index << PAGE_SHIFT));
		ret = vma ? capture_kind(vma, &device) : -EFAULT;
		if (!ret && !device)
			ret = -EPERM;
		while (!ret && index < range->count &&
		       range->addr + (index << PAGE_SHIFT) < vma->vm_end) {
			ret = capture_device_page(range, vma, index);
			if (!ret)
				index++;
		}
		if (ret == -EAGAIN) {
			/* faulted in; the same page twice in vain is not to be had */
			ret = last_fault == index ? -EFAULT : 0;
			last_fault = index;
		}
		if (fatal_signal_pending(current))
			ret = -EINTR;
	}
	mmap_read_unlock(mm);
	return ret;
}

/* ------------------------------------------------------------------------------------------------
 * Shared memory: pinned
 */

/* Pins a part of the range that lies within one mapping; returns how many pages. */
static long capture_shared_part(struct window_range *range)
{
	unsigned long addr = range->addr + (range->captured << PAGE_SHIFT);
	struct page **pages = (struct page **)(range->pfns + range->captured);
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	unsigned long count;
	bool device;
	long ret, i;

	BUILD_BUG_ON(sizeof(pages[0]) != sizeof(range->pfns[0]));
	mmap_read_lock(mm);
	vma = vma_lookup(mm, addr);
	ret = vma ? capture_kind(vma, &device) : -EFAULT;
	if (!ret && device)
		ret = -EPERM;
	if (!ret) {
		count = min3(range->count - range->captured, PIN_BATCH,
			     (vma->vm_end - addr) >> PAGE_SHIFT);
		ret = pin_user_pages(addr, count, FOLL_WRITE | FOLL_LONGTERM, pages);
		if (!ret)
			ret = -EFAULT;
	}
	mmap_read_unlock(mm);
	for (i = 0; i < ret; i++)
		range->pfns[range->captured + (unsigned long)i] = page_to_pfn(pages[i]);
	return ret;
}

static int capture_shared(struct window_range *range)
{
	long ret;

	while (range->captured < range->count) {
		ret = capture_shared_part(range);
		if (ret < 0)
			return (int)ret;
		range->captured += (unsigned long)ret;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static void release_shared(struct window_range *range)
{
	unsigned long i, run;

	for (i = 0; i < range->captured; i += run) {
		for (run = 1; i + run < range->captured; run++)
			if (range->pfns[i + run] != range->pfns[i] + run)
				break;
		unpin_user_page_range_dirty_lock(pfn_to_page(range->pfns[i]), run, true);
		cond_resched();
	}
}

/* ------------------------------------------------------------------------------------------------
 * Either
 */

struct window_range *range_create(struct octavo_vgpu_device *vgpu,
				  const struct octavo_window *request)
{
	unsigned long count = (unsigned long)(request->length >> PAGE_SHIFT);
	struct mm_struct *mm = current->mm;
	struct window_range *range;
	struct vm_area_struct *vma;
	bool device = false;
	int ret;

	mmap_read_lock(mm);
	vma = vma_lookup(mm, (unsigned long)request->addr);
	ret = vma ? capture_kind(vma, &device) : -EFAULT;
	mmap_read_unlock(mm);
	if (ret)
		return ERR_PTR(ret);

	range = kvzalloc(struct_size(range, pfns, count), GFP_KERNEL_ACCOUNT);
	if (!range)
		return ERR_PTR(-ENOMEM);
	range->vgpu = vgpu;
	range->addr = (unsigned long)request->addr;
	range->count = count;
	range->node.start = (unsigned long)(request->offset >> PAGE_SHIFT);
	range->node.last = range->node.start + count - 1;
	range->write_combined = request->caching == OCTAVO_WRITE_COMBINED;
	range->pinned = !device;
	if (device) {
		ret = mmu_interval_notifier_insert(&range->notifier, mm, range->addr,
						   request->length, &range_notifier_ops);
		if (ret) {
			kvfree(range);
			return ERR_PTR(ret);
		}
		range->watched = true;
	}
	return range;
}

int range_capture(struct window_range *range)
{
	return range->watched ? capture_device(range) : capture_shared(range);
}

void range_free(struct window_range *range)
{
	if (range->watched)
		mmu_interval_notifier_remove(&range->notifier);
	else
		release_shared(range);
	kvfree(range);
}
