// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/device.h"

#include "daemon/opener.h"
#include "daemon/uevent.h"
#include "tests/unit/folder.h"
#include "tests/unit/suite.h"

#define DEVICE	"sys/bus/pci/devices/0000:01:00.0"
#define TYPES	DEVICE "/mdev_supported_types"

static const struct pci_address address = { 0, 1, 0 };

static void add_type(const char *root, const char *id, const char *available)
{
	const struct {
		const char *name;
		const char *text;
	} files[] = {
		{ "name", "Octavo\n" },
		{ "description", "num_heads=1\n" },
		{ "device_api", "vfio-pci\n" },
		{ "available_instances", available },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *path = g_build_filename(TYPES, id, files[i].name, NULL);

		folder_write(root, path, files[i].text);
	}
}

static char *nodes(const char *root, const char *driver)
{
	g_auto(GStrv) list = device_nodes(root, &address, driver);

	return g_strjoinv(" ", list);
}

static void nodes_of_a_gpu(void)
{
	char *root = folder_new();
	g_autofree char *bare = nodes(root, NULL), *mesa = NULL, *nvidia = NULL;

	CU_ASSERT_STRING_EQUAL(bare, "/dev/udmabuf");
	folder_write(root, DEVICE "/drm/card1/dev", "226:1\n");
	folder_write(root, DEVICE "/drm/renderD129/dev", "226:129\n");
	mesa = nodes(root, "amdgpu");
	CU_ASSERT_STRING_EQUAL(mesa, "/dev/udmabuf /dev/dri/renderD129");
	folder_write(root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
		     "Model: \t\t X\nDevice Minor: \t 2\nGPU Excluded:\t No\n");
	nvidia = nodes(root, "nvidia");
	CU_ASSERT_STRING_EQUAL(nvidia, "/dev/udmabuf /dev/dri/renderD129 /dev/nvidiactl "
				       "/dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia2");
	folder_free(root);
}

static void types_of_sysfs(void)
{
	char *root = folder_new();
	GPtrArray *types;
	struct device_type *type;
	char *id;

	add_type(root, "bochs-drm-octavo_1_8", "5\n");
	add_type(root, "bochs-drm-octavo_1_2", "1\n");
	add_type(root, "i915-GVTg_V5_4", "1\n");
	types = device_types(root, &address);
	CU_ASSERT_EQUAL_FATAL(types->len, 2);
	type = g_ptr_array_index(types, 0);
	CU_ASSERT_STRING_EQUAL(type->id, "bochs-drm-octavo_1_2");
	CU_ASSERT_EQUAL(type->eighths, 4);
	CU_ASSERT_EQUAL(type->available, 1);
	type = g_ptr_array_index(types, 1);
	CU_ASSERT_EQUAL(type->eighths, 1);
	CU_ASSERT_EQUAL(type->available, 5);
	CU_ASSERT_STRING_EQUAL(type->device_api, "vfio-pci");
	g_ptr_array_unref(types);
	id = device_type_id(root, &address, 1);
	CU_ASSERT_STRING_EQUAL(id, "bochs-drm-octavo_1_8");
	g_free(id);
	CU_ASSERT_PTR_NULL(device_type_id(root, &address, 2));
	folder_free(root);
}

static void no_types_no_trouble(void)
{
	char *root = folder_new();
	GPtrArray *types = device_types(root, &address);

	CU_ASSERT_EQUAL(types->len, 0);
	g_ptr_array_unref(types);
	CU_ASSERT_PTR_NULL(device_driver(root, &address));
	CU_ASSERT_PTR_NULL(device_type_id(root, &address, 4));
	CU_ASSERT_EQUAL(device_driver_vram(root, &address), 0);
	folder_free(root);
}

static void driver_and_vram(void)
{
	char *root = folder_new();
	g_autofree char *driver = NULL;

	folder_link(root, DEVICE "/driver", "../../../bus/pci/drivers/amdgpu");
	folder_write(root, DEVICE "/mem_info_vram_total", "8573157376\n");
	driver = device_driver(root, &address);
	CU_ASSERT_STRING_EQUAL(driver, "amdgpu");
	CU_ASSERT_EQUAL(device_driver_vram(root, &address), 8573157376ULL);
	folder_free(root);
}

static void check_opener(const char *words, size_t bytes, const char *name)
{
	g_autofree char *found = opener_name(words, bytes);

	CU_ASSERT_STRING_EQUAL(found, name);
}

static void opener_names(void)
{
	static const char libvirt[] = "/usr/bin/qemu-system-x86_64\0-name\0guest=desk,debug-threads=on\0-S";
	static const char plain[] = "qemu\0-name\0desk";
	static const char none[] = "/usr/bin/python3\0x.py";
	static const char last[] = "qemu\0-name";

	check_opener(libvirt, sizeof(libvirt), "desk");
	check_opener(plain, sizeof(plain), "desk");
	check_opener(none, sizeof(none), "python3");
	check_opener(last, sizeof(last), "qemu");
	check_opener("", 0, "");
	check_opener("no end", 6, "");
}

static void uevents(void)
{
	static const char octavo[] = "add@/devices/virtual/misc/octavo\0ACTION=add\0SUBSYSTEM=misc\0DEVNAME=octavo";
	static const char pci[] = "bind@/devices/pci0000:00/0000:00:01.0\0ACTION=bind\0SUBSYSTEM=pci";
	static const char other[] = "add@/devices/x\0SUBSYSTEM=block\0DEVNAME=octavo2";
	static const char udev[] = "libudev\0SUBSYSTEM=pci";

	CU_ASSERT_EQUAL(uevent_parse(octavo, sizeof(octavo)), UEVENT_OCTAVO);
	CU_ASSERT_EQUAL(uevent_parse(pci, sizeof(pci)), UEVENT_PCI);
	CU_ASSERT_EQUAL(uevent_parse(other, sizeof(other)), UEVENT_OTHER);
	CU_ASSERT_EQUAL(uevent_parse(udev, sizeof(udev)), UEVENT_OTHER);
	CU_ASSERT_EQUAL(uevent_parse(octavo, sizeof(octavo) - 1), UEVENT_OTHER);
	CU_ASSERT_EQUAL(uevent_parse("", 0), UEVENT_OTHER);
}

SUITE_RUN("device",
	  { "octavo's types are found, biggest first, others left alone", types_of_sysfs },
	  { "a GPU without types, driver or memory figure is no error", no_types_no_trouble },
	  { "driver and memory come from sysfs", driver_and_vram },
	  { "a VM's name is read from QEMU's command line", opener_names },
	  { "a kernel event tells PCI, octavo and the rest apart", uevents },
	  { "a GPU has nodes by its driver", nodes_of_a_gpu })
