// SPDX-License-Identifier: LGPL-2.1-or-later
/* vm.c - a VM's owner: opens the VFIO device by group and type1, or by iommufd */
#include "hostile.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/iommufd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int group_open(struct vm *vm)
{
	char text[37], path[128], link[256];
	ssize_t length;

	uuid_text(vm->uuid, text);
	snprintf(path, sizeof(path), "/sys/bus/mdev/devices/%s/iommu_group", text);
	length = readlink(path, link, sizeof(link) - 1);
	if (length < 0)
		return errno;
	link[length] = '\0';
	snprintf(path, sizeof(path), "/dev/vfio/%s", strrchr(link, '/') + 1);
	vm->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	vm->group = open(path, O_RDWR | O_CLOEXEC);
	if (vm->container < 0 || vm->group < 0)
		return errno;
	if (ioctl(vm->group, VFIO_GROUP_SET_CONTAINER, &vm->container) ||
	    ioctl(vm->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		return errno;
	vm->device = ioctl(vm->group, VFIO_GROUP_GET_DEVICE_FD, text);
	return vm->device < 0 ? errno : 0;
}

static int cdev_open(struct vm *vm)
{
	struct vfio_device_bind_iommufd bind = { .argsz = sizeof(bind) };
	struct vfio_device_attach_iommufd_pt attach = { .argsz = sizeof(attach) };
	struct iommu_ioas_alloc alloc = { .size = sizeof(alloc) };
	char text[37], path[640];
	glob_t found;

	uuid_text(vm->uuid, text);
	snprintf(path, sizeof(path), "/sys/bus/mdev/devices/%s/vfio-dev/vfio*", text);
	if (glob(path, 0, NULL, &found))
		return ENOENT;
	snprintf(path, sizeof(path), "/dev/vfio/devices/%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	vm->container = open("/dev/iommu", O_RDWR | O_CLOEXEC);
	vm->device = open(path, O_RDWR | O_CLOEXEC);
	if (vm->container < 0 || vm->device < 0)
		return errno;
	bind.iommufd = vm->container;
	if (ioctl(vm->device, VFIO_DEVICE_BIND_IOMMUFD, &bind) ||
	    ioctl(vm->container, IOMMU_IOAS_ALLOC, &alloc))
		return errno;
	vm->ioas = alloc.out_ioas_id;
	attach.pt_id = alloc.out_ioas_id;
	return ioctl(vm->device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach) ? errno : 0;
}

static void *open_thread(void *data)
{
	struct vm *vm = data;

	vm->open_errno = host.cdev ? cdev_open(vm) : group_open(vm);
	return NULL;
}

void vm_open_begin(struct vm *vm, const uint8_t uuid[16])
{
	memset(vm, 0, sizeof(*vm));
	memcpy(vm->uuid, uuid, 16);
	vm->container = vm->group = vm->device = vm->memory_fd = -1;
	if (pthread_create(&vm->thread, NULL, open_thread, vm))
		give_up("no thread");
}

int vm_opened(struct vm *vm)
{
	pthread_join(vm->thread, NULL);
	if (vm->open_errno)
		return vm->open_errno;
	vm->memory_fd = memfd_create("guest", MFD_CLOEXEC);
	if (vm->memory_fd < 0 || ftruncate(vm->memory_fd, (off_t)GUEST_BYTES))
		give_up("no guest memory");
	vm->memory = mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, vm->memory_fd, 0);
	if (vm->memory == MAP_FAILED)
		give_up("no guest memory");
	if (vm_map(vm, 0, GUEST_BYTES, vm->memory, true) ||
	    vm_map(vm, ROM_IOVA, ROM_BYTES, vm->memory, false))
		give_up("cannot map guest memory");
	return 0;
}

void vm_close(struct vm *vm)
{
	if (vm->device >= 0)
		close(vm->device);
	if (vm->group >= 0)
		close(vm->group);
	if (vm->container >= 0)
		close(vm->container);
	if (vm->memory)
		munmap(vm->memory, GUEST_BYTES);
	if (vm->memory_fd >= 0)
		close(vm->memory_fd);
	vm->device = vm->group = vm->container = vm->memory_fd = -1;
	vm->memory = NULL;
}

int vm_map(struct vm *vm, uint64_t iova, uint64_t length, void *at, bool write)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | (write ? VFIO_DMA_MAP_FLAG_WRITE : 0),
		.vaddr = (uintptr_t)at,
		.iova = iova,
		.size = length,
	};
	struct iommu_ioas_map ioas = {
		.size = sizeof(ioas),
		.flags = IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE |
			 (write ? IOMMU_IOAS_MAP_WRITEABLE : 0),
		.ioas_id = vm->ioas,
		.user_va = (uintptr_t)at,
		.length = length,
		.iova = iova,
	};

	if (host.cdev)
		return ioctl(vm->container, IOMMU_IOAS_MAP, &ioas);
	return ioctl(vm->container, VFIO_IOMMU_MAP_DMA, &map);
}

int vm_unmap(struct vm *vm, uint64_t iova, uint64_t length)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.iova = iova,
		.size = length,
	};
	struct iommu_ioas_unmap ioas = {
		.size = sizeof(ioas),
		.ioas_id = vm->ioas,
		.iova = iova,
		.length = length,
	};

	if (host.cdev)
		return ioctl(vm->container, IOMMU_IOAS_UNMAP, &ioas);
	return ioctl(vm->container, VFIO_IOMMU_UNMAP_DMA, &unmap);
}

uint64_t vm_region(struct vm *vm, uint32_t index, uint64_t *size)
{
	struct vfio_region_info info = { .argsz = sizeof(info), .index = index };

	if (ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &info))
		give_up("no region %u", index);
	if (size)
		*size = info.size;
	return info.offset;
}

void vm_write(struct vm *vm, uint32_t region, uint64_t offset, uint64_t value, size_t size)
{
	uint64_t base = vm_region(vm, region, NULL);

	if (pwrite(vm->device, &value, size, (off_t)(base + offset)) != (ssize_t)size)
		check(false, "write of %zu at %u+%#lx: %s", size, region, offset, strerror(errno));
}

uint64_t vm_read(struct vm *vm, uint32_t region, uint64_t offset, size_t size)
{
	uint64_t base = vm_region(vm, region, NULL), value = 0;

	if (pread(vm->device, &value, size, (off_t)(base + offset)) != (ssize_t)size)
		check(false, "read of %zu at %u+%#lx: %s", size, region, offset, strerror(errno));
	return value;
}

int vm_eventfd(struct vm *vm, uint32_t index, uint32_t vector)
{
	/* the structure and, behind it, one descriptor */
	struct vfio_irq_set irqs[2] = { {
		.argsz = sizeof(irqs[0]) + sizeof(int32_t),
		.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
		.index = index,
		.start = vector,
		.count = 1,
	} };
	int32_t fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	memcpy(&irqs[1], &fd, sizeof(fd));
	if (fd < 0 || ioctl(vm->device, VFIO_DEVICE_SET_IRQS, irqs))
		give_up("no eventfd for interrupt %u.%u", index, vector);
	return fd;
}
