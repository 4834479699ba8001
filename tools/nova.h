/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * nova - the part of nova.conf that has OpenStack Nova hand out a host's vGPUs
 *
 * Nova takes one type for each GPU, and sections "[mdev_TYPE]" with the GPUs of a type. A type's id
 * begins with the GPU's driver, so GPUs of one size may need several sections.
 */
#ifndef OCTAVO_TOOLS_NOVA_H
#define OCTAVO_TOOLS_NOVA_H

#include <glib.h>
#include <stdbool.h>

/*
 * @gpus: records of the GPUs (aa{sv}).
 * @wanted: NULL-terminated; "SIZE" (1/2, 1/4, 1/8) for every folded GPU, "ADDRESS=SIZE" for one,
 * which goes before. Without a "SIZE" the GPUs that are not named are left out.
 * @classes: a resource class for each size even if there is one size only.
 *
 * Returns sections (aa{sv}) in the order of their first GPU: "type" s, "size" s, "device_addresses"
 * as, "mdev_class" s; the caller's. Errors are CLIENT_ERROR's: USAGE for words that are none of the
 * above, NOT_FOUND for a GPU that is not there, FAILED for one that is not folded.
 */
GVariant *nova_sections(GVariant *gpus, const char *const *wanted, bool classes, GError **error);

/* The text of nova.conf; the caller's. */
char *nova_text(GVariant *sections);

#endif /* OCTAVO_TOOLS_NOVA_H */
