/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * client - octavoctl's side of org.octavo1
 *
 * Objects come as records: variants of type a{sv} with the properties' names in snake_case
 * ("VramBytes" is "vram_bytes"), which is also what --json prints.
 */
#ifndef OCTAVO_TOOLS_CLIENT_H
#define OCTAVO_TOOLS_CLIENT_H

#include <gio/gio.h>

#define CLIENT_NAME		"org.octavo1"
#define CLIENT_PATH		"/org/octavo1"
#define CLIENT_MANAGER		"org.octavo1.Manager"
#define CLIENT_GPU		"org.octavo1.Gpu"
#define CLIENT_VGPU		"org.octavo1.Vgpu"

#define CLIENT_ERROR (client_error_quark())
GQuark client_error_quark(void);
/* The values are octavoctl's exit statuses; octavoctl(1) lists them. */
enum client_error {
	CLIENT_ERROR_FAILED = 1,	/* octavod refused or could not do it */
	CLIENT_ERROR_USAGE = 2,
	CLIENT_ERROR_NO_DAEMON = 3,
	CLIENT_ERROR_DENIED = 4,
	CLIENT_ERROR_NOT_FOUND = 5,
};

/* The system bus. */
GDBusConnection *client_connect(GError **error);

/* All objects that have @interface, an array of records (aa{sv}), each with its "path". */
GVariant *client_list(GDBusConnection *bus, const char *interface, GError **error);
/* The record of one vGPU, by UUID. */
GVariant *client_vgpu(GDBusConnection *bus, const char *uuid, GError **error);
/* Properties of the manager. */
GVariant *client_manager(GDBusConnection *bus, GError **error);

/* @arguments floating or NULL; the answer's tuple. polkit may ask the user. */
GVariant *client_call(GDBusConnection *bus, const char *path, const char *interface,
		      const char *method, GVariant *arguments, GError **error);

/* D-Bus object of a vGPU, or of a GPU by its address; NOT_FOUND names the next step. The caller's. */
char *client_vgpu_path(GDBusConnection *bus, const char *uuid, GError **error);
char *client_gpu_path(GDBusConnection *bus, const char *address, GError **error);

/* "VramBytes" to "vram_bytes"; the caller's. */
char *client_snake(const char *name);

#endif /* OCTAVO_TOOLS_CLIENT_H */
