/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * device - the GPUs that this host has, and what sysfs says about their vGPU types
 *
 * A GPU is any PCI function of base class 03 (display controller). Nothing is kept between calls;
 * one thread.
 */
#ifndef OCTAVO_DAEMON_DEVICE_H
#define OCTAVO_DAEMON_DEVICE_H

#include "daemon/ident.h"

struct device {
	struct pci_address address;
	uint16_t vendor_id;
	uint16_t device_id;
	char *name;		/* "Vendor Device" out of pci.ids, or the numbers */
	char *driver;		/* NULL: none bound */
	uint64_t vram_bytes;	/* 0: not known */
	const char *vram_source; /* "driver", "bar" or "unknown" */
};

/* One of a parent's mdev types, as sysfs has it. */
struct device_type {
	char *id;		/* with the driver's prefix: "amdgpu-octavo_1_4" */
	char *name;
	char *description;
	char *device_api;
	unsigned int eighths;
	unsigned int available;
};

/* Array of struct device *; g_ptr_array_unref() it. NULL with an error if PCI cannot be read. */
GPtrArray *device_list(GError **error);

/* @root: "" but in tests, a folder that stands for /. All belong to the caller. */
char *device_driver(const char *root, const struct pci_address *address);
/* amdgpu's own figure of its memory; 0 if the driver has none. */
uint64_t device_driver_vram(const char *root, const struct pci_address *address);
/*
 * The nodes of /dev that a program opens to render on the GPU, those of its @driver (NULL: none)
 * and /dev/udmabuf, with which a software renderer shares its memory; g_strfreev() it.
 */
char **device_nodes(const char *root, const struct pci_address *address, const char *driver);
/* Octavo's types of a GPU, biggest first; empty if it is not registered. */
GPtrArray *device_types(const char *root, const struct pci_address *address);
/*
 * Id of the GPU's type of @eighths, NULL if it has none. An mdev's own link to its type comes a
 * moment after the module has told of the mdev; the parent's folder is there before.
 */
char *device_type_id(const char *root, const struct pci_address *address, unsigned int eighths);

#endif /* OCTAVO_DAEMON_DEVICE_H */
