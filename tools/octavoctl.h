/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * octavoctl - what a command gets, and the table of commands
 */
#ifndef OCTAVO_TOOLS_OCTAVOCTL_H
#define OCTAVO_TOOLS_OCTAVOCTL_H

#include <gio/gio.h>
#include <stdbool.h>

struct octavoctl {
	GDBusConnection *bus;	/* NULL for commands that need no daemon */
	bool json;
	int argc;		/* words behind the command's name */
	char **argv;
};

/* Returns an exit status; with an error set the caller prints it and its code is the status. */
typedef int (*command_fn)(struct octavoctl *ctl, GError **error);

/* query.c: looking */
int query_gpus(struct octavoctl *ctl, GError **error);
int query_types(struct octavoctl *ctl, GError **error);
int query_list(struct octavoctl *ctl, GError **error);
int query_show(struct octavoctl *ctl, GError **error);

/* change.c: changing */
int change_resize(struct octavoctl *ctl, GError **error);

#endif /* OCTAVO_TOOLS_OCTAVOCTL_H */
