/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vgpu.h - what the files of octavo.ko share
 *
 * Lock order, outermost first:
 *
 *	device_lock of the parent's PCI device	(registration of parents)
 *	vgpus_lock				the list of vGPUs
 *	vgpu->lock				registers, configuration space, who holds what
 *	guest.lock				guest-memory window
 *	  type1's iommu->lock, the opener's mmap_lock (through vfio_pin_pages)
 *	window.fault_lock			one fault of BAR2 at a time
 *	window.lock				BAR2; a leaf: under it no wait on anybody's mm and no
 *						allocation; invalidations of the worker's mm take it
 *	parents_lock, console.lock, events.lock, irq.lock, control.lock: leaves
 *
 * mmap_lock of anybody stands below guest.lock, and so vgpu->lock: mmap and fault handlers take only
 * window.lock, fault_lock and console.lock. A fault of the worker takes guest.lock by trylock only, and pins with its own mmap_lock released,
 * so that guest.lock may be held over pins whoever maps the window. type1 calls dma_unmap with
 * its device_list_lock held, which stands above guest.lock.
 */
#ifndef OCTAVO_VGPU_H
#define OCTAVO_VGPU_H

#include <linux/atomic.h>
#include <linux/eventfd.h>
#include <linux/interval_tree.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mdev.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/uuid.h>
#include <linux/vfio.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "octavo.h"

#define OCTAVO_TYPES		3
#define OCTAVO_VRAM_UNIT	(1ULL << 20)
#define OCTAVO_VRAM_MIN		(8 * (16ULL << 20))
#define OCTAVO_VRAM_MAX		(1ULL << 40)

#define OCTAVO_REGION_SHIFT	40
#define OCTAVO_REGION_MASK	((1ULL << OCTAVO_REGION_SHIFT) - 1)
#define OCTAVO_REGION_CONSOLE	VFIO_PCI_NUM_REGIONS
#define OCTAVO_REGIONS		(VFIO_PCI_NUM_REGIONS + 1)

struct octavo_session;
struct octavo_vgpu_device;

/* ------------------------------------------------------------------------------------------------
 * Parents and types
 */

struct octavo_type {
	struct mdev_type mdev;
	u32 eighths;
};

/*
 * One stay of a parent with the mdev core. It lives until the core has let go of its types: the core
 * reads type->parent when the last reference to a child goes, which may be after unregistration.
 */
struct octavo_registration {
	struct list_head node;
	struct mdev_parent mdev;
	struct octavo_type types[OCTAVO_TYPES];
	struct mdev_type *type_list[OCTAVO_TYPES];
	struct octavo_gpu *gpu;
};

/* A GPU that octavod wants folded, present or not; fields under parents_lock unless constant. */
struct octavo_gpu {
	struct kref ref;
	struct list_head node;
	u32 domain;
	u8 bus;
	u8 devfn;
	u16 heads;
	u64 vram_bytes;
	u32 state;
	u32 error;
	u32 eighths_used;
	u32 vgpus;
	bool leaving;
	struct octavo_registration *registration;
};

int parents_init(void);
void parents_exit(void);
int parent_add(struct octavo_parent *wish);
int parent_remove(const struct octavo_parent *wish);
int parent_list(struct octavo_parent_list *entry);

struct octavo_gpu *gpu_get(struct octavo_gpu *gpu);
void gpu_put(struct octavo_gpu *gpu);
int gpu_claim(struct octavo_gpu *gpu, u32 eighths, u16 *heads, u64 *vram_bytes,
	      const guid_t *uuid);
void gpu_unclaim(struct octavo_gpu *gpu, u32 eighths);
void gpu_share(struct octavo_gpu *gpu, u32 *eighths_free, u16 *heads, u64 *vram_bytes);

extern struct mdev_driver octavo_mdev_driver;
void types_init(struct octavo_registration *registration);
unsigned int type_available(struct mdev_type *mtype);
ssize_t type_description(struct mdev_type *mtype, char *buf);
const char *type_name(u32 eighths);

/* ------------------------------------------------------------------------------------------------
 * Control fd
 */

int control_init(void);
void control_exit(void);
bool control_present(void);
void control_post(u32 type, struct octavo_vgpu_device *vgpu, u64 session, u32 pid);
void control_post_parent(const struct octavo_gpu *gpu);

/* ------------------------------------------------------------------------------------------------
 * One vGPU
 */

/* Which session a part serves, and which life of the guest; under the part's own lock. */
struct octavo_epoch {
	struct octavo_session *session;
	u32 generation;
	bool live;		/* acknowledged: the worker is at rest and serves @generation */
};

struct octavo_irq {
	spinlock_t lock;
	struct octavo_epoch epoch;
	struct eventfd_ctx *msix[OCTAVO_VECTORS];
	struct eventfd_ctx *err;
	struct eventfd_ctx *req;
	struct eventfd_ctx *kick[OCTAVO_QUEUES];
	bool kicked[OCTAVO_QUEUES];
	u8 isr;
	u16 config_vector;
	u16 queue_vector[OCTAVO_QUEUES];
};

/* One eventfd of the VM's owner; @size 0: none. Under vgpu->lock, but for what rings. */
struct octavo_doorbell {
	struct octavo_vgpu_device *vgpu;
	struct virqfd *virqfd;
	u32 queue;
	u32 size;
	u64 data;
};

struct octavo_events {
	spinlock_t lock;
	wait_queue_head_t wait;
	unsigned long kicks;	/* bit per queue; atomic, without the lock */
	u32 generation;
	u32 pending;		/* bit per OCTAVO_EVENT_* */
	u32 queues;		/* bit per queue */
	u32 status;
	u32 config;
	u32 width;
	u32 height;
	u64 unmapped_start;
	u64 unmapped_last;
	u64 lost_start;
	u64 lost_last;
	bool closed;		/* CLOSED was read */
};

struct octavo_registers {
	u32 device_feature_select;
	u32 driver_feature_select;
	u64 driver_features;
	u16 queue_select;
	u8 status;
	u8 config_generation;
	u32 events_read;
	struct {
		u64 desc;
		u64 driver;
		u64 device;
		u16 size;
		bool enabled;
	} queue[OCTAVO_QUEUES];
};

/* BAR2; interval tree over pages of the window */
struct octavo_window_state {
	struct mutex lock;
	struct mutex fault_lock;
	struct octavo_epoch epoch;
	struct rb_root_cached ranges;
	u32 count;
	struct page *scratch;
	u32 changes;			/* counts what can end the wait for a lost range */
	wait_queue_head_t wait;
};

/* guest memory as the worker sees it */
struct octavo_guest {
	struct mutex lock;
	struct octavo_epoch epoch;
	struct xarray pages;		/* page of IOVA -> struct guest_pin, or a value for scratch */
	struct list_head pins;		/* least recently used first */
	struct address_space *mapping;	/* of the session fd */
	u64 pinned;			/* pages */
	u64 allowed;			/* pages, after the opener's memlock limit refused more ... */
	unsigned long refused;		/* ... at this time, jiffies */
	struct {			/* what VFIO was last seen to unmap, see guest_unmapped() */
		unsigned long first;
		unsigned long last;
		unsigned long until;	/* jiffies; nothing of it is pinned before */
		unsigned int tries;
	} leaving;
	u32 scratched;			/* scratch entries in @pages */
};

struct octavo_console_buffer;

struct octavo_console_state {
	struct mutex lock;
	struct octavo_epoch epoch;
	struct octavo_console_buffer *buffer;
	u32 width;
	u32 height;
	u32 stride;
	bool dirty;
	bool watched;
};

struct octavo_vgpu_device {
	struct vfio_device vdev;
	struct list_head node;		/* vgpus_lock */
	struct octavo_gpu *gpu;
	guid_t uuid;
	u32 eighths;
	u16 heads;
	u64 vram_bytes;
	u64 window_bytes;

	struct mutex lock;
	u64 open_id;			/* of the VFIO open, 0 when closed */
	u32 opener_pid;
	bool waiting;			/* open_device waits for a worker */
	bool ready;
	bool orphaned;			/* a worker died under a running guest */
	u32 told_state;			/* as octavod knows it, by whichever event */
	char refusal[64];
	wait_queue_head_t ready_wait;
	struct octavo_session *session;
	u32 generation;
	bool acked;
	bool offered;
	u64 offered_features;
	u32 num_scanouts;
	u32 num_capsets;
	u32 width;
	u32 height;
	struct octavo_registers regs;
	u8 config[PCI_CFG_SPACE_SIZE];

	struct octavo_irq irq;
	struct octavo_doorbell doorbells[OCTAVO_IOEVENTFDS_MAX];
	struct octavo_events events;
	struct octavo_window_state window;
	struct octavo_guest guest;
	struct octavo_console_state console;

	struct {
		atomic64_t registers;
		atomic64_t kicks;
		atomic64_t interrupts;
		atomic64_t resets;
		atomic64_t window_faults;
		atomic64_t window_mapped;
		atomic64_t guest_faults;
		atomic64_t guest_errors;
		atomic64_t workers;
	} counters;
};

struct octavo_session {
	struct octavo_vgpu_device *vgpu;
	u64 open_id;
	struct file *file;		/* no reference: this lives shorter than the file */
	u32 pid;
	struct page *scratch;
	struct page *status_page;
	struct octavo_status *status;
};

static inline struct octavo_vgpu_device *vgpu_from_vdev(struct vfio_device *vdev)
{
	return container_of(vdev, struct octavo_vgpu_device, vdev);
}

/* guid_t stores its first three fields little-endian; the interface has the order of the text. */
static inline void uuid_from_guid(u8 out[16], const guid_t *guid)
{
	static const u8 order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	unsigned int i;

	for (i = 0; i < 16; i++)
		out[i] = guid->b[order[i]];
}

/* vgpu.c */
extern struct mutex vgpus_lock;
extern struct list_head vgpus;
struct octavo_vgpu_device *vgpu_find(const u8 uuid[16]);
void vgpu_put(struct octavo_vgpu_device *vgpu);
void vgpu_tell_state(struct octavo_vgpu_device *vgpu);
void vgpu_describe(struct octavo_vgpu_device *vgpu, struct octavo_vgpu *out);
void vgpu_reset(struct octavo_vgpu_device *vgpu);
void vgpu_session_attach(struct octavo_vgpu_device *vgpu, struct octavo_session *session);
void vgpu_session_detach(struct octavo_vgpu_device *vgpu, struct octavo_session *session);
void vgpu_acknowledge(struct octavo_vgpu_device *vgpu);
int vgpu_set_mode(const struct octavo_vgpu_mode *mode);
int vgpu_refuse(const struct octavo_session_refuse *refuse);
int vgpu_open(struct octavo_vgpu_device *vgpu);
void vgpu_close(struct octavo_vgpu_device *vgpu);
void vgpu_request(struct octavo_vgpu_device *vgpu, unsigned int count);

/* device.c */
extern const struct vfio_device_ops octavo_vfio_ops;

/* epoch, in session.c */
int epoch_check(const struct octavo_epoch *epoch, const struct octavo_session *session,
		u32 generation);

/* config.c */
void config_init(struct octavo_vgpu_device *vgpu);
void config_read(struct octavo_vgpu_device *vgpu, u32 offset, u8 *data, u32 count);
void config_write(struct octavo_vgpu_device *vgpu, u32 offset, const u8 *data, u32 count);

/* registers.c; vgpu->lock held */
void registers_reset(struct octavo_vgpu_device *vgpu);
void registers_read(struct octavo_vgpu_device *vgpu, u32 offset, u8 *data, u32 count);
void registers_write(struct octavo_vgpu_device *vgpu, u32 offset, const u8 *data, u32 count);

/* irq.c */
void irq_init(struct octavo_vgpu_device *vgpu);
void irq_reset(struct octavo_vgpu_device *vgpu, u32 generation);
void irq_close(struct octavo_vgpu_device *vgpu);
void irq_serve(struct octavo_vgpu_device *vgpu, struct octavo_session *session, bool live);
int irq_info(struct octavo_vgpu_device *vgpu, struct vfio_irq_info *info);
int irq_set(struct octavo_vgpu_device *vgpu, const struct vfio_irq_set *set, const void *data);
u32 irq_vectors(u32 index);
int irq_queue(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	      const struct octavo_interrupt *interrupt);
void irq_config(struct octavo_vgpu_device *vgpu);
void irq_kick(struct octavo_vgpu_device *vgpu, u32 queue);
int irq_kick_set(struct octavo_vgpu_device *vgpu, const struct octavo_kick *kick);
void irq_request(struct octavo_vgpu_device *vgpu);
u8 irq_isr_take(struct octavo_vgpu_device *vgpu);

/* doorbell.c; vgpu->lock held */
int doorbell_set(struct octavo_vgpu_device *vgpu, u64 offset, u32 size, u64 data, s32 fd);
void doorbell_close(struct octavo_vgpu_device *vgpu);

/* events.c */
void events_init(struct octavo_vgpu_device *vgpu);
void events_kick(struct octavo_vgpu_device *vgpu, u32 queue);
void events_restart(struct octavo_vgpu_device *vgpu, u32 generation, bool announce_reset);
void events_post(struct octavo_vgpu_device *vgpu, u32 type, u64 value, u64 start, u64 length);
ssize_t events_read(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		    char __user *buf, size_t count, bool nonblock);
__poll_t events_poll(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		     struct file *file, struct poll_table_struct *table);

/* window.c */
void window_init(struct octavo_vgpu_device *vgpu);
int window_open(struct octavo_vgpu_device *vgpu);
void window_close(struct octavo_vgpu_device *vgpu);
void window_reset(struct octavo_vgpu_device *vgpu, u32 generation);
void window_serve(struct octavo_vgpu_device *vgpu, struct octavo_session *session, bool live);
int window_map(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	       const struct octavo_window *request);
int window_unmap(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		 const struct octavo_window *request);
int window_mmap(struct octavo_vgpu_device *vgpu, struct vm_area_struct *vma);
int window_access(struct octavo_vgpu_device *vgpu, u64 offset, u8 *data, u32 count, bool write);
bool window_vma_is_vgpu(const struct vm_area_struct *vma);

/* guest.c */
extern const struct vm_operations_struct guest_vm_ops;
void guest_init(struct octavo_vgpu_device *vgpu);
void guest_finish(struct octavo_vgpu_device *vgpu);
void guest_reset(struct octavo_vgpu_device *vgpu, u32 generation);
void guest_attach(struct octavo_vgpu_device *vgpu, struct octavo_session *session);
void guest_detach(struct octavo_vgpu_device *vgpu);
void guest_serve(struct octavo_vgpu_device *vgpu);
void guest_unmapped(struct octavo_vgpu_device *vgpu, u64 iova, u64 length);
int guest_pin(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	      const struct octavo_guest_range *range);
int guest_drop(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	       const struct octavo_guest_range *range);

/* console.c */
extern const struct vm_operations_struct console_vm_ops;
void console_init(struct octavo_vgpu_device *vgpu);
void console_close(struct octavo_vgpu_device *vgpu);
void console_reset(struct octavo_vgpu_device *vgpu, u32 generation);
void console_serve(struct octavo_vgpu_device *vgpu, struct octavo_session *session, bool live);
int console_set(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		const struct octavo_console *console);
int console_mmap(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		 struct vm_area_struct *vma);
int console_query(struct octavo_vgpu_device *vgpu, struct vfio_device_gfx_plane_info *plane);
int console_access(struct octavo_vgpu_device *vgpu, u64 offset, u8 *data, u32 count, bool write);
void console_watch(struct octavo_vgpu_device *vgpu);

/* session.c */
int session_open(const struct octavo_session_open *request);

#endif /* OCTAVO_VGPU_H */
