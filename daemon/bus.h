/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bus - org.octavo1 on the system bus
 *
 * A thin adapter: it copies the manager's state into the objects of org.octavo1.xml and methods into
 * the manager's calls. It owns no state of its own.
 */
#ifndef OCTAVO_DAEMON_BUS_H
#define OCTAVO_DAEMON_BUS_H

#include <gio/gio.h>

#include "daemon/manager.h"

#define BUS_NAME	"org.octavo1"
#define BUS_PATH	"/org/octavo1"

struct bus;

/*
 * Takes the name; fails if another octavod has it. @fatal is called when the bus goes away later.
 * The bus becomes the manager's listener.
 */
struct bus *bus_new(struct manager *manager, void (*fatal)(const GError *error, void *data),
		    void *data, GError **error);
void bus_free(struct bus *bus);

#endif /* OCTAVO_DAEMON_BUS_H */
