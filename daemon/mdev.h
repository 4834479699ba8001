/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mdev - creating and removing vGPUs, as mdevctl does it: by writing to sysfs
 */
#ifndef OCTAVO_DAEMON_MDEV_H
#define OCTAVO_DAEMON_MDEV_H

#include "daemon/gpu.h"

#define MDEV_ERROR (mdev_error_quark())
GQuark mdev_error_quark(void);
enum mdev_error {
	MDEV_ERROR_TYPE,	/* no such type */
	MDEV_ERROR_EXISTS,	/* the UUID is taken */
	MDEV_ERROR_FULL,	/* not enough eighths free */
	MDEV_ERROR_GONE,	/* no such vGPU */
	MDEV_ERROR_FAILED,
};

/*
 * Eighths of a type as a person writes it: "1/4", "1_4", "octavo_1_4" or with a driver in front;
 * 0: no type.
 */
unsigned int mdev_type_eighths(const char *name);

/* @root: "" but in tests. @uuid is in canonical form. */
bool mdev_create(const char *root, const struct gpu *gpu, unsigned int eighths, const char *uuid,
		 GError **error);

/* Blocks until whoever has the vGPU open lets it go: not for the main loop's thread. */
bool mdev_remove(const char *root, const char *uuid, GError **error);

/* Has mdevctl start the running vGPU at every boot, or forget it. Runs mdevctl and waits. */
bool mdev_define(const char *uuid, GError **error);
bool mdev_undefine(const char *uuid, GError **error);

#endif /* OCTAVO_DAEMON_MDEV_H */
