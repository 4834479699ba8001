/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * octavoctl - what a command gets
 */
#ifndef OCTAVO_TOOLS_OCTAVOCTL_H
#define OCTAVO_TOOLS_OCTAVOCTL_H

#include <gio/gio.h>

struct octavoctl {
	GDBusConnection *bus;	/* NULL for commands that need no daemon */
	int argc;		/* words behind the command's name */
	char **argv;
	/* options; those that a command does not take are refused before it is called */
	gboolean json;
	gboolean follow;
	gboolean persistent;
	gboolean display;
	gboolean nodedev;
	gboolean classes;
	char *gpu;		/* or NULL */
	char *uuid;		/* or NULL */
	int count;		/* 0: without end */
};

/* Returns an exit status; with an error set the caller prints it and its code is the status. */
typedef int (*command_fn)(struct octavoctl *ctl, GError **error);

/* query.c: looking */
int query_gpus(struct octavoctl *ctl, GError **error);
int query_types(struct octavoctl *ctl, GError **error);
int query_list(struct octavoctl *ctl, GError **error);
int query_show(struct octavoctl *ctl, GError **error);
int query_slices(struct octavoctl *ctl, GError **error);
int query_nova(struct octavoctl *ctl, GError **error);

/* change.c: changing */
int change_create(struct octavoctl *ctl, GError **error);
int change_remove(struct octavoctl *ctl, GError **error);
int change_policy(struct octavoctl *ctl, GError **error);
int change_slice(struct octavoctl *ctl, GError **error);
int change_resize(struct octavoctl *ctl, GError **error);

/* xml.c: libvirt */
int xml_show(struct octavoctl *ctl, GError **error);

/* top.c, events.c: watching */
int top_show(struct octavoctl *ctl, GError **error);
int events_log(struct octavoctl *ctl, GError **error);
int events_follow(struct octavoctl *ctl, GError **error);

#endif /* OCTAVO_TOOLS_OCTAVOCTL_H */
