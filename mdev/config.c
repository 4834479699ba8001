// SPDX-License-Identifier: GPL-2.0-only
/*
 * config.c - PCI configuration space
 *
 * A conventional function with 256 bytes: MSI-X, then virtio's vendor capabilities (virtio 1.3,
 * 4.1.4). The user (QEMU) emulates the BAR registers and MSI-X control for its guest; they work
 * here too, so that any other VFIO user sees a device that behaves.
 */
#include <linux/pci_regs.h>
#include <linux/unaligned.h>
#include <uapi/linux/virtio_gpu.h>
#include <uapi/linux/virtio_ids.h>
#include <uapi/linux/virtio_pci.h>

#include "vgpu.h"

#define CAP_MSIX	0x40
#define CAP_COMMON	0x50
#define CAP_ISR		0x60
#define CAP_DEVICE	0x70
#define CAP_NOTIFY	0x80
#define CAP_PCI		0x94
#define CAP_SHM		0xa8

#define SUBSYSTEM_VENDOR	0x1af4
#define SUBSYSTEM_DEVICE	0x1100
#define GPU_CONFIG_BYTES	16

static void cap_virtio(u8 *config, u8 at, u8 next, u8 type, u8 bar, u32 offset, u32 length, u8 size)
{
	struct virtio_pci_cap *cap = (struct virtio_pci_cap *)(config + at);

	cap->cap_vndr = PCI_CAP_ID_VNDR;
	cap->cap_next = next;
	cap->cap_len = size;
	cap->cfg_type = type;
	cap->bar = bar;
	cap->offset = cpu_to_le32(offset);
	cap->length = cpu_to_le32(length);
}

static void cap_shared_memory(u8 *config, u8 at, u8 next, u64 bytes)
{
	struct virtio_pci_cap64 *cap = (struct virtio_pci_cap64 *)(config + at);

	cap_virtio(config, at, next, VIRTIO_PCI_CAP_SHARED_MEMORY_CFG, 2, 0, lower_32_bits(bytes),
		   sizeof(*cap));
	cap->cap.id = OCTAVO_SHM_ID;
	cap->length_hi = cpu_to_le32(upper_32_bits(bytes));
}

void config_init(struct octavo_vgpu_device *vgpu)
{
	u8 *config = vgpu->config;

	memset(config, 0, sizeof(vgpu->config));
	put_unaligned_le16(0x1af4, config + PCI_VENDOR_ID);
	put_unaligned_le16(0x1040 + VIRTIO_ID_GPU, config + PCI_DEVICE_ID);
	put_unaligned_le16(PCI_STATUS_CAP_LIST, config + PCI_STATUS);
	config[PCI_REVISION_ID] = 1;
	put_unaligned_le16(PCI_CLASS_DISPLAY_OTHER, config + PCI_CLASS_DEVICE);
	put_unaligned_le32(PCI_BASE_ADDRESS_MEM_TYPE_32, config + PCI_BASE_ADDRESS_0);
	put_unaligned_le32(PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
			   config + PCI_BASE_ADDRESS_2);
	put_unaligned_le16(SUBSYSTEM_VENDOR, config + PCI_SUBSYSTEM_VENDOR_ID);
	put_unaligned_le16(SUBSYSTEM_DEVICE, config + PCI_SUBSYSTEM_ID);
	config[PCI_CAPABILITY_LIST] = CAP_MSIX;

	config[CAP_MSIX] = PCI_CAP_ID_MSIX;
	config[CAP_MSIX + PCI_CAP_LIST_NEXT] = CAP_COMMON;
	put_unaligned_le16(OCTAVO_VECTORS - 1, config + CAP_MSIX + PCI_MSIX_FLAGS);
	put_unaligned_le32(OCTAVO_BAR0_MSIX_TABLE, config + CAP_MSIX + PCI_MSIX_TABLE);
	put_unaligned_le32(OCTAVO_BAR0_MSIX_PBA, config + CAP_MSIX + PCI_MSIX_PBA);

	cap_virtio(config, CAP_COMMON, CAP_ISR, VIRTIO_PCI_CAP_COMMON_CFG, 0, OCTAVO_BAR0_COMMON,
		   sizeof(struct virtio_pci_common_cfg), sizeof(struct virtio_pci_cap));
	cap_virtio(config, CAP_ISR, CAP_DEVICE, VIRTIO_PCI_CAP_ISR_CFG, 0, OCTAVO_BAR0_ISR, 4,
		   sizeof(struct virtio_pci_cap));
	cap_virtio(config, CAP_DEVICE, CAP_NOTIFY, VIRTIO_PCI_CAP_DEVICE_CFG, 0,
		   OCTAVO_BAR0_DEVICE, GPU_CONFIG_BYTES, sizeof(struct virtio_pci_cap));
	cap_virtio(config, CAP_NOTIFY, CAP_PCI, VIRTIO_PCI_CAP_NOTIFY_CFG, 0, OCTAVO_BAR0_NOTIFY,
		   OCTAVO_QUEUES * OCTAVO_NOTIFY_MULTIPLIER, sizeof(struct virtio_pci_notify_cap));
	put_unaligned_le32(OCTAVO_NOTIFY_MULTIPLIER,
			   config + CAP_NOTIFY + VIRTIO_PCI_NOTIFY_CAP_MULT);
	cap_virtio(config, CAP_PCI, CAP_SHM, VIRTIO_PCI_CAP_PCI_CFG, 0, 0, 0,
		   sizeof(struct virtio_pci_cfg_cap));
	cap_shared_memory(config, CAP_SHM, 0, vgpu->window_bytes);
}

/* Which bits of a byte of configuration space a write may change. */
static u8 config_mask(struct octavo_vgpu_device *vgpu, u32 offset)
{
	u64 bar;

	switch (offset) {
	case PCI_COMMAND:
		return PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	case PCI_COMMAND + 1:
		return PCI_COMMAND_INTX_DISABLE >> 8;
	case PCI_CACHE_LINE_SIZE:
	case PCI_LATENCY_TIMER:
	case PCI_INTERRUPT_LINE:
		return 0xff;
	case PCI_BASE_ADDRESS_0 ... PCI_BASE_ADDRESS_0 + 3:
		bar = ~(u64)(OCTAVO_BAR0_BYTES - 1);
		return (u8)(bar >> (8 * (offset - PCI_BASE_ADDRESS_0)));
	case PCI_BASE_ADDRESS_2 ... PCI_BASE_ADDRESS_2 + 7:
		bar = ~(vgpu->window_bytes - 1);
		return (u8)(bar >> (8 * (offset - PCI_BASE_ADDRESS_2)));
	case CAP_MSIX + PCI_MSIX_FLAGS + 1:
		return (PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL) >> 8;
	case CAP_PCI + offsetof(struct virtio_pci_cap, bar):
	case CAP_PCI + offsetof(struct virtio_pci_cap, offset) ...
	     CAP_PCI + offsetof(struct virtio_pci_cap, length) + 3:
		return 0xff;
	default:
		return 0;
	}
}

/*
 * The window of VIRTIO_PCI_CAP_PCI_CFG: an access to pci_cfg_data is one to the BAR. False when the
 * guest set it up wrongly, or for the memory window, which nobody needs to reach this way.
 */
static bool config_window(struct octavo_vgpu_device *vgpu, u32 *offset, u32 *length)
{
	const struct virtio_pci_cap *cap = (const void *)(vgpu->config + CAP_PCI);

	*offset = le32_to_cpu(cap->offset);
	*length = le32_to_cpu(cap->length);
	if (cap->bar || (*length != 1 && *length != 2 && *length != 4))
		return false;
	return *offset % *length == 0 && *offset <= OCTAVO_BAR0_BYTES - *length;
}

void config_read(struct octavo_vgpu_device *vgpu, u32 offset, u8 *data, u32 count)
{
	const u32 window = CAP_PCI + offsetof(struct virtio_pci_cfg_cap, pci_cfg_data);
	u32 bar_offset, length;

	lockdep_assert_held(&vgpu->lock);
	if (offset < window + 4 && offset + count > window &&
	    config_window(vgpu, &bar_offset, &length))
		registers_read(vgpu, bar_offset, vgpu->config + window, length);
	memcpy(data, vgpu->config + offset, count);
}

void config_write(struct octavo_vgpu_device *vgpu, u32 offset, const u8 *data, u32 count)
{
	const u32 window = CAP_PCI + offsetof(struct virtio_pci_cfg_cap, pci_cfg_data);
	u32 bar_offset, length, i;

	lockdep_assert_held(&vgpu->lock);
	for (i = 0; i < count; i++) {
		u8 mask = config_mask(vgpu, offset + i);
		u8 *byte = vgpu->config + offset + i;

		*byte = (u8)((*byte & ~mask) | (data[i] & mask));
	}
	if (offset == window && config_window(vgpu, &bar_offset, &length) && count >= length)
		registers_write(vgpu, bar_offset, data, length);
}
