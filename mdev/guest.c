// SPDX-License-Identifier: GPL-2.0-only
/*
 * guest.c - guest memory as the worker sees it
 *
 * A page of the window is pinned (vfio_pin_pages) when it is first touched. The fault handler itself
 * only looks up and inserts: when the page is not there it lets go of its mmap_lock, pins, and has
 * the fault retried, because a pin takes the opener's mmap_lock, and with guest.lock held. For the
 * same reason it takes guest.lock by trylock only.
 *
 * iommufd wants ranges unpinned exactly as they were pinned, so the unit kept here is what one call
 * pinned: a chunk of neighbours where that works, else a single page.
 */
#include <linux/file.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "trace.h"
#include "vgpu.h"

#define CHUNK_PAGES	32u		/* 128 KiB a pin: rings and framebuffers are neighbours */
#define PAGES_LIMIT_MIN	2048u		/* twice OCTAVO_GUEST_PIN_MAX and its overhang, and some */
#define REFUSAL_SECONDS	10u
#define LEAVING_MS	10u		/* doubled for each time that VFIO has to ask again, */
#define LEAVING_TRIES	6u		/* up to this many times */
#define SCRATCH_MAX	4096u		/* pages shown as scratch; kept only to find them again */

/*
 * Pins count against the opener's memlock limit, but a page counts once; the opener's limit is the
 * guest's whole memory and more with libvirt. 256 MiB holds all backing of several 4K screens; more
 * makes sense for guests that stream large textures and pays with slower removal of memory.
 */
static unsigned int guest_pin_pages = 65536;
module_param(guest_pin_pages, uint, 0644);
MODULE_PARM_DESC(guest_pin_pages,
		 "Most pages of guest memory pinned for one vGPU's worker before old ones are let go (default 65536, at least 2048)");

struct page_range {
	unsigned long first;
	unsigned long last;
};

struct guest_pin {
	struct list_head node;		/* octavo_guest.pins */
	unsigned long first;		/* page of IOVA */
	u32 count;
	bool writable;
	struct page *pages[];
};

#define SCRATCH_ENTRY	xa_mk_value(0)

void guest_init(struct octavo_vgpu_device *vgpu)
{
	struct octavo_guest *g = &vgpu->guest;

	mutex_init(&g->lock);
	xa_init_flags(&g->pages, XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&g->pins);
	/* jiffies 0 may be to come */
	g->leaving.until = jiffies;
	g->refused = jiffies;
}

void guest_finish(struct octavo_vgpu_device *vgpu)
{
	xa_destroy(&vgpu->guest.pages);
	mutex_destroy(&vgpu->guest.lock);
}

static void guest_zap(struct octavo_guest *g, unsigned long first, unsigned long last)
{
	if (g->mapping)
		unmap_mapping_range(g->mapping, (loff_t)first << PAGE_SHIFT,
				    (loff_t)(last - first + 1) << PAGE_SHIFT, 1);
}

/* ------------------------------------------------------------------------------------------------
 * Pins; guest.lock held throughout
 */

static struct guest_pin *pin_create(struct octavo_vgpu_device *vgpu, unsigned long first, u32 count,
				    bool writable)
{
	int prot = IOMMU_READ | (writable ? IOMMU_WRITE : 0);
	struct octavo_guest *g = &vgpu->guest;
	dma_addr_t iova = (dma_addr_t)first << PAGE_SHIFT;
	struct guest_pin *pin;
	int ret;
	u32 i;

	pin = kzalloc(struct_size(pin, pages, count), GFP_KERNEL_ACCOUNT);
	if (!pin)
		return ERR_PTR(-ENOMEM);
	pin->first = first;
	pin->count = count;
	pin->writable = writable;
	ret = vfio_pin_pages(&vgpu->vdev, iova, (int)count, prot, pin->pages);
	if (ret != (int)count) {
		if (ret > 0) {
			vfio_unpin_pages(&vgpu->vdev, iova, ret);
			ret = -EFAULT;
		}
		goto err_free;
	}
	for (i = 0; i < count; i++) {
		ret = xa_err(xa_store(&g->pages, first + i, pin, GFP_KERNEL));
		if (ret)
			goto err_store;
	}
	list_add_tail(&pin->node, &g->pins);
	g->pinned += count;
	return pin;

err_store:
	while (i--)
		xa_erase(&g->pages, first + i);
	vfio_unpin_pages(&vgpu->vdev, iova, (int)count);
err_free:
	kfree(pin);
	return ERR_PTR(ret ? ret : -EFAULT);
}

/* Takes pins out of the index; they still have to be zapped and freed. */
static void pin_erase(struct octavo_guest *g, struct guest_pin *pin, struct list_head *erased)
{
	u32 i;

	for (i = 0; i < pin->count; i++)
		xa_erase(&g->pages, pin->first + i);
	list_move_tail(&pin->node, erased);
	g->pinned -= pin->count;
}

static void pins_free(struct octavo_vgpu_device *vgpu, struct list_head *erased)
{
	struct guest_pin *pin, *next;

	list_for_each_entry_safe(pin, next, erased, node) {
		vfio_unpin_pages(&vgpu->vdev, (dma_addr_t)pin->first << PAGE_SHIFT,
				 (int)pin->count);
		kfree(pin);
	}
}

/* Erases, zaps and unpins everything that touches the range. */
static void guest_forget(struct octavo_vgpu_device *vgpu, unsigned long first, unsigned long last)
{
	struct octavo_guest *g = &vgpu->guest;
	unsigned long index, zap_first = ULONG_MAX, zap_last = 0;
	LIST_HEAD(erased);
	void *entry;

	lockdep_assert_held(&g->lock);
	xa_for_each_range(&g->pages, index, entry, first, last) {
		if (xa_is_value(entry)) {
			xa_erase(&g->pages, index);
			g->scratched--;
			zap_first = min(zap_first, index);
			zap_last = max(zap_last, index);
		} else {
			struct guest_pin *pin = entry;

			zap_first = min(zap_first, pin->first);
			zap_last = max(zap_last, pin->first + pin->count - 1);
			pin_erase(g, pin, &erased);
		}
	}
	if (zap_first <= zap_last)
		guest_zap(g, zap_first, zap_last);
	pins_free(vgpu, &erased);
}

/* Evicts the oldest pins, but none of @keep, until @room more pages fit; false if they do not. */
static bool guest_evict(struct octavo_vgpu_device *vgpu, u32 room, const struct page_range *keep)
{
	u64 limit = max(READ_ONCE(guest_pin_pages), PAGES_LIMIT_MIN);
	struct octavo_guest *g = &vgpu->guest;
	struct guest_pin *pin, *next;
	LIST_HEAD(erased);

	limit = min(limit, g->allowed);
	list_for_each_entry_safe(pin, next, &g->pins, node) {
		if (g->pinned + room <= limit)
			break;
		if (pin->first <= keep->last && pin->first + pin->count > keep->first)
			continue;
		pin_erase(g, pin, &erased);
		guest_zap(g, pin->first, pin->first + pin->count - 1);
	}
	pins_free(vgpu, &erased);
	return g->pinned + room <= limit;
}

static struct guest_pin *pin_writable_or_not(struct octavo_vgpu_device *vgpu, unsigned long first,
					     u32 count)
{
	struct guest_pin *pin = pin_create(vgpu, first, count, true);

	if (pin == ERR_PTR(-EPERM) || pin == ERR_PTR(-EACCES))
		pin = pin_create(vgpu, first, count, false);
	return pin;
}

/* Pins the page, with its neighbours where they are not pinned yet and can be. */
static struct guest_pin *guest_try_pin(struct octavo_vgpu_device *vgpu, unsigned long index,
				       const struct page_range *keep)
{
	unsigned long first = round_down(index, (unsigned long)CHUNK_PAGES);
	struct octavo_guest *g = &vgpu->guest;
	struct guest_pin *pin;

	if (guest_evict(vgpu, CHUNK_PAGES, keep) &&
	    !xa_find(&g->pages, &first, first + CHUNK_PAGES - 1, XA_PRESENT)) {
		pin = pin_writable_or_not(vgpu, round_down(index, (unsigned long)CHUNK_PAGES),
					  CHUNK_PAGES);
		if (!IS_ERR(pin) || (pin == ERR_PTR(-ENOMEM) && g->pinned))
			return pin;
	}
	if (!guest_evict(vgpu, 1, keep))
		return ERR_PTR(-ENOMEM);
	return pin_writable_or_not(vgpu, index, 1);
}

/*
 * As above; the pages of @keep stay. What the opener's memlock limit has refused is not asked for
 * again for a while, since the kernel logs each refusal: fewer pages are kept instead.
 */
static struct guest_pin *guest_pin_page(struct octavo_vgpu_device *vgpu, unsigned long index,
					const struct page_range *keep)
{
	struct octavo_guest *g = &vgpu->guest;
	struct guest_pin *pin;

	if (time_after(jiffies, g->refused + REFUSAL_SECONDS * HZ))
		g->allowed = U64_MAX;
	for (;;) {
		pin = guest_try_pin(vgpu, index, keep);
		if (pin != ERR_PTR(-ENOMEM) || !g->pinned || g->pinned >= g->allowed)
			return pin;
		g->allowed = g->pinned;
		g->refused = jiffies;
	}
}

static void guest_scratch(struct octavo_vgpu_device *vgpu, unsigned long index)
{
	struct octavo_guest *g = &vgpu->guest;
	unsigned long other;
	void *entry;

	if (g->scratched >= SCRATCH_MAX) {
		xa_for_each(&g->pages, other, entry) {
			if (!xa_is_value(entry))
				continue;
			xa_erase(&g->pages, other);
			guest_zap(g, other, other);
			g->scratched--;
		}
	}
	if (!xa_err(xa_store(&g->pages, index, SCRATCH_ENTRY, GFP_KERNEL)))
		g->scratched++;
}

/* ------------------------------------------------------------------------------------------------
 * Faults
 */

static vm_fault_t guest_insert_scratch(struct vm_fault *vmf, struct octavo_session *session)
{
	struct vm_area_struct *vma = vmf->vma;
	u64 errors;

	atomic64_inc(&session->vgpu->counters.guest_errors);
	errors = READ_ONCE(session->status->guest_errors) + 1;
	WRITE_ONCE(session->status->guest_errors, errors);
	return vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(session->scratch),
				   vm_get_page_prot(vma->vm_flags));
}

/* Inserts the faulting page and those neighbours of its pin that the mapping covers. */
static vm_fault_t guest_insert_pin(struct vm_fault *vmf, const struct guest_pin *pin)
{
	struct vm_area_struct *vma = vmf->vma;
	vm_flags_t flags = vma->vm_flags;
	vm_fault_t ret, result = VM_FAULT_NOPAGE;
	pgprot_t prot;
	u32 i;

	if (!pin->writable)
		flags &= ~VM_WRITE;
	prot = vm_get_page_prot(flags);
	for (i = 0; i < pin->count; i++) {
		unsigned long index = pin->first + i;
		unsigned long addr;

		if (index < vma->vm_pgoff || index - vma->vm_pgoff >= vma_pages(vma))
			continue;
		addr = vma->vm_start + ((index - vma->vm_pgoff) << PAGE_SHIFT);
		ret = vmf_insert_pfn_prot(vma, addr, page_to_pfn(pin->pages[i]), prot);
		if (index == vmf->pgoff)
			result = ret;
	}
	return result;
}

/*
 * Takes guest.lock when nothing of the range, or of a chunk around it, is being unmapped by VFIO.
 * The caller may sleep and holds no lock that VFIO or the opener could wait for.
 */
static void guest_lock_settled(struct octavo_guest *g, const struct page_range *range)
{
	unsigned long first = round_down(range->first, (unsigned long)CHUNK_PAGES);
	unsigned long last = range->last | (CHUNK_PAGES - 1);
	long left;

	for (;;) {
		mutex_lock(&g->lock);
		left = (long)(g->leaving.until - jiffies);
		if (first > g->leaving.last || last < g->leaving.first || left <= 0)
			return;
		mutex_unlock(&g->lock);
		schedule_timeout_uninterruptible(left);
	}
}

/* Pins or marks as scratch what a fault did not find; the caller holds no mmap_lock. */
static void guest_populate(struct octavo_session *session, unsigned long index)
{
	const struct page_range keep = { index, index };
	struct octavo_vgpu_device *vgpu = session->vgpu;
	struct octavo_guest *g = &vgpu->guest;

	guest_lock_settled(g, &keep);
	if (g->epoch.session == session && g->epoch.live && !xa_load(&g->pages, index) &&
	    IS_ERR(guest_pin_page(vgpu, index, &keep)))
		guest_scratch(vgpu, index);
	mutex_unlock(&g->lock);
}

static vm_fault_t guest_fault(struct vm_fault *vmf)
{
	struct octavo_session *session = vmf->vma->vm_private_data;
	struct octavo_vgpu_device *vgpu = session->vgpu;
	struct octavo_guest *g = &vgpu->guest;
	unsigned long index = vmf->pgoff;
	vm_fault_t ret = 0;
	struct file *file;
	void *entry;

	if (mutex_trylock(&g->lock)) {
		entry = xa_load(&g->pages, index);
		if (g->epoch.session != session || !g->epoch.live || xa_is_value(entry))
			ret = guest_insert_scratch(vmf, session);
		else if (entry)
			ret = guest_insert_pin(vmf, entry);
		mutex_unlock(&g->lock);
		if (ret) {
			atomic64_inc(&vgpu->counters.guest_faults);
			trace_octavo_guest_fault(READ_ONCE(vgpu->open_id),
						 (u64)index << PAGE_SHIFT,
						 vmf->flags & FAULT_FLAG_WRITE);
			return ret;
		}
	}

	/*
	 * Only a processor's access may pin; on x86 those and no others are interruptible. The rest
	 * comes from inside somebody's locks (a window that was given to VFIO as guest memory comes
	 * from inside a pin) and fails if the page is not there.
	 */
	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY) || !(vmf->flags & FAULT_FLAG_INTERRUPTIBLE))
		return VM_FAULT_SIGBUS;
	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	/* Evicted or contended since the first try: begin anew. */
	if (!fault_flag_allow_retry_first(vmf->flags))
		return VM_FAULT_NOPAGE;

	file = get_file(vmf->vma->vm_file);
	mmap_read_unlock(vmf->vma->vm_mm);
	guest_populate(session, index);
	fput(file);
	return VM_FAULT_RETRY;
}

/* A write to a page that is mapped read-only: to memory that the guest's devices may only read. */
static vm_fault_t guest_mkwrite(struct vm_fault *vmf)
{
	struct octavo_session *session = vmf->vma->vm_private_data;
	struct octavo_guest *g = &session->vgpu->guest;
	struct guest_pin *pin;
	vm_fault_t ret = VM_FAULT_NOPAGE;
	void *entry;

	if (!mutex_trylock(&g->lock))
		return VM_FAULT_NOPAGE;
	entry = xa_load(&g->pages, vmf->pgoff);
	pin = xa_is_value(entry) ? NULL : entry;
	if (g->epoch.session == session && g->epoch.live && pin && !pin->writable) {
		guest_zap(g, vmf->pgoff, vmf->pgoff);
		ret = guest_insert_scratch(vmf, session);
	} else {
		/* mprotect() gave back a right that the page has */
		ret = 0;
	}
	mutex_unlock(&g->lock);
	return ret;
}

const struct vm_operations_struct guest_vm_ops = {
	.fault = guest_fault,
	.pfn_mkwrite = guest_mkwrite,
};

/* ------------------------------------------------------------------------------------------------
 * Life
 */

#define GUEST_LAST_PAGE	((unsigned long)((OCTAVO_GUEST_BYTES >> PAGE_SHIFT) - 1))

static void guest_stop(struct octavo_vgpu_device *vgpu)
{
	struct octavo_guest *g = &vgpu->guest;

	lockdep_assert_held(&g->lock);
	g->epoch.live = false;
	guest_forget(vgpu, 0, GUEST_LAST_PAGE);
	guest_zap(g, 0, GUEST_LAST_PAGE);
}

void guest_reset(struct octavo_vgpu_device *vgpu, u32 generation)
{
	mutex_lock(&vgpu->guest.lock);
	guest_stop(vgpu);
	vgpu->guest.allowed = U64_MAX;
	vgpu->guest.epoch.generation = generation;
	mutex_unlock(&vgpu->guest.lock);
}

void guest_attach(struct octavo_vgpu_device *vgpu, struct octavo_session *session)
{
	struct octavo_guest *g = &vgpu->guest;

	mutex_lock(&g->lock);
	guest_stop(vgpu);
	g->epoch.session = session;
	g->mapping = session->file->f_mapping;
	mutex_unlock(&g->lock);
}

/* Its session is over: scratch is all that its mappings show from now on. */
void guest_detach(struct octavo_vgpu_device *vgpu)
{
	struct octavo_guest *g = &vgpu->guest;

	mutex_lock(&g->lock);
	guest_stop(vgpu);
	g->epoch.session = NULL;
	g->mapping = NULL;
	mutex_unlock(&g->lock);
}

void guest_serve(struct octavo_vgpu_device *vgpu)
{
	struct octavo_guest *g = &vgpu->guest;

	mutex_lock(&g->lock);
	/* scratch that was touched meanwhile */
	if (!g->epoch.live)
		guest_zap(g, 0, GUEST_LAST_PAGE);
	g->epoch.live = true;
	mutex_unlock(&g->lock);
}

/*
 * VFIO calls again if anything of the range is pinned when it looks, which it does after this has
 * returned, and stops the machine at the tenth time (a BUG). So the range is kept from being pinned
 * again for a while, longer each time, and whoever wants it waits: a refusal would be wrong, since
 * VMs take memory away and give it back at once.
 */
static void guest_leave(struct octavo_guest *g, unsigned long first, unsigned long last)
{
	bool recent = time_before(jiffies, g->leaving.until + HZ);

	lockdep_assert_held(&g->lock);
	if (recent && first >= g->leaving.first && last <= g->leaving.last) {
		g->leaving.tries = min(g->leaving.tries + 1, LEAVING_TRIES);
	} else if (time_before(jiffies, g->leaving.until)) {
		g->leaving.first = min(g->leaving.first, first);
		g->leaving.last = max(g->leaving.last, last);
	} else {
		g->leaving.first = first;
		g->leaving.last = last;
		g->leaving.tries = 0;
	}
	g->leaving.until = jiffies + msecs_to_jiffies(LEAVING_MS << g->leaving.tries) + 1;
}

/* From VFIO; nothing of the range may be pinned on return. */
void guest_unmapped(struct octavo_vgpu_device *vgpu, u64 iova, u64 length)
{
	struct octavo_guest *g = &vgpu->guest;
	u64 last;

	if (!length || iova >= OCTAVO_GUEST_BYTES)
		return;
	last = min(length - 1, OCTAVO_GUEST_BYTES - 1 - iova) + iova;
	mutex_lock(&g->lock);
	guest_forget(vgpu, (unsigned long)(iova >> PAGE_SHIFT), (unsigned long)(last >> PAGE_SHIFT));
	guest_leave(g, (unsigned long)(iova >> PAGE_SHIFT), (unsigned long)(last >> PAGE_SHIFT));
	mutex_unlock(&g->lock);
	events_post(vgpu, OCTAVO_EVENT_UNMAPPED, 0, iova, last - iova + 1);
}

static int pin_error(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		return -EACCES;
	case -ENOMEM:
		return -ENOMEM;
	default:
		return -EFAULT;
	}
}

static int guest_pin_index(struct octavo_vgpu_device *vgpu, unsigned long index,
			   const struct page_range *range, bool write)
{
	struct octavo_guest *g = &vgpu->guest;
	struct guest_pin *pin;
	void *entry;

	entry = xa_load(&g->pages, index);
	if (xa_is_value(entry)) {
		guest_forget(vgpu, index, index);
		entry = NULL;
	}
	pin = entry;
	if (!pin) {
		pin = guest_pin_page(vgpu, index, range);
		if (IS_ERR(pin))
			return pin_error((int)PTR_ERR(pin));
	}
	if (write && !pin->writable)
		return -EACCES;
	list_move_tail(&pin->node, &g->pins);
	return 0;
}

int guest_pin(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	      const struct octavo_guest_range *range)
{
	struct octavo_guest *g = &vgpu->guest;
	struct page_range pages;
	unsigned long index;
	int ret;

	if (range->flags & ~OCTAVO_GUEST_WRITE || !range->length)
		return -EINVAL;
	if (range->length > OCTAVO_GUEST_PIN_MAX)
		return -E2BIG;
	if (range->iova >= OCTAVO_GUEST_BYTES || range->length > OCTAVO_GUEST_BYTES - range->iova)
		return -EFAULT;
	pages.first = (unsigned long)(range->iova >> PAGE_SHIFT);
	pages.last = (unsigned long)((range->iova + range->length - 1) >> PAGE_SHIFT);

	guest_lock_settled(g, &pages);
	ret = epoch_check(&g->epoch, session, range->generation);
	for (index = pages.first; !ret && index <= pages.last; index++)
		ret = guest_pin_index(vgpu, index, &pages, range->flags & OCTAVO_GUEST_WRITE);
	mutex_unlock(&g->lock);
	return ret;
}

int guest_drop(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	       const struct octavo_guest_range *range)
{
	struct octavo_guest *g = &vgpu->guest;
	u64 last = OCTAVO_GUEST_BYTES - 1;
	int ret;

	if (range->flags || (!range->length && range->iova))
		return -EINVAL;
	if (range->iova >= OCTAVO_GUEST_BYTES || range->length > OCTAVO_GUEST_BYTES - range->iova)
		return -EINVAL;
	if (range->length)
		last = range->iova + range->length - 1;

	mutex_lock(&g->lock);
	ret = epoch_check(&g->epoch, session, range->generation);
	if (!ret)
		guest_forget(vgpu, (unsigned long)(range->iova >> PAGE_SHIFT),
			     (unsigned long)(last >> PAGE_SHIFT));
	mutex_unlock(&g->lock);
	return ret;
}
