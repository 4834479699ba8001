// SPDX-License-Identifier: GPL-2.0-only
/*
 * device.c - the VFIO device that a VM's user opens
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <uapi/linux/pci_regs.h>

#include "compat.h"
#include "vgpu.h"

#define MODE_WIDTH_DEFAULT	1280
#define MODE_HEIGHT_DEFAULT	800

static int device_init(struct vfio_device *vdev)
{
	struct octavo_vgpu_device *vgpu = vgpu_from_vdev(vdev);

	INIT_LIST_HEAD(&vgpu->node);
	mutex_init(&vgpu->lock);
	init_waitqueue_head(&vgpu->ready_wait);
	vgpu->width = MODE_WIDTH_DEFAULT;
	vgpu->height = MODE_HEIGHT_DEFAULT;
	irq_init(vgpu);
	events_init(vgpu);
	window_init(vgpu);
	guest_init(vgpu);
	console_init(vgpu);
	return 0;
}

static void device_release(struct vfio_device *vdev)
{
	struct octavo_vgpu_device *vgpu = vgpu_from_vdev(vdev);

	guest_finish(vgpu);
	if (vgpu->gpu)
		gpu_put(vgpu->gpu);
}

static int device_open(struct vfio_device *vdev)
{
	return vgpu_open(vgpu_from_vdev(vdev));
}

static void device_close(struct vfio_device *vdev)
{
	vgpu_close(vgpu_from_vdev(vdev));
}

static void device_request(struct vfio_device *vdev, unsigned int count)
{
	vgpu_request(vgpu_from_vdev(vdev), count);
}

static void device_dma_unmap(struct vfio_device *vdev, u64 iova, u64 length)
{
	guest_unmapped(vgpu_from_vdev(vdev), iova, length);
}

/* ------------------------------------------------------------------------------------------------
 * Regions
 */

static u64 region_bytes(struct octavo_vgpu_device *vgpu, u32 index)
{
	switch (index) {
	case VFIO_PCI_BAR0_REGION_INDEX:
		return OCTAVO_BAR0_BYTES;
	case VFIO_PCI_BAR2_REGION_INDEX:
		return vgpu->window_bytes;
	case VFIO_PCI_CONFIG_REGION_INDEX:
		return sizeof(vgpu->config);
	case OCTAVO_REGION_CONSOLE:
		return OCTAVO_CONSOLE_BYTES;
	default:
		return 0;
	}
}

static int device_region_info(struct vfio_device *vdev, struct vfio_region_info *info,
			      struct vfio_info_cap *caps)
{
	struct octavo_vgpu_device *vgpu = vgpu_from_vdev(vdev);
	struct vfio_region_info_cap_type type = {
		.header.id = VFIO_REGION_INFO_CAP_TYPE,
		.header.version = 1,
		.type = VFIO_REGION_TYPE_PCI_VENDOR_TYPE | 0x1af4,
		.subtype = 1,
	};

	if (info->index >= OCTAVO_REGIONS)
		return -EINVAL;
	info->offset = (u64)info->index << OCTAVO_REGION_SHIFT;
	info->size = region_bytes(vgpu, info->index);
	info->flags = 0;
	if (info->size)
		info->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (info->index == VFIO_PCI_BAR2_REGION_INDEX || info->index == OCTAVO_REGION_CONSOLE)
		info->flags |= VFIO_REGION_INFO_FLAG_MMAP;
	if (info->index == OCTAVO_REGION_CONSOLE)
		return vfio_info_add_capability(caps, &type.header, sizeof(type));
	return 0;
}

#if !OCTAVO_CORE_REGION_INFO
static long device_get_region_info(struct vfio_device *vdev, unsigned long arg)
{
	unsigned long minsz = offsetofend(struct vfio_region_info, offset);
	void __user *user = (void __user *)arg;
	struct vfio_region_info info = {};
	struct vfio_info_cap caps = {};
	int ret;

	if (copy_from_user(&info, user, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;
	ret = device_region_info(vdev, &info, &caps);
	if (ret)
		goto out;
	if (caps.size) {
		info.flags |= VFIO_REGION_INFO_FLAG_CAPS;
		info.cap_offset = 0;
		if (info.argsz < sizeof(info) + caps.size) {
			info.argsz = (u32)(sizeof(info) + caps.size);
		} else {
			vfio_info_cap_shift(&caps, sizeof(info));
			if (copy_to_user(user + sizeof(info), caps.buf, caps.size)) {
				ret = -EFAULT;
				goto out;
			}
			info.cap_offset = sizeof(info);
		}
	}
	if (copy_to_user(user, &info, minsz))
		ret = -EFAULT;
out:
	kfree(caps.buf);
	return ret;
}
#endif

/* One naturally aligned access of 1, 2, 4 or 8 bytes, within the region. */
static int device_access_one(struct octavo_vgpu_device *vgpu, u32 index, u64 offset, u8 *data,
			     u32 count, bool write)
{
	int ret = 0;

	switch (index) {
	case VFIO_PCI_BAR2_REGION_INDEX:
		return window_access(vgpu, offset, data, count, write);
	case OCTAVO_REGION_CONSOLE:
		return console_access(vgpu, offset, data, count, write);
	}
	atomic64_inc(&vgpu->counters.registers);
	mutex_lock(&vgpu->lock);
	if (index == VFIO_PCI_CONFIG_REGION_INDEX) {
		if (write)
			config_write(vgpu, (u32)offset, data, count);
		else
			config_read(vgpu, (u32)offset, data, count);
	} else if (write) {
		registers_write(vgpu, (u32)offset, data, count);
	} else {
		registers_read(vgpu, (u32)offset, data, count);
	}
	mutex_unlock(&vgpu->lock);
	return ret;
}

static ssize_t device_access(struct octavo_vgpu_device *vgpu, char __user *buf, size_t count,
			     loff_t *ppos, bool write)
{
	u32 index = (u32)min((u64)*ppos >> OCTAVO_REGION_SHIFT, (u64)U32_MAX);
	u64 offset = (u64)*ppos & OCTAVO_REGION_MASK;
	u64 bytes = region_bytes(vgpu, index);
	size_t done = 0;
	u8 data[8];
	u32 step;
	int ret;

	if (*ppos < 0 || offset >= bytes)
		return -EINVAL;
	count = min_t(u64, count, bytes - offset);
	while (done < count) {
		for (step = sizeof(data); step > 1; step /= 2)
			if (step <= count - done && !(offset % step))
				break;
		if (write && copy_from_user(data, buf + done, step))
			return -EFAULT;
		ret = device_access_one(vgpu, index, offset, data, step, write);
		if (ret)
			return ret;
		if (!write && copy_to_user(buf + done, data, step))
			return -EFAULT;
		done += step;
		offset += step;
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	*ppos += (loff_t)done;
	return (ssize_t)done;
}

static ssize_t device_read(struct vfio_device *vdev, char __user *buf, size_t count, loff_t *ppos)
{
	return device_access(vgpu_from_vdev(vdev), buf, count, ppos, false);
}

static ssize_t device_write(struct vfio_device *vdev, const char __user *buf, size_t count,
			    loff_t *ppos)
{
	return device_access(vgpu_from_vdev(vdev), (char __user *)buf, count, ppos, true);
}

static int device_mmap(struct vfio_device *vdev, struct vm_area_struct *vma)
{
	struct octavo_vgpu_device *vgpu = vgpu_from_vdev(vdev);
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u32 index = (u32)min(start >> OCTAVO_REGION_SHIFT, (u64)U32_MAX);
	u64 offset = start & OCTAVO_REGION_MASK;
	u64 length = vma->vm_end - vma->vm_start;

	if (index != VFIO_PCI_BAR2_REGION_INDEX && index != OCTAVO_REGION_CONSOLE)
		return -EINVAL;
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (offset >= region_bytes(vgpu, index) || length > region_bytes(vgpu, index) - offset)
		return -EINVAL;
	if (index == OCTAVO_REGION_CONSOLE)
		return console_mmap(vgpu, NULL, vma);
	return window_mmap(vgpu, vma);
}

/* ------------------------------------------------------------------------------------------------
 * ioctls
 */

static long device_get_info(struct vfio_device *vdev, void __user *user)
{
	unsigned long minsz = offsetofend(struct vfio_device_info, num_irqs);
	struct vfio_device_info info = {};

	if (copy_from_user(&info, user, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;
	info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	info.num_regions = OCTAVO_REGIONS;
	info.num_irqs = VFIO_PCI_NUM_IRQS;
	return copy_to_user(user, &info, minsz) ? -EFAULT : 0;
}

static long device_get_irq_info(struct vfio_device *vdev, void __user *user)
{
	unsigned long minsz = offsetofend(struct vfio_irq_info, count);
	struct vfio_irq_info info = {};
	int ret;

	if (copy_from_user(&info, user, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;
	ret = irq_info(vgpu_from_vdev(vdev), &info);
	if (ret)
		return ret;
	return copy_to_user(user, &info, minsz) ? -EFAULT : 0;
}

static long device_set_irqs(struct vfio_device *vdev, void __user *user)
{
	unsigned long minsz = offsetofend(struct vfio_irq_set, count);
	struct vfio_irq_set set;
	size_t data_size = 0;
	u8 *data = NULL;
	int ret;

	if (copy_from_user(&set, user, minsz))
		return -EFAULT;
	if (set.index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	ret = vfio_set_irqs_validate_and_prepare(&set, (int)irq_vectors(set.index), VFIO_PCI_NUM_IRQS,
						 &data_size);
	if (ret)
		return ret;
	if (data_size) {
		data = memdup_user(user + minsz, data_size);
		if (IS_ERR(data))
			return PTR_ERR(data);
	}
	ret = irq_set(vgpu_from_vdev(vdev), &set, data);
	kfree(data);
	return ret;
}

/* As vfio-pci does it, for doorbells only: the other registers do more than to note a write. */
static long device_ioeventfd(struct vfio_device *vdev, void __user *user)
{
	struct octavo_vgpu_device *vgpu = vgpu_from_vdev(vdev);
	unsigned long minsz = offsetofend(struct vfio_device_ioeventfd, fd);
	struct vfio_device_ioeventfd ioeventfd;
	u32 size;
	int ret;

	if (copy_from_user(&ioeventfd, user, minsz))
		return -EFAULT;
	if (ioeventfd.argsz < minsz || (ioeventfd.flags & ~VFIO_DEVICE_IOEVENTFD_SIZE_MASK))
		return -EINVAL;
	size = ioeventfd.flags & VFIO_DEVICE_IOEVENTFD_SIZE_MASK;
	if (hweight32(size) != 1 || ioeventfd.fd < -1)
		return -EINVAL;
	if (ioeventfd.offset >> OCTAVO_REGION_SHIFT != VFIO_PCI_BAR0_REGION_INDEX)
		return -EINVAL;
	mutex_lock(&vgpu->lock);
	ret = doorbell_set(vgpu, ioeventfd.offset & OCTAVO_REGION_MASK, size, ioeventfd.data,
			   ioeventfd.fd);
	mutex_unlock(&vgpu->lock);
	return ret;
}

static long device_query_plane(struct vfio_device *vdev, void __user *user)
{
	unsigned long minsz = offsetofend(struct vfio_device_gfx_plane_info, region_index);
	struct vfio_device_gfx_plane_info plane = {};
	int ret;

	if (copy_from_user(&plane, user, minsz))
		return -EFAULT;
	if (plane.argsz < minsz)
		return -EINVAL;
	ret = console_query(vgpu_from_vdev(vdev), &plane);
	if (ret)
		return ret;
	return copy_to_user(user, &plane, minsz) ? -EFAULT : 0;
}

static long device_ioctl(struct vfio_device *vdev, unsigned int cmd, unsigned long arg)
{
	struct octavo_vgpu_device *vgpu = vgpu_from_vdev(vdev);
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VFIO_DEVICE_GET_INFO:
		return device_get_info(vdev, user);
#if !OCTAVO_CORE_REGION_INFO
	case VFIO_DEVICE_GET_REGION_INFO:
		return device_get_region_info(vdev, arg);
#endif
	case VFIO_DEVICE_GET_IRQ_INFO:
		return device_get_irq_info(vdev, user);
	case VFIO_DEVICE_SET_IRQS:
		return device_set_irqs(vdev, user);
	case VFIO_DEVICE_RESET:
		mutex_lock(&vgpu->lock);
		config_init(vgpu);
		vgpu_reset(vgpu);
		mutex_unlock(&vgpu->lock);
		return 0;
	case VFIO_DEVICE_IOEVENTFD:
		return device_ioeventfd(vdev, user);
	case VFIO_DEVICE_QUERY_GFX_PLANE:
		return device_query_plane(vdev, user);
	default:
		return -ENOTTY;
	}
}

const struct vfio_device_ops octavo_vfio_ops = {
	.name = "octavo",
	.init = device_init,
	.release = device_release,
	.bind_iommufd = vfio_iommufd_emulated_bind,
	.unbind_iommufd = vfio_iommufd_emulated_unbind,
	.attach_ioas = vfio_iommufd_emulated_attach_ioas,
	.detach_ioas = vfio_iommufd_emulated_detach_ioas,
	.open_device = device_open,
	.close_device = device_close,
	.read = device_read,
	.write = device_write,
	.ioctl = device_ioctl,
#if OCTAVO_CORE_REGION_INFO
	.get_region_info_caps = device_region_info,
#endif
	.mmap = device_mmap,
	.request = device_request,
	.dma_unmap = device_dma_unmap,
};
