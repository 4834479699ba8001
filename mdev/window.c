// SPDX-License-Identifier: GPL-2.0-only
/*
 * window.c - BAR2, the memory window
 *
 * The worker names a range of its own memory; its frames are captured in the ioctl, in the worker's
 * context, and the fault handler only looks them up. window.lock is a leaf: a guest may point a
 * descriptor at a BAR2, so that the fault comes from inside a pin, with type1's lock held.
 */
#include <linux/mm.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "compat.h"
#include "vgpu.h"

#define RANGES_MAX	65536u
#define FAULT_AROUND	16u		/* pages inserted by one fault that is not a huge one */
#define PIN_BATCH	512ul		/* pages captured in one go of the caller's mmap_lock */

struct window_range {
	struct interval_tree_node node;	/* pages of the window, both ends inclusive */
	bool write_combined;
	unsigned long count;
	struct page *pages[];		/* pinned for the long term */
};

static struct window_range *range_from(struct interval_tree_node *node)
{
	return node ? container_of(node, struct window_range, node) : NULL;
}

void window_init(struct octavo_vgpu_device *vgpu)
{
	struct octavo_window_state *w = &vgpu->window;

	mutex_init(&w->lock);
	w->ranges = RB_ROOT_CACHED;
	init_waitqueue_head(&w->wait);
}

static struct window_range *range_find(struct octavo_window_state *w, unsigned long page)
{
	return range_from(interval_tree_iter_first(&w->ranges, page, page));
}

static void range_free(struct window_range *range)
{
	unpin_user_pages_dirty_lock(range->pages, range->count, true);
	kvfree(range);
}

static void window_zap(struct octavo_vgpu_device *vgpu, unsigned long first, unsigned long last)
{
	loff_t base = (loff_t)VFIO_PCI_BAR2_REGION_INDEX << OCTAVO_REGION_SHIFT;

	if (vgpu->window.mapping)
		unmap_mapping_range(vgpu->window.mapping, base + ((loff_t)first << PAGE_SHIFT),
				    (loff_t)(last - first + 1) << PAGE_SHIFT, 1);
}

/* Takes all ranges out and shows scratch; the ranges come back in @ranges. window.lock held. */
static void window_clear(struct octavo_vgpu_device *vgpu, struct rb_root_cached *ranges)
{
	struct octavo_window_state *w = &vgpu->window;

	*ranges = w->ranges;
	w->ranges = RB_ROOT_CACHED;
	w->count = 0;
	atomic64_set(&vgpu->counters.window_mapped, 0);
	window_zap(vgpu, 0, (vgpu->window_bytes >> PAGE_SHIFT) - 1);
}

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
	w->mapping = NULL;
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
}

void window_serve(struct octavo_vgpu_device *vgpu, struct octavo_session *session, bool live)
{
	mutex_lock(&vgpu->window.lock);
	vgpu->window.epoch.session = session;
	vgpu->window.epoch.live = live;
	mutex_unlock(&vgpu->window.lock);
}

/* ------------------------------------------------------------------------------------------------
 * Capture
 */

/* May the guest be shown this mapping of the worker? The caller holds mmap_lock. */
static int capture_check(struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_WRITE))
		return -EFAULT;
	if (window_vma_is_vgpu(vma) || vma->vm_ops == &guest_vm_ops)
		return -EPERM;
	if (!(vma->vm_flags & VM_SHARED) || !vma->vm_file ||
	    !shmem_mapping(vma->vm_file->f_mapping))
		return -EPERM;
	return 0;
}

/* Pins a part of the range that lies within one mapping; returns how many pages. */
static long capture_part(unsigned long addr, unsigned long count, struct page **pages)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	long ret;

	mmap_read_lock(mm);
	vma = vma_lookup(mm, addr);
	ret = vma ? capture_check(vma) : -EFAULT;
	if (!ret) {
		count = min3(count, PIN_BATCH, (vma->vm_end - addr) >> PAGE_SHIFT);
		ret = pin_user_pages(addr, count, FOLL_WRITE | FOLL_LONGTERM, pages);
		if (!ret)
			ret = -EFAULT;
	}
	mmap_read_unlock(mm);
	return ret;
}

static struct window_range *window_capture(const struct octavo_window *request)
{
	unsigned long count = (unsigned long)(request->length >> PAGE_SHIFT);
	struct window_range *range;
	long ret;

	range = kvzalloc(struct_size(range, pages, count), GFP_KERNEL_ACCOUNT);
	if (!range)
		return ERR_PTR(-ENOMEM);
	while (range->count < count) {
		ret = capture_part((unsigned long)request->addr + (range->count << PAGE_SHIFT),
				   count - range->count, range->pages + range->count);
		if (ret < 0) {
			unpin_user_pages(range->pages, range->count);
			kvfree(range);
			return ERR_PTR(ret);
		}
		range->count += (unsigned long)ret;
		cond_resched();
	}
	range->node.start = (unsigned long)(request->offset >> PAGE_SHIFT);
	range->node.last = range->node.start + count - 1;
	range->write_combined = request->caching == OCTAVO_WRITE_COMBINED;
	return range;
}

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

int window_map(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	       const struct octavo_window *request)
{
	struct octavo_window_state *w = &vgpu->window;
	struct window_range *range;
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

	range = window_capture(request);
	if (IS_ERR(range))
		return (int)PTR_ERR(range);

	mutex_lock(&w->lock);
	ret = epoch_check(&w->epoch, session, request->generation);
	if (!ret && interval_tree_iter_first(&w->ranges, range->node.start, range->node.last))
		ret = -EEXIST;
	if (!ret && w->count >= RANGES_MAX)
		ret = -E2BIG;
	if (!ret) {
		interval_tree_insert(&range->node, &w->ranges);
		w->count++;
		atomic64_add((s64)request->length, &vgpu->counters.window_mapped);
		/* what the guest touched as a hole */
		window_zap(vgpu, range->node.start, range->node.last);
	}
	mutex_unlock(&w->lock);
	if (ret)
		range_free(range);
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
		unsigned long pfn = page_to_pfn(range->pages[page + i - range->node.start]);

		if (addr >= vma->vm_end)
			break;
		ret = vmf_insert_pfn_prot(vma, addr, pfn, prot);
		if (ret != VM_FAULT_NOPAGE)
			return i ? VM_FAULT_NOPAGE : ret;
	}
	return ret;
}

static vm_fault_t window_fault(struct vm_fault *vmf)
{
	struct octavo_vgpu_device *vgpu = vmf->vma->vm_private_data;
	struct octavo_window_state *w = &vgpu->window;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	struct window_range *range;

	mutex_lock(&w->lock);
	range = range_find(w, window_page(vmf->pgoff));
	if (range)
		ret = window_fault_range(vmf, range);
	else if (w->scratch)
		ret = vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(w->scratch),
					  window_prot(vmf->vma, NULL));
	mutex_unlock(&w->lock);
	atomic64_inc(&vgpu->counters.window_faults);
	return ret;
}

/* The frames of 2 MiB that a huge mapping can show, or 0. */
static unsigned long range_huge_pfn(const struct window_range *range, unsigned long page)
{
	unsigned long i, pfn;

	if (page < range->node.start || page + PTRS_PER_PMD - 1 > range->node.last)
		return 0;
	pfn = page_to_pfn(range->pages[page - range->node.start]);
	if (pfn % PTRS_PER_PMD)
		return 0;
	for (i = 1; i < PTRS_PER_PMD; i++)
		if (page_to_pfn(range->pages[page + i - range->node.start]) != pfn + i)
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

	mutex_lock(&w->lock);
	range = range_find(w, page);
	/* a huge entry takes its caching from the mapping, so other kinds go page by page */
	if (range && !range->write_combined)
		pfn = range_huge_pfn(range, page);
	if (pfn)
		ret = compat_insert_pfn_pmd(vmf, pfn);
	mutex_unlock(&w->lock);
	if (ret == VM_FAULT_NOPAGE)
		atomic64_inc(&vgpu->counters.window_faults);
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
	mutex_lock(&vgpu->window.lock);
	vgpu->window.mapping = vma->vm_file->f_mapping;
	mutex_unlock(&vgpu->window.lock);
	return 0;
}

int window_access(struct octavo_vgpu_device *vgpu, u64 offset, u8 *data, u32 count, bool write)
{
	unsigned long page = (unsigned long)(offset >> PAGE_SHIFT);
	struct octavo_window_state *w = &vgpu->window;
	struct window_range *range;
	struct page *frame;
	u8 *at;

	mutex_lock(&w->lock);
	range = range_find(w, page);
	frame = range ? range->pages[page - range->node.start] : w->scratch;
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
