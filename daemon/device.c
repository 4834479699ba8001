// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/device.h"

#include <pciaccess.h>
#include <string.h>

#define PCI_BASE_CLASS_DISPLAY 0x03u

static void device_free(void *data)
{
	struct device *device = data;

	g_free(device->name);
	g_free(device->driver);
	g_free(device);
}

static void device_type_free(void *data)
{
	struct device_type *type = data;

	g_free(type->id);
	g_free(type->name);
	g_free(type->description);
	g_free(type->device_api);
	g_free(type);
}

static char *device_folder(const char *root, const struct pci_address *address)
{
	g_autofree char *name = pci_address_format(address);

	return g_strdup_printf("%s/sys/bus/pci/devices/%s", root, name);
}

/* One line of a sysfs file without its end, or NULL. */
static char *device_read(const char *folder, const char *name)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);
	char *text = NULL;

	if (g_file_get_contents(path, &text, NULL, NULL))
		g_strchomp(text);
	return text;
}

static char *device_link_name(const char *folder, const char *name)
{
	g_autofree char *path = g_build_filename(folder, name, NULL);
	g_autofree char *target = g_file_read_link(path, NULL);

	return target ? g_path_get_basename(target) : NULL;
}

char *device_driver(const char *root, const struct pci_address *address)
{
	g_autofree char *folder = device_folder(root, address);

	return device_link_name(folder, "driver");
}

uint64_t device_driver_vram(const char *root, const struct pci_address *address)
{
	g_autofree char *folder = device_folder(root, address);
	g_autofree char *text = device_read(folder, "mem_info_vram_total");

	return text ? g_ascii_strtoull(text, NULL, 10) : 0;
}

/* NVIDIA's own driver: a node per GPU, named after its minor number, and three for all of them. */
static void device_nvidia_nodes(GStrvBuilder *nodes, const char *root,
				const struct pci_address *address)
{
	g_autofree char *text = pci_address_format(address);
	g_autofree char *path = g_strdup_printf("%s/proc/driver/nvidia/gpus/%s", root, text);
	g_autofree char *information = device_read(path, "information");
	const char *minor = information ? strstr(information, "Device Minor:") : NULL;

	g_strv_builder_add_many(nodes, "/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", NULL);
	if (!minor)
		return;
	g_autofree char *node = g_strdup_printf("/dev/nvidia%" G_GUINT64_FORMAT,
						g_ascii_strtoull(minor + strlen("Device Minor:"), NULL, 10));

	g_strv_builder_add(nodes, node);
}

char **device_nodes(const char *root, const struct pci_address *address, const char *driver)
{
	g_autofree char *device = device_folder(root, address);
	g_autofree char *folder = g_build_filename(device, "drm", NULL);
	g_autoptr(GStrvBuilder) nodes = g_strv_builder_new();
	g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
	const char *name;

	g_strv_builder_add(nodes, "/dev/udmabuf");
	while (dir && (name = g_dir_read_name(dir))) {
		if (!g_str_has_prefix(name, "renderD"))
			continue;
		g_autofree char *node = g_strconcat("/dev/dri/", name, NULL);

		g_strv_builder_add(nodes, node);
	}
	if (g_strcmp0(driver, "nvidia") == 0)
		device_nvidia_nodes(nodes, root, address);
	return g_strv_builder_end(nodes);
}

static int device_type_compare(const void *a, const void *b)
{
	const struct device_type *const *left = a, *const *right = b;

	return (int)(*right)->eighths - (int)(*left)->eighths;
}

GPtrArray *device_types(const char *root, const struct pci_address *address)
{
	static const struct {
		const char *suffix;
		unsigned int eighths;
	} kinds[] = { { "-octavo_1_2", 4 }, { "-octavo_1_4", 2 }, { "-octavo_1_8", 1 } };
	GPtrArray *types = g_ptr_array_new_with_free_func(device_type_free);
	g_autofree char *device = device_folder(root, address);
	g_autofree char *folder = g_build_filename(device, "mdev_supported_types", NULL);
	g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
	const char *id;

	while (dir && (id = g_dir_read_name(dir))) {
		for (unsigned int i = 0; i < G_N_ELEMENTS(kinds); i++) {
			if (!g_str_has_suffix(id, kinds[i].suffix))
				continue;
			g_autofree char *path = g_build_filename(folder, id, NULL);
			g_autofree char *available = device_read(path, "available_instances");
			struct device_type *type = g_new0(struct device_type, 1);

			type->id = g_strdup(id);
			type->name = device_read(path, "name");
			type->description = device_read(path, "description");
			type->device_api = device_read(path, "device_api");
			type->eighths = kinds[i].eighths;
			if (available)
				type->available = (unsigned int)g_ascii_strtoull(available, NULL, 10);
			g_ptr_array_add(types, type);
		}
	}
	g_ptr_array_sort(types, device_type_compare);
	return types;
}

char *device_type_id(const char *root, const struct pci_address *address, unsigned int eighths)
{
	g_autoptr(GPtrArray) types = device_types(root, address);

	for (unsigned int i = 0; i < types->len; i++) {
		const struct device_type *type = g_ptr_array_index(types, i);

		if (type->eighths == eighths)
			return g_strdup(type->id);
	}
	return NULL;
}

/* Video memory is behind the largest prefetchable BAR; without resizable BARs it may show less. */
static uint64_t device_bar_vram(struct pci_device *pci)
{
	uint64_t largest = 0;

	if (pci_device_probe(pci))
		return 0;
	for (unsigned int i = 0; i < G_N_ELEMENTS(pci->regions); i++)
		if (!pci->regions[i].is_IO && pci->regions[i].is_prefetchable &&
		    pci->regions[i].size > largest)
			largest = pci->regions[i].size;
	return largest;
}

static struct device *device_new(struct pci_device *pci)
{
	struct device *device = g_new0(struct device, 1);
	const char *vendor = pci_device_get_vendor_name(pci);
	const char *model = pci_device_get_device_name(pci);

	device->address.domain = pci->domain;
	device->address.bus = (uint8_t)pci->bus;
	device->address.devfn = (uint8_t)(pci->dev << 3 | pci->func);
	device->vendor_id = (uint16_t)pci->vendor_id;
	device->device_id = (uint16_t)pci->device_id;
	if (vendor && model)
		device->name = g_strdup_printf("%s %s", vendor, model);
	else
		device->name = g_strdup_printf("%04x:%04x", pci->vendor_id, pci->device_id);
	device->driver = device_driver("", &device->address);
	device->vram_bytes = device_driver_vram("", &device->address);
	device->vram_source = "driver";
	if (!device->vram_bytes) {
		device->vram_bytes = device_bar_vram(pci);
		device->vram_source = device->vram_bytes ? "bar" : "unknown";
	}
	return device;
}

GPtrArray *device_list(GError **error)
{
	g_autoptr(GPtrArray) devices = g_ptr_array_new_with_free_func(device_free);
	struct pci_device_iterator *iterator;
	struct pci_device *pci;
	int err;

	/* libpciaccess looks at the bus once, in its init: a new look needs a new init */
	err = pci_system_init();
	if (err) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED,
			    "cannot read the PCI bus: %s: is /sys mounted?", g_strerror(err));
		return NULL;
	}
	iterator = pci_slot_match_iterator_create(NULL);
	while ((pci = pci_device_next(iterator)))
		if (pci->device_class >> 16 == PCI_BASE_CLASS_DISPLAY)
			g_ptr_array_add(devices, device_new(pci));
	pci_iterator_destroy(iterator);
	pci_system_cleanup();
	return g_steal_pointer(&devices);
}
