/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * uevent - the kernel's news about devices, straight from its netlink socket
 *
 * devtmpfs has made a device's node before the kernel sends the news, so whoever reads "add" of
 * /dev/octavo can open it. One thread.
 */
#ifndef OCTAVO_DAEMON_UEVENT_H
#define OCTAVO_DAEMON_UEVENT_H

#include <glib.h>
#include <stdbool.h>

struct uevent;

enum uevent_subject {
	UEVENT_OTHER,
	UEVENT_PCI,	/* a PCI device came, went, was bound or unbound */
	UEVENT_OCTAVO,	/* /dev/octavo came or went */
};

typedef void (*uevent_fn)(enum uevent_subject subject, void *data);

struct uevent *uevent_new(uevent_fn fn, void *data, GError **error);
void uevent_free(struct uevent *uevent);

/* What one message ("ACTION@PATH", NUL, "KEY=VALUE", NUL ...) is about; pure. */
enum uevent_subject uevent_parse(const char *message, size_t bytes);

#endif /* OCTAVO_DAEMON_UEVENT_H */
