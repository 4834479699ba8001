// SPDX-License-Identifier: GPL-2.0-only
/*
 * doorbell.c - doorbells that the VM's owner has bound to eventfds (VFIO_DEVICE_IOEVENTFD)
 *
 * The owner gives KVM the same eventfd for the doorbell's address. A guest's kick is then told here
 * from within KVM's exit, and neither returns to the owner nor takes vgpu->lock.
 *
 * It is told in the wake-up callback of that eventfd, with its lock held and interrupts off, perhaps
 * from hard interrupt context: the owner may hand one eventfd to anything. There the kick eventfd of
 * the worker cannot be signalled (a wake-up of one eventfd must not signal another:
 * eventfd_signal_allowed()), and no lock of ours taken. A work item would cost one more switch of
 * threads on the very way that this shortens. So the kick is a bit in the session's events, and the
 * wait queue of the session fd, which is no eventfd's, is woken up.
 */
#include "trace.h"
#include "vgpu.h"

/* Returns false: there is nothing that has to run in a thread. */
static int doorbell_rung(void *opaque, void *unused)
{
	struct octavo_doorbell *doorbell = opaque;
	struct octavo_vgpu_device *vgpu = doorbell->vgpu;

	trace_octavo_kick(vgpu->open_id, doorbell->queue);
	atomic64_inc(&vgpu->counters.kicks);
	events_kick(vgpu, doorbell->queue);
	return false;
}

/* The caller holds vgpu->lock. After it the eventfd is let go and rings nothing any more. */
static void doorbell_release(struct octavo_doorbell *doorbell)
{
	/* also waits for an eventfd whose last user has closed it, and which is on its way out */
	vfio_virqfd_disable(&doorbell->virqfd);
	doorbell->size = 0;
}

/*
 * Finds the queue whose doorbell a write of @size bytes at @offset of BAR0 rings. One of 8 bytes
 * would cover two doorbells.
 */
static int doorbell_queue(u64 offset, u32 size)
{
	u64 at = offset - OCTAVO_BAR0_NOTIFY;

	if (size > OCTAVO_NOTIFY_MULTIPLIER || at % OCTAVO_NOTIFY_MULTIPLIER ||
	    at / OCTAVO_NOTIFY_MULTIPLIER >= OCTAVO_QUEUES)
		return -EINVAL;
	return (int)(at / OCTAVO_NOTIFY_MULTIPLIER);
}

/*
 * Binds, or with @fd -1 releases, an eventfd for writes of @data in @size bytes at @offset of BAR0.
 * The doorbell itself does not look at data; it tells apart what the owner has given to KVM.
 */
int doorbell_set(struct octavo_vgpu_device *vgpu, u64 offset, u32 size, u64 data, s32 fd)
{
	int queue = doorbell_queue(offset, size);
	struct octavo_doorbell *free = NULL, *doorbell;
	unsigned int i;
	int ret;

	lockdep_assert_held(&vgpu->lock);
	if (queue < 0)
		return queue;
	for (i = 0; i < ARRAY_SIZE(vgpu->doorbells); i++) {
		doorbell = &vgpu->doorbells[i];
		if (!doorbell->size) {
			free = doorbell;
			continue;
		}
		if (doorbell->queue != queue || doorbell->size != size || doorbell->data != data)
			continue;
		if (fd >= 0)
			return -EEXIST;
		doorbell_release(doorbell);
		return 0;
	}
	if (fd < 0)
		return -ENODEV;
	if (!free)
		return -ENOSPC;
	free->vgpu = vgpu;
	free->queue = (u32)queue;
	free->data = data;
	ret = vfio_virqfd_enable(free, doorbell_rung, NULL, NULL, &free->virqfd, fd);
	if (!ret)
		free->size = size;
	return ret;
}

/* The VFIO open ends. Resets leave bindings as they are, since KVM's half stays as well. */
void doorbell_close(struct octavo_vgpu_device *vgpu)
{
	unsigned int i;

	lockdep_assert_held(&vgpu->lock);
	for (i = 0; i < ARRAY_SIZE(vgpu->doorbells); i++)
		if (vgpu->doorbells[i].size)
			doorbell_release(&vgpu->doorbells[i]);
}
