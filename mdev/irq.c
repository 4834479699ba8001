// SPDX-License-Identifier: GPL-2.0-only
/*
 * irq.c - interrupts towards the guest, kicks towards the worker
 *
 * QEMU emulates the MSI-X table and gives one eventfd a vector; there is no INTx pin. The ERR and
 * REQ interrupts of VFIO are eventfds of the VM's owner. Everything here is under one spinlock, so
 * that a worker's interrupt never waits for a reset in progress.
 */
#include <linux/file.h>
#include <uapi/linux/virtio_config.h>
#include <uapi/linux/virtio_pci.h>

#include "trace.h"
#include "vgpu.h"

#define ISR_QUEUE	0x1
#define ISR_CONFIG	0x2

void irq_init(struct octavo_vgpu_device *vgpu)
{
	spin_lock_init(&vgpu->irq.lock);
	irq_reset(vgpu, 0);
}

void irq_reset(struct octavo_vgpu_device *vgpu, u32 generation)
{
	struct octavo_irq *irq = &vgpu->irq;
	unsigned int i;

	spin_lock(&irq->lock);
	irq->epoch.generation = generation;
	irq->epoch.live = false;
	irq->isr = 0;
	irq->config_vector = VIRTIO_MSI_NO_VECTOR;
	for (i = 0; i < OCTAVO_QUEUES; i++) {
		irq->queue_vector[i] = VIRTIO_MSI_NO_VECTOR;
		irq->kicked[i] = false;
	}
	spin_unlock(&irq->lock);
}

void irq_serve(struct octavo_vgpu_device *vgpu, struct octavo_session *session, bool live)
{
	spin_lock(&vgpu->irq.lock);
	vgpu->irq.epoch.session = session;
	vgpu->irq.epoch.live = live;
	spin_unlock(&vgpu->irq.lock);
}

static struct eventfd_ctx **irq_eventfds(struct octavo_irq *irq, u32 index)
{
	switch (index) {
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return irq->msix;
	case VFIO_PCI_ERR_IRQ_INDEX:
		return &irq->err;
	case VFIO_PCI_REQ_IRQ_INDEX:
		return &irq->req;
	default:
		return NULL;
	}
}

u32 irq_vectors(u32 index)
{
	switch (index) {
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return OCTAVO_VECTORS;
	case VFIO_PCI_ERR_IRQ_INDEX:
	case VFIO_PCI_REQ_IRQ_INDEX:
		return 1;
	default:
		return 0;
	}
}

int irq_info(struct octavo_vgpu_device *vgpu, struct vfio_irq_info *info)
{
	if (info->index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	info->count = irq_vectors(info->index);
	info->flags = info->count ? VFIO_IRQ_INFO_EVENTFD : 0;
	if (info->index == VFIO_PCI_MSIX_IRQ_INDEX)
		info->flags |= VFIO_IRQ_INFO_NORESIZE;
	return 0;
}

/* Replaces one eventfd (NULL for none) and drops the old one. */
static void irq_replace(struct octavo_irq *irq, struct eventfd_ctx **slot, struct eventfd_ctx *ctx)
{
	spin_lock(&irq->lock);
	swap(*slot, ctx);
	spin_unlock(&irq->lock);
	if (ctx)
		eventfd_ctx_put(ctx);
}

static void irq_trigger(struct octavo_irq *irq, struct eventfd_ctx **slot)
{
	spin_lock(&irq->lock);
	if (*slot)
		eventfd_signal(*slot);
	spin_unlock(&irq->lock);
}

/* The caller (device.c) has had the core validate @set against irq_vectors(). */
int irq_set(struct octavo_vgpu_device *vgpu, const struct vfio_irq_set *set, const void *data)
{
	struct octavo_irq *irq = &vgpu->irq;
	struct eventfd_ctx **slots = irq_eventfds(irq, set->index);
	u32 i;

	if (!slots)
		return -EINVAL;
	if ((set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) != VFIO_IRQ_SET_ACTION_TRIGGER)
		return -ENOTTY;

	switch (set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_NONE:
		if (!set->count) {
			/* the documented way to take all of an index down */
			for (i = 0; i < irq_vectors(set->index); i++)
				irq_replace(irq, &slots[i], NULL);
			return 0;
		}
		for (i = 0; i < set->count; i++)
			irq_trigger(irq, &slots[set->start + i]);
		return 0;
	case VFIO_IRQ_SET_DATA_BOOL:
		for (i = 0; i < set->count; i++)
			if (((const u8 *)data)[i])
				irq_trigger(irq, &slots[set->start + i]);
		return 0;
	case VFIO_IRQ_SET_DATA_EVENTFD:
		for (i = 0; i < set->count; i++) {
			s32 fd = ((const s32 *)data)[i];
			struct eventfd_ctx *ctx = NULL;

			if (fd < -1)
				return -EINVAL;
			if (fd >= 0) {
				ctx = eventfd_ctx_fdget(fd);
				if (IS_ERR(ctx))
					return (int)PTR_ERR(ctx);
			}
			irq_replace(irq, &slots[set->start + i], ctx);
		}
		return 0;
	default:
		return -EINVAL;
	}
}

void irq_close(struct octavo_vgpu_device *vgpu)
{
	struct octavo_irq *irq = &vgpu->irq;
	unsigned int i;

	for (i = 0; i < OCTAVO_VECTORS; i++)
		irq_replace(irq, &irq->msix[i], NULL);
	irq_replace(irq, &irq->err, NULL);
	irq_replace(irq, &irq->req, NULL);
	for (i = 0; i < OCTAVO_QUEUES; i++)
		irq_replace(irq, &irq->kick[i], NULL);
}

static void irq_raise(struct octavo_vgpu_device *vgpu, u16 vector, u8 isr)
{
	struct octavo_irq *irq = &vgpu->irq;

	lockdep_assert_held(&irq->lock);
	trace_octavo_interrupt(vgpu->open_id, vector);
	irq->isr |= isr;
	if (vector < OCTAVO_VECTORS && irq->msix[vector]) {
		eventfd_signal(irq->msix[vector]);
		atomic64_inc(&vgpu->counters.interrupts);
	}
}

int irq_queue(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
	      const struct octavo_interrupt *interrupt)
{
	struct octavo_irq *irq = &vgpu->irq;
	int ret;

	if (interrupt->index >= OCTAVO_QUEUES)
		return -EINVAL;
	spin_lock(&irq->lock);
	ret = epoch_check(&irq->epoch, session, interrupt->generation);
	if (!ret)
		irq_raise(vgpu, irq->queue_vector[interrupt->index], ISR_QUEUE);
	spin_unlock(&irq->lock);
	return ret;
}

void irq_config(struct octavo_vgpu_device *vgpu)
{
	struct octavo_irq *irq = &vgpu->irq;

	spin_lock(&irq->lock);
	irq_raise(vgpu, irq->config_vector, ISR_CONFIG);
	spin_unlock(&irq->lock);
}

u8 irq_isr_take(struct octavo_vgpu_device *vgpu)
{
	u8 isr;

	spin_lock(&vgpu->irq.lock);
	isr = vgpu->irq.isr;
	vgpu->irq.isr = 0;
	spin_unlock(&vgpu->irq.lock);
	return isr;
}

void irq_kick(struct octavo_vgpu_device *vgpu, u32 queue)
{
	struct octavo_irq *irq = &vgpu->irq;

	trace_octavo_kick(vgpu->open_id, queue);
	spin_lock(&irq->lock);
	if (irq->kick[queue])
		eventfd_signal(irq->kick[queue]);
	else
		irq->kicked[queue] = true;
	spin_unlock(&irq->lock);
	atomic64_inc(&vgpu->counters.kicks);
}

/* The caller holds vgpu->lock, so the session cannot change meanwhile. */
int irq_kick_set(struct octavo_vgpu_device *vgpu, const struct octavo_kick *kick)
{
	struct octavo_irq *irq = &vgpu->irq;
	struct eventfd_ctx *ctx = NULL;

	if (kick->index >= OCTAVO_QUEUES || kick->fd < -1)
		return -EINVAL;
	if (kick->fd >= 0) {
		ctx = eventfd_ctx_fdget(kick->fd);
		if (IS_ERR(ctx))
			return (int)PTR_ERR(ctx);
	}
	spin_lock(&irq->lock);
	swap(irq->kick[kick->index], ctx);
	if (irq->kick[kick->index] && irq->kicked[kick->index]) {
		irq->kicked[kick->index] = false;
		eventfd_signal(irq->kick[kick->index]);
	}
	spin_unlock(&irq->lock);
	if (ctx)
		eventfd_ctx_put(ctx);
	return 0;
}

void irq_request(struct octavo_vgpu_device *vgpu)
{
	irq_trigger(&vgpu->irq, &vgpu->irq.req);
}
