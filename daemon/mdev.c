// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/mdev.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

G_DEFINE_QUARK(octavo-mdev-error, mdev_error)

unsigned int mdev_type_eighths(const char *name)
{
	static const struct {
		const char *text;
		unsigned int eighths;
	} shares[] = {
		{ "1/2", 4 }, { "1/4", 2 }, { "1/8", 1 }, { "1_2", 4 }, { "1_4", 2 }, { "1_8", 1 },
	};

	for (unsigned int i = 0; i < G_N_ELEMENTS(shares); i++) {
		g_autofree char *suffix = g_strconcat("octavo_", shares[i].text, NULL);

		if (g_str_equal(name, shares[i].text) || g_str_equal(name, suffix))
			return shares[i].eighths;
		g_free(suffix);
		suffix = g_strconcat("-octavo_", shares[i].text, NULL);
		if (g_str_has_suffix(name, suffix))
			return shares[i].eighths;
	}
	return 0;
}

/* Writes one word to a sysfs file; 0 or a positive errno. */
static int mdev_write(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, word, strlen(word)) < 0)
		err = errno;
	close(fd);
	return err;
}

static const struct device_type *mdev_find_type(const struct gpu *gpu, unsigned int eighths)
{
	for (unsigned int i = 0; i < gpu->types->len; i++) {
		const struct device_type *type = g_ptr_array_index(gpu->types, i);

		if (type->eighths == eighths)
			return type;
	}
	return NULL;
}

bool mdev_create(const char *root, const struct gpu *gpu, unsigned int eighths, const char *uuid,
		 GError **error)
{
	const struct device_type *type = mdev_find_type(gpu, eighths);
	g_autofree char *path = NULL;
	int err;

	if (!type) {
		g_set_error(error, MDEV_ERROR, MDEV_ERROR_TYPE, "GPU %s is not folded (%s%s%s)",
			    gpu->address_text, gpu_state_name(gpu->state),
			    *gpu->reason ? ": " : "", gpu->reason);
		return false;
	}
	path = g_strdup_printf("%s/sys/bus/pci/devices/%s/mdev_supported_types/%s/create", root,
			       gpu->address_text, type->id);
	err = mdev_write(path, uuid);
	switch (err) {
	case 0:
		return true;
	case ENOSPC:
		g_set_error(error, MDEV_ERROR, MDEV_ERROR_FULL,
			    "a vGPU of %s takes %u eighths, GPU %s has %u of %u free: take a smaller type, another GPU, or remove a vGPU",
			    type->id, eighths, gpu->address_text, OCTAVO_EIGHTHS - gpu->eighths_used,
			    OCTAVO_EIGHTHS);
		break;
	case EEXIST:
		g_set_error(error, MDEV_ERROR, MDEV_ERROR_EXISTS,
			    "there is a vGPU %s already: take another UUID", uuid);
		break;
	default:
		g_set_error(error, MDEV_ERROR, MDEV_ERROR_FAILED, "writing %s to %s: %s: see dmesg",
			    uuid, path, g_strerror(err));
	}
	return false;
}

bool mdev_remove(const char *root, const char *uuid, GError **error)
{
	g_autofree char *path = g_strdup_printf("%s/sys/bus/mdev/devices/%s/remove", root, uuid);
	int err = mdev_write(path, "1");

	if (!err)
		return true;
	g_set_error(error, MDEV_ERROR, err == ENOENT ? MDEV_ERROR_GONE : MDEV_ERROR_FAILED,
		    "removing vGPU %s: %s", uuid, g_strerror(err));
	return false;
}

static bool mdev_run(const char *const *argv, GError **error)
{
	g_autofree char *complaint = NULL;
	int status;

	if (!g_spawn_sync("/", (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL,
			  NULL, NULL, NULL, &complaint, &status, error)) {
		g_prefix_error(error, "mdevctl keeps vGPUs over a reboot: ");
		return false;
	}
	if (g_spawn_check_wait_status(status, NULL))
		return true;
	g_set_error(error, MDEV_ERROR, MDEV_ERROR_FAILED, "mdevctl %s: %s", argv[1],
		    g_strstrip(complaint));
	return false;
}

bool mdev_define(const char *uuid, GError **error)
{
	const char *const define[] = { "mdevctl", "define", "--auto", "--uuid", uuid, NULL };

	return mdev_run(define, error);
}

bool mdev_undefine(const char *uuid, GError **error)
{
	const char *const undefine[] = { "mdevctl", "undefine", "--uuid", uuid, NULL };

	return mdev_run(undefine, error);
}
