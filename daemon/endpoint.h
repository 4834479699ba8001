/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * endpoint - the HTTP server for those who watch: /metrics, /status.json and the status page at /
 *
 * Reading only: GET and HEAD, no request bodies, one request a connection, at most
 * ENDPOINT_CONNECTIONS of them, each of which is closed after ENDPOINT_IDLE_SECONDS without a byte and
 * after ENDPOINT_VISIT_SECONDS in any case. On a loopback address it answers only requests for an IP
 * address or localhost, so that no web site can have a browser read it under a name of its own. Runs
 * in the main loop and never waits in it. One thread.
 */
#ifndef OCTAVO_DAEMON_ENDPOINT_H
#define OCTAVO_DAEMON_ENDPOINT_H

#include <glib.h>
#include <stdbool.h>

#include "daemon/snapshot.h"

#define ENDPOINT_CONNECTIONS	16u
#define ENDPOINT_IDLE_SECONDS	10u
#define ENDPOINT_VISIT_SECONDS	30u

/* A snapshot, which becomes the endpoint's; @detailed: with slices and events. */
typedef struct snapshot *(*endpoint_source_fn)(bool detailed, void *data);

struct endpoint;

/* Listens nowhere yet. */
struct endpoint *endpoint_new(endpoint_source_fn source, void *data);
void endpoint_free(struct endpoint *endpoint);

/*
 * Listen on @port of @address (an IP address) and there only; port 0: nowhere. Connections to where
 * it listened before end; to ask for the same again changes nothing. If it fails the endpoint goes
 * on where it was.
 */
bool endpoint_listen(struct endpoint *endpoint, const char *address, unsigned int port,
		     GError **error);

#endif /* OCTAVO_DAEMON_ENDPOINT_H */
