// SPDX-License-Identifier: GPL-2.0-only
/*
 * window.c - BAR2, the memory window: what it shows, and the guest's side of it
 *
 * The worker names a range of its own memory; its frames are captured in the ioctl (capture.c), in
 * the worker's context, and the fault handler only looks them up. window.lock is a leaf: a guest may
 * point a descriptor at a BAR2, so that the fault comes from inside a pin, with type1's lock held.
 *
 * window.fault_lock stands above it and makes page tables exist before window.lock is taken: nothing
 * is allocated under window.lock, which invalidations of the worker's memory take too.
 */
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "trace.h"
#include "vgpu.h"
#include "window.h"

#define RANGES_MAX	65536u
#define FAULT_AROUND	16u		/* pages inserted by one fault that is not a huge one */
#define LOST_WAIT_MS	500u		/* how long an access waits for moved memory to come back */

static struct lock_class_key window_mmap_key;

static struct window_range *range_from(struct interval_tree_node *node)
{
	return node ? container_of(node, struct window_range, node) : NULL;
}

static struct window_range *range_find(struct octavo_window_state *w, unsigned long page)
{
	return range_from(interval_tree_iter_first(&w->ranges, page, page));
}

void window_init(struct octavo_vgpu_device *vgpu)
{
	struct octavo_window_state *w = &vgpu->window;

	mutex_init(&w->lock);
	mutex_init(&w->fault_lock);
	w->ranges = RB_ROOT_CACHED;
	init_waitqueue_head(&w->wait);
}

void window_zap(struct octavo_vgpu_device *vgpu, unsigned long first, unsigned long last)
{
	loff_t base = (loff_t)VFIO_PCI_BAR2_REGION_INDEX << OCTAVO_REGION_SHIFT;

	unmap_mapping_range(vgpu->vdev.inode->i_mapping, base + ((loff_t)first << PAGE_SHIFT),
			    (loff_t)(last - first + 1) << PAGE_SHIFT, 1);
}

/* Takes all ranges out and shows scratch; the ranges come back in @ranges. window.lock held. */
static void window_clear(struct octavo_vgpu_device *vgpu, struct rb_root_cached *ranges)
{
	struct octavo_window_state *w = &vgpu->window;
	struct interval_tree_node *node;

	for (node = interval_tree_iter_first(&w->ranges, 0, ULONG_MAX); node;
	     node = interval_tree_iter_next(node, 0, ULONG_MAX))
		range_from(node)->shown = false;
	*ranges = w->ranges;
	w->ranges = RB_ROOT_CACHED;
	WRITE_ONCE(w->changes, w->changes + 1);
	w->count = 0;
	atomic64_set(&vgpu->counters.window_mapped, 0);
	window_zap(vgpu, 0, (vgpu->window_bytes >> PAGE_SHIFT) - 1);
}

/* Not under window.lock: waits for invalidations that want it. */
static void ranges_free(struct rb_root_cached *ranges)
{
	struct interval_tree_node *node;

	while ((node = interval_tree_iter_first(ranges, 0, ULONG_MAX))) {
		interval_tree_remove(node, ranges);
		range_free(range_from(node));
	}
}

int window_open(struct octavo_vgpu_device *vgpu)
{
	struct octavo_window_state *w = &vgpu->window;
	struct page *scratch;

	/*
	 * Memory of a device that moves is unmapped under its own inode's lock, and from inside that
	 * we unmap BAR2: another inode, always in this order.
	 */
	lockdep_set_class(&vgpu->vdev.inode->i_mapping->i_mmap_rwsem, &window_mmap_key);
	scratch = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!scratch)
		return -ENOMEM;
	mutex_lock(&w->lock);
	w->scratch = scratch;
	mutex_unlock(&w->lock);
	return 0;
}

void window_close(struct octavo_vgpu_device *vgpu)
{
	struct octavo_window_state *w = &vgpu->window;
	struct rb_root_cached ranges;
	struct page *scratch;

	mutex_lock(&w->lock);
	w->epoch.live = false;
	w->epoch.session = NULL;
	window_clear(vgpu, &ranges);
	scratch = w->scratch;
	w->scratch = NULL;
	mutex_unlock(&w->lock);
	ranges_free(&ranges);
	if (scratch)
		__free_page(scratch);
}

void window_reset(struct octavo_vgpu_device *vgpu, u32 generation)
{
	struct octavo_window_state *w = &vgpu->window;
	struct rb_root_cached ranges;

	mutex_lock(&w->lock);
	w->epoch.generation = generation;
	w->epoch.live = false;
	window_clear(vgpu, &ranges);
	if (w->scratch)
		clear_highpage(w->scratch);
	mutex_unlock(&w->lock);
	ranges_free(&ranges);
	wake_up_all(&w->wait);
}

void window_serve(struct octavo_vgpu_device *vgpu, struct octavo_session *session, bool live)
{
	mutex_lock(&vgpu->window.lock);
	vgpu->window.epoch.session = session;
	vgpu->window.epoch.live = live;
	mutex_unlock(&vgpu->window.lock);
}

/* ------------------------------------------------------------------------------------------------
 * The worker's side
 */

static int window_check(struct octavo_vgpu_device *vgpu, const struct octavo_window *request)
{
	if (request->caching > OCTAVO_WRITE_COMBINED || !request->length ||
	    !PAGE_ALIGNED(request->offset | request->length | request->addr))
		return -EINVAL;
	if (request->offset >= vgpu->window_bytes ||
	    request->length > vgpu->window_bytes - request->offset)
		return -ERANGE;
	return 0;
}

/*
 * Puts a captured range where nothing is, or where only ranges are that were lost; those come back
 * in @replaced. window.lock held.
 */
static int range_insert(struct octavo_vgpu_device *vgpu, struct window_range *range,
			struct rb_root_cached *replaced)
{
	struct octavo_window_state *w = &vgpu->window;
	struct interval_tree_node *node;

	for (node = interval_tree_iter_first(&w->ranges, range->node.start, range->node.last); node;
	     node = interval_tree_iter_next(node, range->node.start, range->node.last))
		if (!range_from(node)->lost)
			return -EEXIST;
	if (w->count >= RANGES_MAX)
		return -E2BIG;
	while ((node = interval_tree_iter_first(&w->ranges, range->node.start, range->node.last))) {
		interval_tree_remove(node, &w->ranges);
		interval_tree_insert(node, replaced);
		range_from(node)->shown = false;
		w->count--;
		atomic64_sub((s64)range_from(node)->count << PAGE_SHIFT,
			     &vgpu->counters.window_mapped);
		/* what of it the new range does not cover */
		window_zap(vgpu, node->start, node->last);
	}
	interval_tree_insert(&range->node, &w->ranges);
	range->shown = true;
	WRITE_ONCE(w->changes, w->changes + 1);
	w->count++;
	atomic64_add((s64)range->count << PAGE_SHIFT, &vgpu->counters.window_mapped);
	/* what the guest touched as a hole */
	window_zap(vgpu, range->node.start, range->node.last);
	return 0;
}

int window_map(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	       const struct octavo_window *request)
{
	struct rb_root_cached replaced = RB_ROOT_CACHED;
	struct octavo_window_state *w = &vgpu->window;
	struct window_range *range;
	unsigned int tries;
	int ret;

	ret = window_check(vgpu, request);
	if (ret)
		return ret;
	if (request->addr >= TASK_SIZE_MAX || request->length > TASK_SIZE_MAX - request->addr)
		return -EFAULT;
	/* Cheap refusals before the work; all is checked again below. */
	mutex_lock(&w->lock);
	ret = epoch_check(&w->epoch, session, request->generation);
	mutex_unlock(&w->lock);
	if (ret)
		return ret;

	range = range_create(vgpu, request);
	if (IS_ERR(range))
		return (int)PTR_ERR(range);
	for (tries = 0; ; tries++) {
		ret = range_capture(range);
		if (ret)
			break;
		mutex_lock(&w->lock);
		ret = epoch_check(&w->epoch, session, request->generation);
		if (!ret && range_moved(range))
			ret = -EAGAIN;
		if (!ret)
			ret = range_insert(vgpu, range, &replaced);
		mutex_unlock(&w->lock);
		if (ret != -EAGAIN)
			break;
		/* moved under our hands; memory that never rests is none to map */
		if (tries == 100 || signal_pending(current)) {
			ret = -EFAULT;
			break;
		}
	}
	if (ret)
		range_free(range);
	else
		wake_up_all(&w->wait);
	ranges_free(&replaced);
	return ret;
}

int window_unmap(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		 const struct octavo_window *request)
{
	struct octavo_window_state *w = &vgpu->window;
	struct window_range *range = NULL;
	unsigned long first;
	int ret;

	if (request->addr || request->caching)
		return -EINVAL;
	ret = window_check(vgpu, request);
	if (ret)
		return ret;
	first = (unsigned long)(request->offset >> PAGE_SHIFT);

	mutex_lock(&w->lock);
	if (w->epoch.session != session) {
		ret = -ENODEV;
	} else {
		range = range_find(w, first);
		if (!range || range->node.start != first ||
		    range->count != request->length >> PAGE_SHIFT) {
			range = NULL;
			ret = -ENOENT;
		}
	}
	if (range) {
		interval_tree_remove(&range->node, &w->ranges);
		range->shown = false;
		w->count--;
		atomic64_sub((s64)request->length, &vgpu->counters.window_mapped);
		window_zap(vgpu, range->node.start, range->node.last);
	}
	mutex_unlock(&w->lock);
	if (range)
		range_free(range);
	return ret;
}

/* ------------------------------------------------------------------------------------------------
 * The guest's side
 */

static unsigned long window_page(pgoff_t pgoff)
{
	return (unsigned long)(((u64)pgoff & (OCTAVO_REGION_MASK >> PAGE_SHIFT)));
}

static pgprot_t window_prot(const struct vm_area_struct *vma, const struct window_range *range)
{
	pgprot_t prot = vm_get_page_prot(vma->vm_flags);

	return range && range->write_combined ? pgprot_writecombine(prot) : prot;
}

static vm_fault_t window_fault_range(struct vm_fault *vmf, struct window_range *range)
{
	unsigned long page = window_page(vmf->pgoff);
	struct vm_area_struct *vma = vmf->vma;
	pgprot_t prot = window_prot(vma, range);
	vm_fault_t ret = VM_FAULT_NOPAGE;
	unsigned long i;

	for (i = 0; i < FAULT_AROUND && page + i <= range->node.last; i++) {
		unsigned long addr = vmf->address + (i << PAGE_SHIFT);

		/* one page table: the one that was made to exist */
		if (addr >= vma->vm_end || (i && !(addr & ~PMD_MASK)))
			break;
		ret = vmf_insert_pfn_prot(vma, addr, range->pfns[page + i - range->node.start],
					  prot);
		if (ret != VM_FAULT_NOPAGE)
			return i ? VM_FAULT_NOPAGE : ret;
	}
	return ret;
}

/*
 * The memory that was here moves; the worker has been asked to capture it again. Scratch would be
 * silent corruption, so the access waits, a bounded time, with no lock held. What comes from inside
 * a pin (FAULT_FLAG_REMOTE) must not wait for anybody.
 */
static vm_fault_t window_fault_lost(struct vm_fault *vmf, struct octavo_vgpu_device *vgpu,
				    u32 changes)
{
	struct octavo_window_state *w = &vgpu->window;
	unsigned long page = window_page(vmf->pgoff);
	struct window_range *range;
	struct file *file;

	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	file = get_file(vmf->vma->vm_file);
	mmap_read_unlock(vmf->vma->vm_mm);
	if (!wait_event_killable_timeout(w->wait, READ_ONCE(w->changes) != changes,
					 msecs_to_jiffies(LOST_WAIT_MS))) {
		mutex_lock(&w->lock);
		range = range_find(w, page);
		if (range && range->lost)
			range->given_up = true;
		mutex_unlock(&w->lock);
	}
	fput(file);
	return VM_FAULT_RETRY;
}

static int page_table_touch(pte_t *pte, unsigned long addr, void *data)
{
	return 0;
}

static vm_fault_t window_fault(struct vm_fault *vmf)
{
	struct octavo_vgpu_device *vgpu = vmf->vma->vm_private_data;
	struct octavo_window_state *w = &vgpu->window;
	vm_fault_t ret = VM_FAULT_NOPAGE;
	struct window_range *range;
	bool wait = false;
	u32 changes = 0;

	mutex_lock(&w->fault_lock);
	/* somebody else's huge entry */
	if (pmd_leaf(READ_ONCE(*vmf->pmd)))
		goto out;
	if (apply_to_page_range(vmf->vma->vm_mm, vmf->address & PAGE_MASK, PAGE_SIZE,
				page_table_touch, NULL)) {
		ret = VM_FAULT_OOM;
		goto out;
	}
	mutex_lock(&w->lock);
	changes = w->changes;
	range = range_find(w, window_page(vmf->pgoff));
	wait = range && range->lost && !range->given_up &&
	       fault_flag_allow_retry_first(vmf->flags) && !(vmf->flags & FAULT_FLAG_REMOTE);
	if (range && !range->lost)
		ret = window_fault_range(vmf, range);
	else if (!w->scratch)
		ret = VM_FAULT_SIGBUS;
	else if (!wait)
		ret = vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(w->scratch),
					  window_prot(vmf->vma, NULL));
	mutex_unlock(&w->lock);
	atomic64_inc(&vgpu->counters.window_faults);
	trace_octavo_window_fault(READ_ONCE(vgpu->open_id), (u64)window_page(vmf->pgoff) << PAGE_SHIFT,
				  vmf->flags & FAULT_FLAG_WRITE);
out:
	mutex_unlock(&w->fault_lock);
	return wait ? window_fault_lost(vmf, vgpu, changes) : ret;
}

/* The first frame of 2 MiB that a huge mapping can show, or 0. */
static unsigned long range_huge_pfn(const struct window_range *range, unsigned long page)
{
	unsigned long i, pfn;

	if (page < range->node.start || page + PTRS_PER_PMD - 1 > range->node.last)
		return 0;
	pfn = range->pfns[page - range->node.start];
	if (pfn % PTRS_PER_PMD)
		return 0;
	for (i = 1; i < PTRS_PER_PMD; i++)
		if (range->pfns[page + i - range->node.start] != pfn + i)
			return 0;
	return pfn;
}

static vm_fault_t window_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	unsigned long addr = vmf->address & PMD_MASK;
	struct vm_area_struct *vma = vmf->vma;
	struct octavo_vgpu_device *vgpu = vma->vm_private_data;
	struct octavo_window_state *w = &vgpu->window;
	vm_fault_t ret = VM_FAULT_FALLBACK;
	unsigned long page, pfn = 0;
	struct window_range *range;

	if (order != PMD_ORDER || addr < vma->vm_start || addr + PMD_SIZE > vma->vm_end)
		return VM_FAULT_FALLBACK;
	page = window_page(vma->vm_pgoff + ((addr - vma->vm_start) >> PAGE_SHIFT));

	mutex_lock(&w->fault_lock);
	mutex_lock(&w->lock);
	range = range_find(w, page);
	/* a huge entry takes its caching from the mapping, so other kinds go page by page */
	if (range && !range->lost && !range->write_combined)
		pfn = range_huge_pfn(range, page);
	if (pfn)
		ret = compat_insert_pfn_pmd(vmf, pfn);
	mutex_unlock(&w->lock);
	mutex_unlock(&w->fault_lock);
	if (ret == VM_FAULT_NOPAGE) {
		atomic64_inc(&vgpu->counters.window_faults);
		trace_octavo_window_fault(READ_ONCE(vgpu->open_id), (u64)page << PAGE_SHIFT,
					  vmf->flags & FAULT_FLAG_WRITE);
	}
	return ret;
}

static const struct vm_operations_struct window_vm_ops = {
	.fault = window_fault,
	.huge_fault = window_huge_fault,
};

bool window_vma_is_vgpu(const struct vm_area_struct *vma)
{
	return vma->vm_ops == &window_vm_ops;
}

/* The caller has checked offset and length. */
int window_mmap(struct octavo_vgpu_device *vgpu, struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_private_data = vgpu;
	vma->vm_ops = &window_vm_ops;
	return 0;
}

/* read() and write() reach memory; a device's own they do not. */
int window_access(struct octavo_vgpu_device *vgpu, u64 offset, u8 *data, u32 count, bool write)
{
	unsigned long page = (unsigned long)(offset >> PAGE_SHIFT);
	struct octavo_window_state *w = &vgpu->window;
	struct page *frame = NULL;
	struct window_range *range;
	u8 *at;

	mutex_lock(&w->lock);
	range = range_find(w, page);
	if (!range || range->lost)
		frame = w->scratch;
	else if (range->pinned)
		frame = pfn_to_page(range->pfns[page - range->node.start]);
	if (frame) {
		at = kmap_local_page(frame);
		if (write)
			memcpy(at + offset_in_page(offset), data, count);
		else
			memcpy(data, at + offset_in_page(offset), count);
		kunmap_local(at);
	}
	mutex_unlock(&w->lock);
	return frame ? 0 : -EIO;
}
