/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * octavo.h - the interface between octavo.ko and its two userspace partners
 *
 * This header is the manual of the interface. Two kinds of file descriptor exist:
 *
 *   control fd   open("/dev/octavo"), held by octavod, one holder at a time (EBUSY for a second).
 *                Registers parents, lists vGPUs, hands out session fds, reports openings.
 *   session fd   OCTAVO_SESSION_OPEN on the control fd; one per VFIO open of a vGPU, held by its
 *                worker (octavo-vgpu). Carries everything that one running device needs.
 *
 * The module answers every register access of a guest by itself: no guest access ever waits for
 * a holder of either descriptor. A worker that is stopped or dead costs the guest its pictures,
 * never a vCPU.
 *
 * What the guest sees: a virtio-gpu 1.x function, 1af4:1050 revision 1, class 0380
 *
 *   BAR0   32 KiB, 32-bit, trapped
 *          +0x0000  common configuration   struct virtio_pci_modern_common_cfg (virtio 1.3, 4.1.4.3)
 *          +0x1000  ISR status             1 byte, reading clears
 *          +0x2000  device configuration   struct virtio_gpu_config
 *          +0x3000  notify                 queue n at +0x3000 + 4 * n (notify_off_multiplier 4)
 *          +0x4000  MSI-X table            OCTAVO_VECTORS entries
 *          +0x5000  MSI-X pending bits
 *   BAR2   64-bit prefetchable, mapped: the memory window, the profile's VRAM share rounded up to
 *          a power of two, announced as shared memory region 1 (host visible memory)
 *
 *          0                    window_bytes
 *          |  blob  |   hole   |  blob  | hole |     hole: a scratch page of this open alone
 *
 *   one device-specific VFIO region behind the PCI regions: the console plane (see below)
 *
 * Doorbells. VFIO_DEVICE_IOEVENTFD binds an eventfd to the doorbell of a queue: whatever signals it
 * kicks the queue. A VM's owner gives the same eventfd to KVM (KVM_IOEVENTFD) for the doorbell's
 * address, and the guest's kicks come here without an exit to the owner. Size, offset and data are
 * those of the write that KVM matches:
 *
 *	size	1, 2 or 4 (virtio drivers write 2)	offset	BAR0 +0x3000 + 4 * queue, as a file offset
 *	data	any; with queue and size it is the binding's name	fd	an eventfd, -1 to let go
 *
 * Up to OCTAVO_IOEVENTFDS_MAX a vGPU. The module takes what is counted in the eventfd, also what it
 * held when it was bound. A binding lasts until fd -1, or the end of the VFIO open; resets leave it,
 * as they leave KVM's half. An eventfd that its holders have closed rings no more, and is to be let
 * go all the same. Errors: EINVAL a short argsz, unknown flags, no such size, no doorbell there, fd
 * below -1 or no eventfd; EBADF no such fd; EEXIST bound already; ENODEV (fd -1) not bound; ENOSPC
 * too many.
 *
 * Generations. A device's life between two resets is a generation. The guest's write of 0 to the
 * status register, VFIO_DEVICE_RESET and the open raise it. Every session ioctl that acts on the
 * guest carries the generation it was meant for and fails with ESTALE in another: what a worker had
 * under way when its guest was reset can never reach the guest's next life. From a reset until
 * OCTAVO_RESET_ACK the guest-memory window shows scratch only and guest-touching ioctls give ESTALE.
 *
 * Conventions. All ioctls return 0 or more for success, -1 with errno else. Reserved fields and
 * unknown flags must be zero (EINVAL). Sizes and addresses are bytes. Structures have no padding
 * that is not named. Every ioctl may fail with EFAULT (bad pointer), EINVAL (bad field), ENOTTY
 * (unknown request); a session ioctl with ENODEV once the vGPU was closed. Other errors stand beside
 * the request. All calls may be made from any thread.
 */
#ifndef OCTAVO_H
#define OCTAVO_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Raised by every incompatible change; the module, octavod and the worker must agree on it. */
#define OCTAVO_ABI_VERSION	1

#define OCTAVO_IOC_MAGIC	0xe9

#define OCTAVO_EIGHTHS		8	/* a whole GPU */
#define OCTAVO_QUEUES		2	/* 0 control, 1 cursor */
#define OCTAVO_QUEUE_SIZE_MAX	1024	/* descriptors; the guest may choose less, a power of two */
#define OCTAVO_IOEVENTFDS_MAX	8	/* eventfds bound to doorbells */
#define OCTAVO_VECTORS		3	/* one for configuration changes, one a queue */
#define OCTAVO_HEADS_MAX	4
#define OCTAVO_MODE_MIN		64	/* pixels, both directions */
#define OCTAVO_MODE_WIDTH_MAX	3840	/* pixels */
#define OCTAVO_MODE_HEIGHT_MAX	2160

#define OCTAVO_BAR0_BYTES	0x8000
#define OCTAVO_BAR0_COMMON	0x0000
#define OCTAVO_BAR0_ISR		0x1000
#define OCTAVO_BAR0_DEVICE	0x2000
#define OCTAVO_BAR0_NOTIFY	0x3000
#define OCTAVO_BAR0_MSIX_TABLE	0x4000
#define OCTAVO_BAR0_MSIX_PBA	0x5000
#define OCTAVO_NOTIFY_MULTIPLIER 4

#define OCTAVO_SHM_ID		1	/* VIRTIO_GPU_SHM_ID_HOST_VISIBLE */

/*
 * The console region: one plane of XRGB8888 pixels at offset 0, of a fixed size whatever is shown,
 * so that a user's mapping never changes. Both QEMU and the worker map it.
 */
#define OCTAVO_CONSOLE_BYTES	((__u64)OCTAVO_MODE_WIDTH_MAX * OCTAVO_MODE_HEIGHT_MAX * 4)

/* ------------------------------------------------------------------------------------------------
 * Control fd: parents
 */

/* octavo_parent.state */
enum {
	OCTAVO_PARENT_WAITING = 0,	/* no such PCI device now, or no driver bound to it */
	OCTAVO_PARENT_REGISTERED = 1,	/* its types are in /sys/bus/pci/devices/.../mdev_supported_types */
	OCTAVO_PARENT_REFUSED = 2,	/* see error */
};

/**
 * struct octavo_parent - a GPU that is to be folded
 * @domain, @bus, @devfn: PCI address; @devfn as PCI_DEVFN(slot, function)
 * @heads:	scanouts of each of its vGPUs, 1 to OCTAVO_HEADS_MAX
 * @vram_bytes:	memory to share out, at least 8 * 16 MiB; a vGPU of n eighths has
 *		vram_bytes * n / 8, rounded down to 1 MiB
 * @state:	out
 * @error:	out, positive errno of a refusal: EBUSY bound to vfio-pci, EEXIST the driver has mdev
 *		types of its own
 * @eighths_used: out, 0 to 8
 * @vgpus:	out, number of existing vGPUs
 */
struct octavo_parent {
	__u32 domain;
	__u8 bus;
	__u8 devfn;
	__u16 heads;
	__u64 vram_bytes;
	__u32 state;
	__u32 error;
	__u32 eighths_used;
	__u32 vgpus;
	__u32 flags;		/* 0 */
	__u32 reserved;
};

/*
 * Wants this PCI device as a parent from now on, whether or not it is there: its types appear when
 * a driver binds to it and go with the driver. Calling it again for the same device changes heads
 * and vram_bytes; EBUSY if they differ and vGPUs exist. The wish outlives the control fd, since a
 * restart of octavod must not take vGPUs away.
 * E2BIG: more than OCTAVO_PARENTS_MAX.
 */
#define OCTAVO_PARENT_ADD	_IOWR(OCTAVO_IOC_MAGIC, 0x01, struct octavo_parent)
#define OCTAVO_PARENTS_MAX	64

/* Takes the wish back. EBUSY while vGPUs exist on it, ENOENT when it was never added. */
#define OCTAVO_PARENT_REMOVE	_IOW(OCTAVO_IOC_MAGIC, 0x02, struct octavo_parent)

/**
 * struct octavo_parent_list - one entry of the parents, for enumeration
 * @index:	in, 0, 1, 2 ... until ENOENT
 */
struct octavo_parent_list {
	__u32 index;
	__u32 reserved;
	struct octavo_parent parent;
};
#define OCTAVO_PARENT_LIST	_IOWR(OCTAVO_IOC_MAGIC, 0x03, struct octavo_parent_list)

/* Returns OCTAVO_ABI_VERSION; the first call on a control fd and on a session fd. */
#define OCTAVO_GET_ABI		_IO(OCTAVO_IOC_MAGIC, 0x00)

/* ------------------------------------------------------------------------------------------------
 * Control fd: vGPUs
 */

/* octavo_vgpu.state */
enum {
	OCTAVO_VGPU_IDLE = 0,		/* created, no VFIO open */
	OCTAVO_VGPU_OPEN = 1,		/* a VM holds it and a worker serves it */
	OCTAVO_VGPU_UNSERVED = 2,	/* a VM holds it, no worker has the session */
	OCTAVO_VGPU_NEEDS_RESET = 3,	/* a worker is there, but the guest has yet to reset the device */
};

/**
 * struct octavo_counters - what happened to a vGPU since it was created; monotonic unless noted
 * @registers:		trapped accesses to BAR0 and configuration space
 * @kicks:		notify writes of the guest: trapped ones, which @registers counts too, and
 *			those that came by VFIO_DEVICE_IOEVENTFD
 * @interrupts:		eventfd signals towards the guest
 * @resets:		generations begun
 * @window_faults:	faults served in BAR2, whatever their size
 * @window_mapped:	bytes of BAR2 with something mapped, now
 * @guest_faults:	faults served in the guest-memory window
 * @guest_pinned:	pages of the guest pinned, now
 * @guest_errors:	accesses to guest memory that could not be served: unmapped IOVA, no permission,
 *			memlock limit
 * @workers:		session fds handed out
 */
struct octavo_counters {
	__u64 registers;
	__u64 kicks;
	__u64 interrupts;
	__u64 resets;
	__u64 window_faults;
	__u64 window_mapped;
	__u64 guest_faults;
	__u64 guest_pinned;
	__u64 guest_errors;
	__u64 workers;
};

/**
 * struct octavo_vgpu - one existing vGPU
 * @uuid:	the mdev's, in the byte order of its text form
 * @domain, @bus, @devfn: its parent
 * @eighths:	1, 2 or 4
 * @state:	OCTAVO_VGPU_*
 * @session:	number of the VFIO open, never used twice; 0 when idle
 * @opener_pid:	process that opened it, in the initial pid namespace; 0 when idle
 * @worker_pid:	process that holds the session fd's first mapping or made the last ioctl; 0 if none
 * @vram_bytes:	its share
 * @window_bytes: size of BAR2
 * @width, @height: preferred mode, pixels
 * @generation:	see the top of this header
 * @status:	virtio device status register
 * @driver_features: features that the guest's driver accepted
 */
struct octavo_vgpu {
	__u8 uuid[16];
	__u32 domain;
	__u8 bus;
	__u8 devfn;
	__u16 heads;
	__u32 eighths;
	__u32 state;
	__u64 session;
	__u32 opener_pid;
	__u32 worker_pid;
	__u64 vram_bytes;
	__u64 window_bytes;
	__u32 width;
	__u32 height;
	__u32 generation;
	__u32 status;
	__u64 driver_features;
	struct octavo_counters counters;
};

/**
 * struct octavo_vgpu_list - one entry of the vGPUs of all parents, for enumeration
 * @index:	in, 0, 1, 2 ... until ENOENT. The order is that of creation; a removal between two
 *		calls can hide an entry, so a caller that must not miss one reads events as well.
 */
struct octavo_vgpu_list {
	__u32 index;
	__u32 reserved;
	struct octavo_vgpu vgpu;
};
#define OCTAVO_VGPU_LIST	_IOWR(OCTAVO_IOC_MAGIC, 0x10, struct octavo_vgpu_list)

/**
 * struct octavo_vgpu_mode - preferred mode of one vGPU's head 0
 * @uuid:	which
 * @width, @height: pixels, OCTAVO_MODE_MIN to OCTAVO_MODE_*_MAX, @width a multiple of 8
 *
 * Kept in the module until the mdev is removed, so that it outlives worker and daemon; told to a
 * running worker as OCTAVO_EVENT_MODE. ENOENT: no such vGPU.
 */
struct octavo_vgpu_mode {
	__u8 uuid[16];
	__u32 width;
	__u32 height;
};
#define OCTAVO_VGPU_SET_MODE	_IOW(OCTAVO_IOC_MAGIC, 0x11, struct octavo_vgpu_mode)

/**
 * struct octavo_session_open - ask for the session fd of an open vGPU
 * @uuid:	which
 * @session:	the open that is meant
 *
 * Returns a new fd (O_CLOEXEC). EBUSY: a session fd of this open still exists; ESTALE: @session is
 * not the vGPU's open any more; ENOENT: no such vGPU.
 */
struct octavo_session_open {
	__u8 uuid[16];
	__u64 session;
};
#define OCTAVO_SESSION_OPEN	_IOW(OCTAVO_IOC_MAGIC, 0x12, struct octavo_session_open)

/*
 * Refuses an opening that is waiting for its worker, with a reason in the kernel's log line: the
 * VFIO open fails at once with ECONNREFUSED instead of after its time limit. ENOENT: no such vGPU;
 * ESTALE: no such opening waits; EINVAL: an empty or unprintable reason.
 */
struct octavo_session_refuse {
	__u8 uuid[16];
	__u64 session;
	char reason[64];	/* NUL terminated, printable ASCII */
};
#define OCTAVO_SESSION_REFUSE	_IOW(OCTAVO_IOC_MAGIC, 0x13, struct octavo_session_refuse)

/* octavo_control_event.type */
enum {
	OCTAVO_CONTROL_CREATED = 1,	/* an mdev was created */
	OCTAVO_CONTROL_REMOVED = 2,
	OCTAVO_CONTROL_OPENED = 3,	/* a VFIO open waits for a worker */
	OCTAVO_CONTROL_WORKER_GONE = 4,	/* the session fd was closed while the VM still holds the vGPU */
	OCTAVO_CONTROL_CLOSED = 5,	/* the VFIO open has ended; the worker was told and should end */
	OCTAVO_CONTROL_PARENT = 6,	/* a parent changed its state; uuid is zero */
	OCTAVO_CONTROL_STATE = 7,	/* octavo_vgpu.state is another one; not sent for opens and ends,
					   at most one per vGPU waits to be read */
};

/**
 * struct octavo_control_event - what read() on the control fd gives, whole records only
 *
 * Blocks unless O_NONBLOCK (EAGAIN); poll() gives POLLIN. A buffer smaller than one record is
 * EINVAL. A holder that starts late gets OPENED or WORKER_GONE for every open that has no worker.
 * If records had to be dropped (a holder that does not read), the next one read has @lost set:
 * list everything again.
 */
struct octavo_control_event {
	__u32 type;
	__u32 lost;
	__u8 uuid[16];
	__u64 session;
	__u32 pid;		/* OPENED: the opener */
	__u32 domain;		/* of the parent */
	__u8 bus;
	__u8 devfn;
	__u16 reserved16;
	__u32 reserved;
};

/* ------------------------------------------------------------------------------------------------
 * Session fd: device
 */

/* octavo_session_info.flags */
#define OCTAVO_SESSION_CONSOLE	(1u << 0)	/* somebody looks at the console region */

struct octavo_session_info {
	struct octavo_vgpu vgpu;
	__u64 console_bytes;
	__u32 flags;
	__u32 events_read;	/* virtio_gpu_config.events_read, as it stands */
	__u64 offered_features;	/* as offered by an earlier worker of this open, 0 if none */
	__u32 num_capsets;	/* likewise */
	__u32 reserved;
};
#define OCTAVO_SESSION_INFO	_IOR(OCTAVO_IOC_MAGIC, 0x20, struct octavo_session_info)

/**
 * struct octavo_offer - what the device is able to do, told once before OCTAVO_READY
 * @features:	virtio feature bits; VIRTIO_F_VERSION_1 must be among them, transport features other
 *		than RING_INDIRECT_DESC, RING_EVENT_IDX, VERSION_1 and ACCESS_PLATFORM must not (EINVAL)
 * @num_scanouts, @num_capsets: fields of virtio_gpu_config
 *
 * EBUSY when a guest's driver has already accepted features (FEATURES_OK) and the offer differs: a
 * replacement worker must take over what its predecessor promised (OCTAVO_SESSION_INFO tells).
 */
struct octavo_offer {
	__u64 features;
	__u32 num_scanouts;
	__u32 num_capsets;
};
#define OCTAVO_OFFER		_IOW(OCTAVO_IOC_MAGIC, 0x21, struct octavo_offer)

/* The worker serves: a waiting VFIO open completes. EINVAL before an offer was made. */
#define OCTAVO_READY		_IO(OCTAVO_IOC_MAGIC, 0x22)

/*
 * Everything that belonged to earlier generations is at rest in the worker; the guest-memory window
 * serves @generation from now on. ESTALE: there has been another reset since, whose event follows.
 */
struct octavo_generation {
	__u32 generation;
	__u32 reserved;
};
#define OCTAVO_RESET_ACK	_IOW(OCTAVO_IOC_MAGIC, 0x23, struct octavo_generation)

/* Sets DEVICE_NEEDS_RESET and raises a configuration interrupt. */
#define OCTAVO_FAIL		_IOW(OCTAVO_IOC_MAGIC, 0x24, struct octavo_generation)

/* Sets bits of virtio_gpu_config.events_read and raises a configuration interrupt. */
struct octavo_config_event {
	__u32 generation;
	__u32 events;		/* VIRTIO_GPU_EVENT_DISPLAY */
};
#define OCTAVO_CONFIG_EVENT	_IOW(OCTAVO_IOC_MAGIC, 0x25, struct octavo_config_event)

/* ------------------------------------------------------------------------------------------------
 * Session fd: queues
 */

/**
 * struct octavo_queue - a virtqueue as the guest set it up
 * @index:	in
 * @generation:	in
 * @size:	descriptors, a power of two up to OCTAVO_QUEUE_SIZE_MAX
 * @enabled:	0 or 1; the addresses mean something when 1
 * @desc, @driver, @device: IOVA of descriptor table, available ring, used ring; unchecked
 */
struct octavo_queue {
	__u32 index;
	__u32 generation;
	__u32 size;
	__u32 enabled;
	__u64 desc;
	__u64 driver;
	__u64 device;
};
#define OCTAVO_QUEUE_GET	_IOWR(OCTAVO_IOC_MAGIC, 0x30, struct octavo_queue)

/**
 * struct octavo_kick - eventfd that a guest's trapped notify write signals
 * @index:	queue
 * @fd:		eventfd, or -1 for none; the module holds a reference until replaced or closed.
 *		A kick that came while there was none signals at once.
 *
 * Kicks come in two ways, and a worker must heed both at any time. A notify write that traps to the
 * VM's owner signals this eventfd. Where the owner has bound the doorbell (VFIO_DEVICE_IOEVENTFD,
 * see below), the write ends in KVM and is read from the session fd as OCTAVO_EVENT_KICK.
 */
struct octavo_kick {
	__u32 index;
	__s32 fd;
};
#define OCTAVO_KICK_SET		_IOW(OCTAVO_IOC_MAGIC, 0x31, struct octavo_kick)

/**
 * struct octavo_interrupt - tell the guest that a queue has used buffers
 * @generation:	for which
 * @index:	queue
 *
 * Sets the ISR bit and signals the vector that the guest chose for this queue; silent when the guest
 * chose none. Never blocks.
 */
struct octavo_interrupt {
	__u32 generation;
	__u32 index;
};
#define OCTAVO_INTERRUPT	_IOW(OCTAVO_IOC_MAGIC, 0x32, struct octavo_interrupt)

/* ------------------------------------------------------------------------------------------------
 * Session fd: memory window (BAR2)
 */

/* octavo_window.caching: must equal the host mapping's */
enum {
	OCTAVO_CACHED = 0,
	OCTAVO_WRITE_COMBINED = 1,
};

/**
 * struct octavo_window - show a range of the caller's memory to the guest in BAR2
 * @generation:	for which
 * @caching:	OCTAVO_CACHED or OCTAVO_WRITE_COMBINED
 * @offset:	in BAR2, page aligned
 * @length:	page aligned, not 0, within the window
 * @addr:	in the caller's address space, page aligned; a writable shared mapping. Align both
 *		@offset and @addr to 2 MiB for huge mappings
 *
 * The page frames are captured in this call; the caller's mapping may go afterwards where it was
 * shared memory (its pages are pinned), and must stay where it was device memory (the range is given
 * up when the mapping changes in any way, OCTAVO_EVENT_WINDOW_LOST tells). Mapping over lost ranges
 * replaces them; until then the guest's accesses to one wait, 500 ms at most, and then see scratch.
 * One call maps one kind of memory.
 * Errors: EEXIST overlaps a mapped range; ERANGE outside the window; EFAULT the caller has no such
 * writable memory; EPERM the memory is neither shared memory nor a device's (private memory, or a
 * mapping of a vGPU: no window leads into another); EINVAL also when @caching is not that of a
 * device's memory; E2BIG more than 65536 ranges; ENOMEM.
 */
struct octavo_window {
	__u32 generation;
	__u32 caching;
	__u64 offset;
	__u64 length;
	__u64 addr;
};
#define OCTAVO_WINDOW_MAP	_IOW(OCTAVO_IOC_MAGIC, 0x40, struct octavo_window)

/*
 * Takes back exactly a range that was mapped (ENOENT else); the guest sees scratch when it returns.
 * @addr and @caching must be 0. Allowed in any generation: a reset has unmapped everything already.
 */
#define OCTAVO_WINDOW_UNMAP	_IOW(OCTAVO_IOC_MAGIC, 0x41, struct octavo_window)

/* ------------------------------------------------------------------------------------------------
 * Session fd: guest memory
 *
 * mmap() of the session fd at offset = IOVA, MAP_SHARED, anywhere below OCTAVO_GUEST_BYTES, is the
 * guest-memory window: one mapping of the whole range is the intended use and costs nothing until
 * touched. A page is pinned by its first access. An IOVA that the guest does not have, or a write to
 * a read-only one, shows a scratch page and counts in octavo_status.guest_errors; nothing raises
 * SIGBUS. Scratch stays where it was shown, and later accesses to it are not counted, until
 * OCTAVO_GUEST_PIN or OCTAVO_GUEST_DROP touch the page: what must be right is pinned first.
 * What VFIO has just unmapped is not pinned again for 10 ms, longer if it has to ask again; whoever
 * accesses it meanwhile waits.
 * Old pins are evicted when there are too many: by the module parameter guest_pin_pages, or for the
 * opener's memlock limit. The kernel cannot pin this mapping (io_uring's fixed buffers, O_DIRECT:
 * EFAULT), but copies from and to it.
 */
#define OCTAVO_GUEST_BYTES	(1ULL << 46)

/**
 * struct octavo_guest_range - pin guest memory ahead of a bulk access
 * @generation:	for which
 * @flags:	OCTAVO_GUEST_WRITE when the worker will write
 * @iova:	any alignment
 * @length:	not 0, at most OCTAVO_GUEST_PIN_MAX
 *
 * Makes the pages of the range present in the window, so that the accesses that follow are known to
 * be good until the guest unmaps them. There is no unpin for it to pair with: pages stay until they
 * are evicted, unmapped or dropped. Errors: EFAULT not (all) mapped by the guest, or a BAR; EACCES
 * read-only for the guest's devices; ENOMEM the opener's memlock limit does not hold the range at
 * once; E2BIG.
 */
struct octavo_guest_range {
	__u32 generation;
	__u32 flags;
	__u64 iova;
	__u64 length;
};
#define OCTAVO_GUEST_WRITE	(1u << 0)
#define OCTAVO_GUEST_PIN_MAX	(2ULL << 20)
#define OCTAVO_GUEST_PIN	_IOW(OCTAVO_IOC_MAGIC, 0x50, struct octavo_guest_range)

/*
 * Unpins the pages of the range and takes them out of the window; scratch pages too, so that memory
 * which the guest has added since becomes visible. @length any, 0 with @iova 0 for everything.
 */
#define OCTAVO_GUEST_DROP	_IOW(OCTAVO_IOC_MAGIC, 0x51, struct octavo_guest_range)

/* mmap() offsets beside guest memory */
#define OCTAVO_MMAP_CONSOLE	(1ULL << 60)			/* OCTAVO_CONSOLE_BYTES, read-write */
#define OCTAVO_MMAP_STATUS	((1ULL << 60) + (1ULL << 40))	/* one page, read-only */

/**
 * struct octavo_status - the read-only page at OCTAVO_MMAP_STATUS
 * @generation:	now; compare before acting on something read earlier
 * @guest_errors: pages of the guest-memory window at which this session's accesses met scratch;
 *		it grew during a copy: the copy is wrong
 */
struct octavo_status {
	__u32 generation;
	__u32 reserved;
	__u64 guest_errors;
};

/* ------------------------------------------------------------------------------------------------
 * Session fd: console
 */

/**
 * struct octavo_console - what head 0 shows, as told to VFIO_DEVICE_QUERY_GFX_PLANE
 * @generation:	for which
 * @width, @height: pixels, up to OCTAVO_MODE_*_MAX; 0 x 0: no plane (QEMU shows its ramfb, if any)
 * @stride:	bytes a line, at least 4 * @width; height * stride within OCTAVO_CONSOLE_BYTES
 *
 * Format is XRGB8888 at offset 0 of the region. A reset sets no plane and clears the region to black.
 */
struct octavo_console {
	__u32 generation;
	__u32 width;
	__u32 height;
	__u32 stride;
};
#define OCTAVO_CONSOLE_SET	_IOW(OCTAVO_IOC_MAGIC, 0x60, struct octavo_console)

/* ------------------------------------------------------------------------------------------------
 * Session fd: events
 */

/* octavo_event.type */
enum {
	OCTAVO_EVENT_RESET = 1,		/* a new generation; stop, clear, then OCTAVO_RESET_ACK */
	OCTAVO_EVENT_STATUS = 2,	/* value: the status register; not for resets */
	OCTAVO_EVENT_QUEUE = 3,		/* value: index of a queue that was enabled: OCTAVO_QUEUE_GET */
	OCTAVO_EVENT_CONFIG = 4,	/* value: events_clear that the guest wrote (already applied) */
	OCTAVO_EVENT_UNMAPPED = 5,	/* guest memory vanished; start, length; window already zapped */
	OCTAVO_EVENT_MODE = 6,		/* preferred mode changed: start width, length height */
	OCTAVO_EVENT_CONSOLE = 7,	/* value 1: somebody looks at the console from now on */
	OCTAVO_EVENT_WINDOW_LOST = 8,	/* device memory behind BAR2 moved: start, length; map it again */
	OCTAVO_EVENT_CLOSED = 9,	/* the VM is gone; after it read() gives 0 and poll() POLLHUP */
	OCTAVO_EVENT_KICK = 10,		/* value: queue whose kick came by VFIO_DEVICE_IOEVENTFD */
};

/**
 * struct octavo_event - what read() on the session fd gives, whole records only
 *
 * Kept as state, not as a list: a guest that toggles a register a million times leaves one record
 * with the last value, and ranges of UNMAPPED are merged to one that covers them. Hence no loss and
 * no growth. RESET comes before everything of its generation, CLOSED last. Blocking as for the
 * control fd.
 */
struct octavo_event {
	__u32 type;
	__u32 generation;
	__u64 value;
	__u64 start;
	__u64 length;
};

#endif /* OCTAVO_H */
