/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * control - octavod's side of /dev/octavo
 *
 * A thin layer over the ioctls of mdev/octavo.h: file descriptor in, GError out. It keeps no state
 * but the descriptor. One thread (the main loop's).
 */
#ifndef OCTAVO_DAEMON_CONTROL_H
#define OCTAVO_DAEMON_CONTROL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "mdev/octavo.h"

#define CONTROL_PATH "/dev/octavo"

#define CONTROL_ERROR (control_error_quark())
GQuark control_error_quark(void);
enum control_error {
	CONTROL_ERROR_ABSENT,	/* the module is not loaded */
	CONTROL_ERROR_BUSY,	/* another octavod holds the descriptor; or the object is in use */
	CONTROL_ERROR_ABI,	/* the module speaks another version */
	CONTROL_ERROR_GONE,	/* no such vGPU, parent or open any more */
	CONTROL_ERROR_FAILED,	/* anything else */
};

struct control;

/* One record of the module, or NULL when the descriptor has failed: close the control. */
typedef void (*control_event_fn)(const struct octavo_control_event *event, void *data);

struct control *control_open(const char *path, GError **error);
void control_close(struct control *control);

/* Calls @fn from the main loop for every record. Once, after control_open(). */
void control_watch(struct control *control, control_event_fn fn, void *data);

bool control_parent_add(struct control *control, struct octavo_parent *parent, GError **error);
bool control_parent_remove(struct control *control, const struct octavo_parent *parent,
			   GError **error);
/* Arrays of struct octavo_parent and struct octavo_vgpu; g_array_unref() them. */
GArray *control_parents(struct control *control);
GArray *control_vgpus(struct control *control);

bool control_set_mode(struct control *control, const uint8_t uuid[16], uint32_t width,
		      uint32_t height, GError **error);

/* Returns the session fd, the caller's to close, or -1. BUSY: this open has a worker already. */
int control_session_open(struct control *control, const uint8_t uuid[16], uint64_t session,
			 GError **error);
/* @reason is cut to what the module takes. */
bool control_session_refuse(struct control *control, const uint8_t uuid[16], uint64_t session,
			    const char *reason, GError **error);

#endif /* OCTAVO_DAEMON_CONTROL_H */
