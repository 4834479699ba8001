// SPDX-License-Identifier: LGPL-2.1-or-later
/* device.c - the VFIO device: regions, configuration space, registers, interrupts */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/pci_regs.h>
#include <linux/virtio_pci.h>

#define BAR0	VFIO_PCI_BAR0_REGION_INDEX
#define CONFIG	VFIO_PCI_CONFIG_REGION_INDEX
#define CONSOLE	VFIO_PCI_NUM_REGIONS
#define COMMON(field)	offsetof(struct virtio_pci_common_cfg, field)

static void test_infos(struct vm *vm)
{
	struct vfio_device_info info = { .argsz = sizeof(info) };
	struct vfio_irq_info irq = { .argsz = sizeof(irq) };
	struct {
		struct vfio_region_info info;
		struct vfio_region_info_cap_type type;
	} region = { .info = { .argsz = sizeof(region) } };
	uint32_t i;

	check(!ioctl(vm->device, VFIO_DEVICE_GET_INFO, &info) &&
	      info.flags == (VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET) &&
	      info.num_regions == CONSOLE + 1 && info.num_irqs == VFIO_PCI_NUM_IRQS, "device info");
	info.argsz = 4;
	check_errno(ioctl(vm->device, VFIO_DEVICE_GET_INFO, &info), EINVAL, "short device info");
	check_errno(ioctl(vm->device, VFIO_DEVICE_GET_INFO, NULL), EFAULT, "device info of NULL");

	for (i = 0; i <= CONSOLE; i++) {
		region.info.argsz = sizeof(region);
		region.info.index = i;
		check_errno(ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &region), 0, "region %u", i);
	}
	check(region.info.size == OCTAVO_CONSOLE_BYTES &&
	      region.info.flags == (VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE |
				    VFIO_REGION_INFO_FLAG_MMAP | VFIO_REGION_INFO_FLAG_CAPS) &&
	      region.info.cap_offset == sizeof(region.info) &&
	      region.type.header.id == VFIO_REGION_INFO_CAP_TYPE, "the console's region");
	region.info.argsz = sizeof(region.info);
	check(!ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &region) &&
	      region.info.argsz == sizeof(region) && !region.info.cap_offset,
	      "a short buffer is told the size that it needs");
	region.info.argsz = 8;
	check_errno(ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &region), EINVAL, "too short");
	region.info.argsz = sizeof(region);
	region.info.index = CONSOLE + 1;
	check_errno(ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &region), EINVAL, "no such region");
	region.info.index = UINT32_MAX;
	check_errno(ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO, &region), EINVAL, "region -1");

	irq.index = VFIO_PCI_MSIX_IRQ_INDEX;
	check(!ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &irq) && irq.count == OCTAVO_VECTORS,
	      "MSI-X has %u vectors", OCTAVO_VECTORS);
	irq.index = VFIO_PCI_INTX_IRQ_INDEX;
	check(!ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &irq) && !irq.count, "INTx has none");
	irq.index = VFIO_PCI_NUM_IRQS;
	check_errno(ioctl(vm->device, VFIO_DEVICE_GET_IRQ_INFO, &irq), EINVAL, "no such interrupt");
	check_errno(ioctl(vm->device, VFIO_DEVICE_GET_PCI_HOT_RESET_INFO, &info), ENOTTY, "hot reset");
}

static void test_edges(struct vm *vm)
{
	static uint8_t buffer[0x9000];
	uint64_t size, base;
	uint32_t i;

	for (i = 0; i <= CONSOLE; i++) {
		base = vm_region(vm, i, &size);
		if (!size) {
			check_errno(pread(vm->device, buffer, 4, (off_t)base), EINVAL,
				    "read of region %u, which is empty", i);
			continue;
		}
		check(pread(vm->device, buffer, 4, (off_t)(base + size - 4)) == 4,
		      "read of the last bytes of region %u", i);
		check(pread(vm->device, buffer, 8, (off_t)(base + size - 1)) == 1,
		      "a read across the end of region %u is cut", i);
		check_errno(pread(vm->device, buffer, 1, (off_t)(base + size)), EINVAL,
			    "read past the end of region %u", i);
		check_errno(pread(vm->device, nowhere, 4, (off_t)base), EFAULT,
			    "read of region %u to NULL", i);
	}
	base = vm_region(vm, CONSOLE, NULL);
	check_errno(pread(vm->device, buffer, 4, (off_t)(base + (1ull << 40))), EINVAL,
		    "read of a region that is not there");
	check_errno(pread(vm->device, buffer, 4, INT64_MAX - 8), EINVAL, "read at the end of offsets");
	base = vm_region(vm, BAR0, NULL);
	check(pread(vm->device, buffer, sizeof(buffer), (off_t)base) == OCTAVO_BAR0_BYTES,
	      "a read of all BAR0 and more");
	memset(buffer, 0xff, sizeof(buffer));
	check(pwrite(vm->device, buffer, sizeof(buffer), (off_t)base) == OCTAVO_BAR0_BYTES,
	      "a write of all BAR0 and more");
	base = vm_region(vm, CONFIG, NULL);
	check(pwrite(vm->device, buffer, sizeof(buffer), (off_t)base) == 256,
	      "a write of all configuration space");
	check_errno(ioctl(vm->device, VFIO_DEVICE_RESET), 0, "reset");
}

static void test_config(struct vm *vm)
{
	uint64_t window;
	uint32_t at, next, seen = 0, caps = 0;

	vm_region(vm, VFIO_PCI_BAR2_REGION_INDEX, &window);
	check(vm_read(vm, CONFIG, PCI_VENDOR_ID, 4) == 0x10501af4, "1af4:1050");
	check(vm_read(vm, CONFIG, PCI_CLASS_REVISION, 4) == 0x03800001, "class 0380, revision 1");
	check(vm_read(vm, CONFIG, PCI_INTERRUPT_PIN, 1) == 0, "no INTx pin");
	vm_write(vm, CONFIG, PCI_VENDOR_ID, 0, 4);
	check(vm_read(vm, CONFIG, PCI_VENDOR_ID, 4) == 0x10501af4, "the id cannot be written");
	vm_write(vm, CONFIG, PCI_BASE_ADDRESS_0, UINT32_MAX, 4);
	check(vm_read(vm, CONFIG, PCI_BASE_ADDRESS_0, 4) == (uint32_t)-OCTAVO_BAR0_BYTES,
	      "BAR0 tells its size");
	vm_write(vm, CONFIG, PCI_BASE_ADDRESS_2, UINT64_MAX, 8);
	check(vm_read(vm, CONFIG, PCI_BASE_ADDRESS_2, 8) == (-window | 0xc), "BAR2 tells its size");
	for (at = (uint32_t)vm_read(vm, CONFIG, PCI_CAPABILITY_LIST, 1); at && seen < 16; at = next) {
		uint64_t id = vm_read(vm, CONFIG, at, 1);

		next = (uint32_t)vm_read(vm, CONFIG, at + 1, 1);
		seen++;
		if (id == PCI_CAP_ID_VNDR)
			caps |= 1u << vm_read(vm, CONFIG, at + 3, 1);
		if (id == PCI_CAP_ID_VNDR && vm_read(vm, CONFIG, at + 3, 1) == VIRTIO_PCI_CAP_PCI_CFG) {
			vm_write(vm, CONFIG, at + 8, COMMON(num_queues), 4);
			vm_write(vm, CONFIG, at + 12, 2, 4);
			check(vm_read(vm, CONFIG, at + 16, 4) == OCTAVO_QUEUES,
			      "registers through VIRTIO_PCI_CAP_PCI_CFG");
			vm_write(vm, CONFIG, at + 8, COMMON(queue_select), 4);
			vm_write(vm, CONFIG, at + 16, 1, 2);
			check(vm_read(vm, BAR0, COMMON(queue_select), 2) == 1, "written too");
			vm_write(vm, CONFIG, at + 8, 0xfffffffe, 4);
			vm_write(vm, CONFIG, at + 12, 4, 4);
			vm_read(vm, CONFIG, at + 16, 4);
			vm_write(vm, CONFIG, at + 16, 0xffffffff, 4);
			vm_write(vm, CONFIG, at + 12, 0xffffffff, 4);
			vm_read(vm, CONFIG, at + 16, 4);
			vm_write(vm, CONFIG, at + 4, 2, 1);
			vm_read(vm, CONFIG, at + 16, 4);
			check(true, "a window set up wrongly is harmless");
		}
	}
	check(caps == (1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 8),
	      "all virtio capabilities, %#x", caps);
}

void test_device(void)
{
	struct stage stage;

	stage_begin(&stage, 20);
	test_infos(&stage.vm);
	test_edges(&stage.vm);
	test_config(&stage.vm);
	stage_end(&stage);
}

static void test_queues(struct vm *vm)
{
	static const uint16_t bad_sizes[] = { 0, 3, 1023, 1025, 2048, 0xffff };
	unsigned int i;

	vm_write(vm, BAR0, COMMON(queue_select), 2, 2);
	check(!vm_read(vm, BAR0, COMMON(queue_size), 2) && !vm_read(vm, BAR0, COMMON(queue_enable), 2),
	      "a queue that is not there has size 0");
	vm_write(vm, BAR0, COMMON(queue_enable), 1, 2);
	vm_write(vm, BAR0, COMMON(queue_desc_lo), 0x1000, 4);
	vm_write(vm, BAR0, COMMON(queue_select), 0xffff, 2);
	vm_write(vm, BAR0, COMMON(queue_msix_vector), 0, 2);
	check(vm_read(vm, BAR0, COMMON(queue_msix_vector), 2) == VIRTIO_MSI_NO_VECTOR,
	      "nor a vector");
	vm_write(vm, BAR0, COMMON(queue_select), 0, 2);
	check(vm_read(vm, BAR0, COMMON(queue_size), 2) == OCTAVO_QUEUE_SIZE_MAX, "queue 0 has all");
	for (i = 0; i < sizeof(bad_sizes) / sizeof(bad_sizes[0]); i++) {
		vm_write(vm, BAR0, COMMON(queue_size), bad_sizes[i], 2);
		check(vm_read(vm, BAR0, COMMON(queue_size), 2) == OCTAVO_QUEUE_SIZE_MAX,
		      "size %u is refused", bad_sizes[i]);
	}
	vm_write(vm, BAR0, COMMON(queue_size), 64, 2);
	vm_write(vm, BAR0, COMMON(queue_msix_vector), OCTAVO_VECTORS, 2);
	check(vm_read(vm, BAR0, COMMON(queue_msix_vector), 2) == VIRTIO_MSI_NO_VECTOR,
	      "a bad vector reads back as none");
	vm_write(vm, BAR0, COMMON(msix_config), 0x1234, 2);
	check(vm_read(vm, BAR0, COMMON(msix_config), 2) == VIRTIO_MSI_NO_VECTOR, "likewise");
	vm_write(vm, BAR0, COMMON(queue_desc_lo), 0x12345678, 4);
	vm_write(vm, BAR0, COMMON(queue_desc_hi), 0x9abcdef0, 4);
	check(vm_read(vm, BAR0, COMMON(queue_desc_lo), 8) == 0x9abcdef012345678, "address by halves");
	vm_write(vm, BAR0, COMMON(queue_avail_lo), 0x1122334455667788, 8);
	check(vm_read(vm, BAR0, COMMON(queue_avail_hi), 4) == 0x11223344, "address in one");
	vm_write(vm, BAR0, COMMON(queue_used_lo) + 1, 0xff, 1);
	vm_write(vm, BAR0, COMMON(queue_used_lo) + 2, 0xffff, 2);
	check(!vm_read(vm, BAR0, COMMON(queue_used_lo), 8), "parts of an address are ignored");
	vm_write(vm, BAR0, COMMON(queue_enable), 1, 2);
	vm_write(vm, BAR0, COMMON(queue_size), 128, 2);
	vm_write(vm, BAR0, COMMON(queue_desc_lo), 0, 4);
	vm_write(vm, BAR0, COMMON(queue_enable), 0, 2);
	check(vm_read(vm, BAR0, COMMON(queue_size), 2) == 64 &&
	      vm_read(vm, BAR0, COMMON(queue_desc_lo), 4) == 0x12345678 &&
	      vm_read(vm, BAR0, COMMON(queue_enable), 2) == 1, "an enabled queue stays as it is");
}

void test_registers(void)
{
	struct octavo_queue queue = { .index = 0 };
	struct octavo_config_event display = { .events = 1 };
	struct octavo_generation fail = { .generation = 0 };
	struct octavo_event event;
	struct stage stage;
	struct vm *vm = &stage.vm;
	uint64_t generation;

	stage_begin(&stage, 21);
	check(vm_read(vm, BAR0, COMMON(num_queues), 2) == OCTAVO_QUEUES, "number of queues");
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == 0, "status is 0 after open");
	vm_write(vm, BAR0, COMMON(device_feature_select), 1, 4);
	check(vm_read(vm, BAR0, COMMON(device_feature), 4) == 1, "VERSION_1 is offered");
	vm_write(vm, BAR0, COMMON(device_feature_select), 2, 4);
	check(vm_read(vm, BAR0, COMMON(device_feature), 4) == 0, "nothing above 64");
	vm_write(vm, BAR0, COMMON(device_status), 3, 1);
	vm_write(vm, BAR0, COMMON(device_status), 11, 1);
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == 3, "no FEATURES_OK without VERSION_1");
	vm_write(vm, BAR0, COMMON(device_status), 7, 1);
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == 3, "no DRIVER_OK without FEATURES_OK");
	vm_write(vm, BAR0, COMMON(guest_feature_select), 1, 4);
	vm_write(vm, BAR0, COMMON(guest_feature), 0xff, 4);
	vm_write(vm, BAR0, COMMON(device_status), 11, 1);
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == 3, "no FEATURES_OK for what was not offered");
	vm_write(vm, BAR0, COMMON(guest_feature_select), 0xffffffff, 4);
	vm_write(vm, BAR0, COMMON(guest_feature), 0xff, 4);
	check(vm_read(vm, BAR0, COMMON(guest_feature), 4) == 0, "no feature word -1");
	vm_write(vm, BAR0, COMMON(device_status), 0x40, 1);
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == 3, "a driver cannot ask for a reset of itself");
	test_queues(vm);

	guest_drive(vm);
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == 15, "a driver gets to DRIVER_OK");
	check(worker_event(&stage.worker, &event, 1000) && event.type == OCTAVO_EVENT_RESET,
	      "the worker hears RESET first");
	check_errno(ioctl(stage.worker.fd, OCTAVO_QUEUE_GET, &queue), ESTALE, "a queue before RESET_ACK");
	worker_serve(&stage.worker);
	check(worker_event(&stage.worker, &event, 1000) && event.type == OCTAVO_EVENT_QUEUE &&
	      event.value == 0 && worker_event(&stage.worker, &event, 1000) &&
	      event.type == OCTAVO_EVENT_QUEUE && event.value == 1, "then the queues");
	check(worker_event(&stage.worker, &event, 1000) && event.type == OCTAVO_EVENT_STATUS &&
	      event.value == 15, "then the last status");
	queue.generation = stage.worker.generation;
	check(!ioctl(stage.worker.fd, OCTAVO_QUEUE_GET, &queue) && queue.enabled == 1 &&
	      queue.size == 64 && queue.desc == 0x10000 && queue.driver == 0x14000 &&
	      queue.device == 0x18000, "the queue is as the guest made it");
	vm_write(vm, BAR0, COMMON(guest_feature_select), 0, 4);
	vm_write(vm, BAR0, COMMON(guest_feature), 0, 4);
	check(vm_read(vm, BAR0, COMMON(guest_feature), 4) == (FEATURES & 0xffffffff),
	      "features are fixed after FEATURES_OK");

	generation = vm_read(vm, BAR0, COMMON(config_generation), 1);
	display.generation = stage.worker.generation;
	check_errno(ioctl(stage.worker.fd, OCTAVO_CONFIG_EVENT, &display), 0, "a display event");
	check(vm_read(vm, BAR0, OCTAVO_BAR0_DEVICE, 4) == 1, "the guest sees it");
	check(vm_read(vm, BAR0, COMMON(config_generation), 1) != generation, "in a new configuration");
	check(vm_read(vm, BAR0, OCTAVO_BAR0_ISR, 1) == 2 && vm_read(vm, BAR0, OCTAVO_BAR0_ISR, 1) == 0,
	      "the ISR tells once");
	vm_write(vm, BAR0, OCTAVO_BAR0_DEVICE + 4, 1, 4);
	check(vm_read(vm, BAR0, OCTAVO_BAR0_DEVICE, 4) == 0, "and clears it");
	check(worker_event(&stage.worker, &event, 1000) && event.type == OCTAVO_EVENT_CONFIG &&
	      event.value == 1, "which the worker hears");
	check(vm_read(vm, BAR0, OCTAVO_BAR0_DEVICE + 8, 4) == 1 &&
	      vm_read(vm, BAR0, OCTAVO_BAR0_DEVICE + 12, 4) == 2, "scanouts and capsets as offered");
	fail.generation = stage.worker.generation;
	check_errno(ioctl(stage.worker.fd, OCTAVO_FAIL, &fail), 0, "the worker gives up");
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == (15 | 0x40), "DEVICE_NEEDS_RESET");
	vm_write(vm, BAR0, COMMON(device_status), 0, 1);
	check(vm_read(vm, BAR0, COMMON(device_status), 1) == 0, "status reads 0 at once");
	stage_end(&stage);
}

static int set_irqs(struct vm *vm, uint32_t argsz, uint32_t flags, uint32_t index, uint32_t start,
		    uint32_t count, int32_t fd)
{
	const int32_t fds[4] = { fd, fd, fd, fd };
	/* the structure and, behind it, room for the descriptors */
	struct vfio_irq_set set[2] = { {
		.argsz = argsz, .flags = flags, .index = index, .start = start, .count = count,
	} };

	memcpy(&set[1], fds, sizeof(fds));
	return ioctl(vm->device, VFIO_DEVICE_SET_IRQS, set);
}

void test_interrupts(void)
{
	const uint32_t efd = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	const uint32_t msix = VFIO_PCI_MSIX_IRQ_INDEX;
	struct octavo_interrupt interrupt = { .index = 0 };
	struct octavo_kick kick = { .index = 0 };
	struct stage stage;
	struct vm *vm = &stage.vm;
	int vectors[OCTAVO_VECTORS], kicks, i;

	stage_begin(&stage, 22);
	check_errno(set_irqs(vm, 8, efd, msix, 0, 1, -1), EINVAL, "short argsz");
	check_errno(set_irqs(vm, 36, efd, VFIO_PCI_NUM_IRQS, 0, 1, -1), EINVAL, "no such index");
	check_errno(set_irqs(vm, 36, efd, msix, 0, OCTAVO_VECTORS + 1, -1), EINVAL, "too many");
	check_errno(set_irqs(vm, 36, efd, msix, UINT32_MAX, 2, -1), EINVAL, "start that overflows");
	check_errno(set_irqs(vm, 36, efd, msix, OCTAVO_VECTORS, 1, -1), EINVAL, "start past the end");
	check_errno(set_irqs(vm, 20, efd, msix, 0, 1, -1), EINVAL, "no data");
	check_errno(set_irqs(vm, 36, efd, msix, 0, 1, -2), EINVAL, "eventfd -2");
	check_errno(set_irqs(vm, 36, efd, msix, 0, 1, 9999), EBADF, "no such fd");
	check_errno(set_irqs(vm, 36, efd, msix, 0, 1, vm->memory_fd), EINVAL, "no eventfd");
	check_errno(set_irqs(vm, 36, efd, VFIO_PCI_INTX_IRQ_INDEX, 0, 1, -1), EINVAL, "INTx");
	check_errno(set_irqs(vm, 36, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_MASK, msix, 0, 1,
			     -1), ENOTTY, "masking");
	check_errno(set_irqs(vm, 36, 0xffffffff, msix, 0, 1, -1), EINVAL, "all flags");

	for (i = 0; i < OCTAVO_VECTORS; i++)
		vectors[i] = vm_eventfd(vm, msix, (uint32_t)i);
	check(!set_irqs(vm, 20, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, msix, 1, 1, 0) &&
	      eventfd_fired(vectors[1], 1000) && !eventfd_fired(vectors[0], 0), "loopback");
	interrupt.generation = stage.worker.generation;
	check_errno(ioctl(stage.worker.fd, OCTAVO_INTERRUPT, &interrupt), 0, "interrupt with no vector");
	check(!eventfd_fired(vectors[0], 0), "is silent");
	guest_drive(vm);
	check_errno(ioctl(stage.worker.fd, OCTAVO_INTERRUPT, &interrupt), ESTALE, "an interrupt of old");
	worker_serve(&stage.worker);
	interrupt.generation = stage.worker.generation;
	check(!ioctl(stage.worker.fd, OCTAVO_INTERRUPT, &interrupt) && eventfd_fired(vectors[0], 1000),
	      "queue 0 interrupts");
	interrupt.index = 1;
	check(!ioctl(stage.worker.fd, OCTAVO_INTERRUPT, &interrupt) && eventfd_fired(vectors[1], 1000),
	      "queue 1 interrupts");
	interrupt.index = 2;
	check_errno(ioctl(stage.worker.fd, OCTAVO_INTERRUPT, &interrupt), EINVAL, "queue 2");
	check(vm_read(vm, BAR0, OCTAVO_BAR0_ISR, 1) == 1, "the ISR has the queue bit");

	vm_write(vm, BAR0, OCTAVO_BAR0_NOTIFY + 4, 1, 2);
	kicks = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	kick.index = 1;
	kick.fd = kicks;
	check(!ioctl(stage.worker.fd, OCTAVO_KICK_SET, &kick) && eventfd_fired(kicks, 1000),
	      "a kick that came early is not lost");
	vm_write(vm, BAR0, OCTAVO_BAR0_NOTIFY + 4, 1, 4);
	check(eventfd_fired(kicks, 1000), "a kick comes");
	vm_write(vm, BAR0, OCTAVO_BAR0_NOTIFY + 6, 1, 2);
	vm_write(vm, BAR0, OCTAVO_BAR0_NOTIFY + 8, 1, 2);
	check(!eventfd_fired(kicks, 0), "kicks beside the registers do nothing");
	kick.index = 2;
	check_errno(ioctl(stage.worker.fd, OCTAVO_KICK_SET, &kick), EINVAL, "kick of queue 2");
	kick.index = 0;
	kick.fd = -2;
	check_errno(ioctl(stage.worker.fd, OCTAVO_KICK_SET, &kick), EINVAL, "kick fd -2");
	kick.fd = 9999;
	check_errno(ioctl(stage.worker.fd, OCTAVO_KICK_SET, &kick), EBADF, "kick of no fd");
	kick.index = 1;
	kick.fd = -1;
	check_errno(ioctl(stage.worker.fd, OCTAVO_KICK_SET, &kick), 0, "kick of none");
	vm_write(vm, BAR0, OCTAVO_BAR0_NOTIFY + 4, 1, 2);
	check(!eventfd_fired(kicks, 0), "the old one is let go");
	check_errno(set_irqs(vm, 20, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, msix, 0, 0, 0),
		    0, "all vectors off");
	interrupt.index = 0;
	check(!ioctl(stage.worker.fd, OCTAVO_INTERRUPT, &interrupt) && !eventfd_fired(vectors[0], 0),
	      "interrupts to none are silent");
	for (i = 0; i < OCTAVO_VECTORS; i++)
		close(vectors[i]);
	close(kicks);
	stage_end(&stage);
}
