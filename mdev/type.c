// SPDX-License-Identifier: GPL-2.0-only
/*
 * type.c - the sizes that a GPU can be folded to
 */
#include <linux/sysfs.h>

#include "vgpu.h"

static const struct {
	const char *id;
	const char *name;
	u32 eighths;
} types[OCTAVO_TYPES] = {
	{ "octavo_1_2", "Octavo 1/2", 4 },
	{ "octavo_1_4", "Octavo 1/4", 2 },
	{ "octavo_1_8", "Octavo 1/8", 1 },
};

const char *type_name(u32 eighths)
{
	unsigned int i;

	for (i = 0; i < OCTAVO_TYPES; i++)
		if (types[i].eighths == eighths)
			return types[i].name;
	return "?";
}

void types_init(struct octavo_registration *registration)
{
	unsigned int i;

	for (i = 0; i < OCTAVO_TYPES; i++) {
		registration->types[i].eighths = types[i].eighths;
		registration->types[i].mdev.sysfs_name = types[i].id;
		registration->types[i].mdev.pretty_name = types[i].name;
		registration->type_list[i] = &registration->types[i].mdev;
	}
}

unsigned int type_available(struct mdev_type *mtype)
{
	struct octavo_registration *reg =
		container_of(mtype->parent, struct octavo_registration, mdev);
	u32 eighths_free;
	u64 vram_bytes;
	u16 heads;

	gpu_share(reg->gpu, &eighths_free, &heads, &vram_bytes);
	return eighths_free / container_of(mtype, struct octavo_type, mdev)->eighths;
}

ssize_t type_description(struct mdev_type *mtype, char *buf)
{
	struct octavo_registration *reg =
		container_of(mtype->parent, struct octavo_registration, mdev);
	u32 eighths = container_of(mtype, struct octavo_type, mdev)->eighths;
	u32 eighths_free;
	u64 vram_bytes;
	u16 heads;

	gpu_share(reg->gpu, &eighths_free, &heads, &vram_bytes);
	return sysfs_emit(buf, "num_heads=%u, framebuffer=%lluM, max_resolution=%ux%u, max_instance=%u\n",
			  heads, vram_bytes * eighths / OCTAVO_EIGHTHS / OCTAVO_VRAM_UNIT,
			  OCTAVO_MODE_WIDTH_MAX, OCTAVO_MODE_HEIGHT_MAX, OCTAVO_EIGHTHS / eighths);
}
