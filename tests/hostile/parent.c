// SPDX-License-Identifier: LGPL-2.1-or-later
/* parent.c - the GPU's driver goes and comes back, the GPU itself too, under vGPUs that live */
#include "hostile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static char driver[256];	/* of the parent, as a folder of sysfs */

static int sysfs_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret;

	if (fd < 0)
		return errno;
	ret = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return ret;
}

static int driver_write(const char *file)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", driver, file);
	return sysfs_write(path, host.parent);
}

static void *unbind_thread(void *data)
{
	(void)data;
	return (void *)(intptr_t)driver_write("unbind");
}

static void *remove_thread(void *data)
{
	char path[128];

	(void)data;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/remove", host.parent);
	return (void *)(intptr_t)sysfs_write(path, "1");
}

static uint32_t parent_state(void)
{
	struct octavo_parent_list list = { .index = 0 };

	for (; !ioctl(host.control, OCTAVO_PARENT_LIST, &list); list.index++)
		if (list.parent.domain == host.wish.domain && list.parent.bus == host.wish.bus &&
		    list.parent.devfn == host.wish.devfn)
			return list.parent.state;
	return UINT32_MAX;
}

/* The parent goes, by @leave, while one vGPU is idle and one is open; then it comes back. */
static void leave_and_return(const char *how, void *(*leave)(void *), unsigned int n)
{
	struct octavo_control_event event;
	struct octavo_vgpu info;
	struct stage stage;
	pthread_t thread;
	uint8_t idle[16];
	void *result;
	int request;

	uuid_make(n, idle);
	check_errno(vgpu_create("octavo_1_4", idle), 0, "%s: an idle vGPU", how);
	stage_begin(&stage, n + 1);
	request = vm_eventfd(&stage.vm, VFIO_PCI_REQ_IRQ_INDEX, 0);
	if (pthread_create(&thread, NULL, leave, NULL))
		give_up("no thread");
	check(eventfd_fired(request, 10000), "%s: the VM is asked to let go", how);
	vm_close(&stage.vm);
	pthread_join(thread, &result);
	check(!result, "%s: goes on when it has", how);
	worker_close(&stage.worker);
	check(vgpu_info(idle, &info) && vgpu_info(stage.vm.uuid, &info), "%s: both vGPUs are gone", how);
	check(access(host.types, F_OK) < 0, "%s: the types too", how);
	check(parent_state() == OCTAVO_PARENT_WAITING, "%s: the parent waits", how);
	check(control_wait(OCTAVO_CONTROL_PARENT, NULL, &event, 1000), "%s: PARENT tells", how);
	close(request);
}

void test_parent(void)
{
	char path[128];
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", host.parent);
	length = readlink(path, driver, sizeof(driver) - 32);
	if (length < 0)
		give_up("the parent has no driver");
	driver[length] = '\0';
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/%s", strrchr(driver, '/') + 1);
	snprintf(driver, sizeof(driver), "%s", path);

	leave_and_return("unbind", unbind_thread, 80);
	check(!driver_write("bind") && parent_state() == OCTAVO_PARENT_REGISTERED &&
	      type_available("octavo_1_8") == 8, "bind: the types are back, nothing is taken");

	leave_and_return("hot-removal", remove_thread, 90);
	check(!sysfs_write("/sys/bus/pci/rescan", "1") &&
	      parent_state() == OCTAVO_PARENT_REGISTERED && type_available("octavo_1_8") == 8,
	      "rescan: the types are back, nothing is taken");
}
