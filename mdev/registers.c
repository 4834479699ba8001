// SPDX-License-Identifier: GPL-2.0-only
/*
 * registers.c - BAR0: the virtio registers (virtio 1.3, 4.1.4 and 5.7.4)
 *
 * Reads of any size and alignment return bytes of an image of the structure; writes take effect
 * where they cover a register exactly, as the specification obliges drivers to do, and are ignored
 * elsewhere. All of it runs under vgpu->lock and waits for nobody.
 */
#include <linux/log2.h>
#include <linux/unaligned.h>
#include <uapi/linux/virtio_config.h>
#include <uapi/linux/virtio_gpu.h>
#include <uapi/linux/virtio_pci.h>

#include "vgpu.h"

/* virtio_gpu_config of the specification, before later extensions */
struct gpu_config {
	__le32 events_read;
	__le32 events_clear;
	__le32 num_scanouts;
	__le32 num_capsets;
};

/* What the guest's driver may set by itself. */
#define STATUS_DRIVER_BITS	(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER | \
				 VIRTIO_CONFIG_S_DRIVER_OK | VIRTIO_CONFIG_S_FEATURES_OK | \
				 VIRTIO_CONFIG_S_FAILED)

#define COMMON(field)	offsetof(struct virtio_pci_modern_common_cfg, field)
#define COMMON_1_0(field)	offsetof(struct virtio_pci_common_cfg, field)

void registers_reset(struct octavo_vgpu_device *vgpu)
{
	struct octavo_registers *regs = &vgpu->regs;
	u8 config_generation = regs->config_generation;
	unsigned int i;

	memset(regs, 0, sizeof(*regs));
	regs->config_generation = config_generation;
	for (i = 0; i < OCTAVO_QUEUES; i++)
		regs->queue[i].size = OCTAVO_QUEUE_SIZE_MAX;
}

static u32 feature_word(u64 features, u32 select)
{
	return select < 2 ? (u32)(features >> (32 * select)) : 0;
}

static void common_image(struct octavo_vgpu_device *vgpu, struct virtio_pci_modern_common_cfg *out)
{
	struct octavo_registers *regs = &vgpu->regs;
	struct virtio_pci_common_cfg *c = &out->cfg;
	u16 q = regs->queue_select;

	memset(out, 0, sizeof(*out));
	c->device_feature_select = cpu_to_le32(regs->device_feature_select);
	c->device_feature = cpu_to_le32(feature_word(vgpu->offered_features,
						     regs->device_feature_select));
	c->guest_feature_select = cpu_to_le32(regs->driver_feature_select);
	c->guest_feature = cpu_to_le32(feature_word(regs->driver_features,
						    regs->driver_feature_select));
	c->msix_config = cpu_to_le16(vgpu->irq.config_vector);
	c->num_queues = cpu_to_le16(OCTAVO_QUEUES);
	c->device_status = regs->status;
	c->config_generation = regs->config_generation;
	c->queue_select = cpu_to_le16(q);
	if (q >= OCTAVO_QUEUES) {
		c->queue_msix_vector = cpu_to_le16(VIRTIO_MSI_NO_VECTOR);
		return;
	}
	c->queue_size = cpu_to_le16(regs->queue[q].size);
	c->queue_msix_vector = cpu_to_le16(vgpu->irq.queue_vector[q]);
	c->queue_enable = cpu_to_le16(regs->queue[q].enabled);
	c->queue_notify_off = cpu_to_le16(q);
	c->queue_desc_lo = cpu_to_le32(lower_32_bits(regs->queue[q].desc));
	c->queue_desc_hi = cpu_to_le32(upper_32_bits(regs->queue[q].desc));
	c->queue_avail_lo = cpu_to_le32(lower_32_bits(regs->queue[q].driver));
	c->queue_avail_hi = cpu_to_le32(upper_32_bits(regs->queue[q].driver));
	c->queue_used_lo = cpu_to_le32(lower_32_bits(regs->queue[q].device));
	c->queue_used_hi = cpu_to_le32(upper_32_bits(regs->queue[q].device));
}

/* Copies what lies within the image; beyond it reads are zero. */
static void image_read(const void *image, u32 size, u32 offset, u8 *data, u32 count)
{
	memset(data, 0, count);
	if (offset < size)
		memcpy(data, (const u8 *)image + offset, min(count, size - offset));
}

static void status_write(struct octavo_vgpu_device *vgpu, u8 value)
{
	struct octavo_registers *regs = &vgpu->regs;
	u8 status;

	if (!value) {
		vgpu_reset(vgpu);
		return;
	}
	/* Bits are only ever added; the driver clears them all by a reset. */
	status = regs->status | (value & STATUS_DRIVER_BITS);
	if (status & ~regs->status & VIRTIO_CONFIG_S_FEATURES_OK) {
		bool subset = !(regs->driver_features & ~vgpu->offered_features);
		bool modern = regs->driver_features & BIT_ULL(VIRTIO_F_VERSION_1);

		if (!subset || !modern)
			status &= (u8)~VIRTIO_CONFIG_S_FEATURES_OK;
	}
	if (!(status & VIRTIO_CONFIG_S_FEATURES_OK))
		status &= (u8)~VIRTIO_CONFIG_S_DRIVER_OK;
	if (status == regs->status)
		return;
	regs->status = status;
	events_post(vgpu, OCTAVO_EVENT_STATUS, status, 0, 0);
}

static void feature_write(struct octavo_vgpu_device *vgpu, u32 value)
{
	struct octavo_registers *regs = &vgpu->regs;
	u32 shift = 32 * regs->driver_feature_select;

	if (regs->driver_feature_select >= 2 || (regs->status & VIRTIO_CONFIG_S_FEATURES_OK))
		return;
	regs->driver_features &= ~(0xffffffffULL << shift);
	regs->driver_features |= (u64)value << shift;
}

static u16 vector_check(u64 value)
{
	return value < OCTAVO_VECTORS ? (u16)value : VIRTIO_MSI_NO_VECTOR;
}

static void address_write(u64 *address, bool high, u32 value)
{
	if (high)
		*address = (u64)value << 32 | lower_32_bits(*address);
	else
		*address = (*address & ~0xffffffffULL) | value;
}

static void queue_write(struct octavo_vgpu_device *vgpu, u32 offset, u32 count, u64 value)
{
	struct octavo_registers *regs = &vgpu->regs;
	u16 q = regs->queue_select;
	u64 *address;

	if (q >= OCTAVO_QUEUES)
		return;
	if (count == 2 && offset == COMMON_1_0(queue_msix_vector)) {
		spin_lock(&vgpu->irq.lock);
		vgpu->irq.queue_vector[q] = vector_check(value);
		spin_unlock(&vgpu->irq.lock);
		return;
	}
	/* The worker uses an enabled queue as it was when it was enabled. */
	if (regs->queue[q].enabled)
		return;
	if (count == 2) {
		if (offset == COMMON_1_0(queue_size)) {
			if (is_power_of_2(value) && value <= OCTAVO_QUEUE_SIZE_MAX)
				regs->queue[q].size = (u16)value;
		} else if (offset == COMMON_1_0(queue_enable) && value == 1) {
			regs->queue[q].enabled = true;
			events_post(vgpu, OCTAVO_EVENT_QUEUE, q, 0, 0);
		}
		return;
	}
	switch (offset & ~7u) {
	case COMMON_1_0(queue_desc_lo):
		address = &regs->queue[q].desc;
		break;
	case COMMON_1_0(queue_avail_lo):
		address = &regs->queue[q].driver;
		break;
	case COMMON_1_0(queue_used_lo):
		address = &regs->queue[q].device;
		break;
	default:
		return;
	}
	if (count == 8 && !(offset & 7))
		*address = value;
	else if (count == 4 && !(offset & 3))
		address_write(address, offset & 4, (u32)value);
}

static void common_write(struct octavo_vgpu_device *vgpu, u32 offset, u32 count, u64 value)
{
	struct octavo_registers *regs = &vgpu->regs;

	if (count == 4 && offset == COMMON_1_0(device_feature_select)) {
		regs->device_feature_select = (u32)value;
	} else if (count == 4 && offset == COMMON_1_0(guest_feature_select)) {
		regs->driver_feature_select = (u32)value;
	} else if (count == 4 && offset == COMMON_1_0(guest_feature)) {
		feature_write(vgpu, (u32)value);
	} else if (count == 2 && offset == COMMON_1_0(msix_config)) {
		spin_lock(&vgpu->irq.lock);
		vgpu->irq.config_vector = vector_check(value);
		spin_unlock(&vgpu->irq.lock);
	} else if (count == 1 && offset == COMMON_1_0(device_status)) {
		status_write(vgpu, (u8)value);
	} else if (count == 2 && offset == COMMON_1_0(queue_select)) {
		regs->queue_select = (u16)value;
	} else {
		queue_write(vgpu, offset, count, value);
	}
}

void registers_read(struct octavo_vgpu_device *vgpu, u32 offset, u8 *data, u32 count)
{
	struct virtio_pci_modern_common_cfg common;
	struct gpu_config config;

	lockdep_assert_held(&vgpu->lock);
	memset(data, 0, count);
	switch (offset & ~0xfffu) {
	case OCTAVO_BAR0_COMMON:
		common_image(vgpu, &common);
		image_read(&common, sizeof(common), offset, data, count);
		break;
	case OCTAVO_BAR0_ISR:
		if (offset == OCTAVO_BAR0_ISR)
			data[0] = irq_isr_take(vgpu);
		break;
	case OCTAVO_BAR0_DEVICE:
		config.events_read = cpu_to_le32(vgpu->regs.events_read);
		config.events_clear = 0;
		config.num_scanouts = cpu_to_le32(vgpu->num_scanouts);
		config.num_capsets = cpu_to_le32(vgpu->num_capsets);
		image_read(&config, sizeof(config), offset - OCTAVO_BAR0_DEVICE, data, count);
		break;
	}
}

void registers_write(struct octavo_vgpu_device *vgpu, u32 offset, const u8 *data, u32 count)
{
	u8 bytes[8] = {};
	u64 value;
	u32 queue;

	lockdep_assert_held(&vgpu->lock);
	memcpy(bytes, data, min(count, (u32)sizeof(bytes)));
	value = get_unaligned_le64(bytes);

	switch (offset & ~0xfffu) {
	case OCTAVO_BAR0_COMMON:
		common_write(vgpu, offset, count, value);
		break;
	case OCTAVO_BAR0_DEVICE:
		if (count == 4 && offset == OCTAVO_BAR0_DEVICE +
					    offsetof(struct gpu_config, events_clear)) {
			vgpu->regs.events_read &= ~(u32)value;
			events_post(vgpu, OCTAVO_EVENT_CONFIG, (u32)value, 0, 0);
		}
		break;
	case OCTAVO_BAR0_NOTIFY:
		queue = (offset - OCTAVO_BAR0_NOTIFY) / OCTAVO_NOTIFY_MULTIPLIER;
		if (queue < OCTAVO_QUEUES && !(offset % OCTAVO_NOTIFY_MULTIPLIER))
			irq_kick(vgpu, queue);
		break;
	}
}
