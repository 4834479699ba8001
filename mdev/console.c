// SPDX-License-Identifier: GPL-2.0-only
/*
 * console.c - the plane that QEMU shows
 *
 * One buffer of fixed size an open, made when it is first mapped. A mapping keeps the buffer it was
 * made for, so that a worker that outlives its VM never sees the next one's picture.
 */
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <drm/drm_fourcc.h>
#include <drm/drm_plane.h>

#include "vgpu.h"

struct octavo_console_buffer {
	struct kref ref;
	void *pixels;
};

static void buffer_release(struct kref *ref)
{
	struct octavo_console_buffer *buffer =
		container_of(ref, struct octavo_console_buffer, ref);

	vfree(buffer->pixels);
	kfree(buffer);
}

static void buffer_put(struct octavo_console_buffer *buffer)
{
	kref_put(&buffer->ref, buffer_release);
}

static struct octavo_console_buffer *buffer_create(void)
{
	struct octavo_console_buffer *buffer;

	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return NULL;
	kref_init(&buffer->ref);
	buffer->pixels = __vmalloc(OCTAVO_CONSOLE_BYTES, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!buffer->pixels) {
		kfree(buffer);
		return NULL;
	}
	return buffer;
}

void console_init(struct octavo_vgpu_device *vgpu)
{
	mutex_init(&vgpu->console.lock);
}

/* Forgets plane and pixels; console.lock held. */
static void console_clear(struct octavo_console_state *c)
{
	c->width = 0;
	c->height = 0;
	c->stride = 0;
	if (c->dirty && c->buffer)
		memset(c->buffer->pixels, 0, OCTAVO_CONSOLE_BYTES);
	c->dirty = false;
}

void console_reset(struct octavo_vgpu_device *vgpu, u32 generation)
{
	struct octavo_console_state *c = &vgpu->console;

	mutex_lock(&c->lock);
	c->epoch.generation = generation;
	c->epoch.live = false;
	console_clear(c);
	mutex_unlock(&c->lock);
}

void console_serve(struct octavo_vgpu_device *vgpu, struct octavo_session *session, bool live)
{
	mutex_lock(&vgpu->console.lock);
	vgpu->console.epoch.session = session;
	vgpu->console.epoch.live = live;
	mutex_unlock(&vgpu->console.lock);
}

void console_close(struct octavo_vgpu_device *vgpu)
{
	struct octavo_console_state *c = &vgpu->console;
	struct octavo_console_buffer *buffer;

	mutex_lock(&c->lock);
	buffer = c->buffer;
	c->buffer = NULL;
	c->watched = false;
	c->dirty = false;
	console_clear(c);
	mutex_unlock(&c->lock);
	if (buffer)
		buffer_put(buffer);
}

int console_set(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		const struct octavo_console *console)
{
	struct octavo_console_state *c = &vgpu->console;
	int ret;

	if (!console->width != !console->height)
		return -EINVAL;
	if (!console->width && console->stride)
		return -EINVAL;
	if (console->width > OCTAVO_MODE_WIDTH_MAX || console->height > OCTAVO_MODE_HEIGHT_MAX ||
	    console->stride < 4 * console->width || console->stride % 4 ||
	    (u64)console->height * console->stride > OCTAVO_CONSOLE_BYTES)
		return -EINVAL;

	mutex_lock(&c->lock);
	ret = epoch_check(&c->epoch, session, console->generation);
	if (!ret) {
		c->width = console->width;
		c->height = console->height;
		c->stride = console->stride;
		c->dirty = true;
	}
	mutex_unlock(&c->lock);
	return ret;
}

/* The buffer of this open, made if there is none yet; console.lock held. */
static int console_buffer(struct octavo_console_state *c)
{
	if (!c->buffer)
		c->buffer = buffer_create();
	return c->buffer ? 0 : -ENOMEM;
}

void console_watch(struct octavo_vgpu_device *vgpu)
{
	struct octavo_console_state *c = &vgpu->console;
	bool first;

	mutex_lock(&c->lock);
	first = !c->watched;
	c->watched = true;
	mutex_unlock(&c->lock);
	if (first)
		events_post(vgpu, OCTAVO_EVENT_CONSOLE, 1, 0, 0);
}

int console_query(struct octavo_vgpu_device *vgpu, struct vfio_device_gfx_plane_info *plane)
{
	struct octavo_console_state *c = &vgpu->console;

	if (plane->flags & VFIO_GFX_PLANE_TYPE_PROBE)
		return plane->flags == (VFIO_GFX_PLANE_TYPE_PROBE | VFIO_GFX_PLANE_TYPE_REGION) ?
		       0 : -EINVAL;
	/* QEMU leaves the type at 0 (overlay) for region planes; the cursor is in the picture. */
	if (plane->flags != VFIO_GFX_PLANE_TYPE_REGION ||
	    (plane->drm_plane_type != DRM_PLANE_TYPE_PRIMARY &&
	     plane->drm_plane_type != DRM_PLANE_TYPE_OVERLAY))
		return -EINVAL;
	console_watch(vgpu);

	mutex_lock(&c->lock);
	plane->drm_format_mod = DRM_FORMAT_MOD_LINEAR;
	plane->drm_format = c->width ? DRM_FORMAT_XRGB8888 : 0;
	plane->width = c->width;
	plane->height = c->height;
	plane->stride = c->stride;
	plane->size = c->height * c->stride;
	plane->x_pos = 0;
	plane->y_pos = 0;
	plane->x_hot = 0;
	plane->y_hot = 0;
	plane->region_index = OCTAVO_REGION_CONSOLE;
	mutex_unlock(&c->lock);
	return 0;
}

/* ------------------------------------------------------------------------------------------------
 * Mappings. Both sides' offsets have the region's own offset in their low bits.
 */

static vm_fault_t console_fault(struct vm_fault *vmf)
{
	struct octavo_console_buffer *buffer = vmf->vma->vm_private_data;
	u64 offset = ((u64)vmf->pgoff << PAGE_SHIFT) & OCTAVO_REGION_MASK;
	struct page *page;

	if (offset >= OCTAVO_CONSOLE_BYTES)
		return VM_FAULT_SIGBUS;
	page = vmalloc_to_page((u8 *)buffer->pixels + offset);
	get_page(page);
	vmf->page = page;
	return 0;
}

static void console_vma_open(struct vm_area_struct *vma)
{
	struct octavo_console_buffer *buffer = vma->vm_private_data;

	kref_get(&buffer->ref);
}

static void console_vma_close(struct vm_area_struct *vma)
{
	buffer_put(vma->vm_private_data);
}

const struct vm_operations_struct console_vm_ops = {
	.open = console_vma_open,
	.close = console_vma_close,
	.fault = console_fault,
};

/*
 * For a worker, or (@session NULL) the VM's owner; the caller has checked offset and length. Runs
 * under mmap_lock, which is below vgpu->lock: hence console.lock alone.
 */
int console_mmap(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		 struct vm_area_struct *vma)
{
	struct octavo_console_state *c = &vgpu->console;
	int ret;

	mutex_lock(&c->lock);
	ret = session && c->epoch.session != session ? -ENODEV : console_buffer(c);
	if (!ret) {
		kref_get(&c->buffer->ref);
		vma->vm_private_data = c->buffer;
		vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
		vma->vm_ops = &console_vm_ops;
	}
	mutex_unlock(&c->lock);
	return ret;
}

int console_access(struct octavo_vgpu_device *vgpu, u64 offset, u8 *data, u32 count, bool write)
{
	struct octavo_console_state *c = &vgpu->console;

	mutex_lock(&c->lock);
	if (!c->buffer) {
		if (!write)
			memset(data, 0, count);
	} else if (write) {
		memcpy((u8 *)c->buffer->pixels + offset, data, count);
		c->dirty = true;
	} else {
		memcpy(data, (u8 *)c->buffer->pixels + offset, count);
	}
	mutex_unlock(&c->lock);
	return 0;
}
