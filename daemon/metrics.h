/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * metrics - a snapshot in Prometheus' text format 0.0.4
 *
 * docs/monitoring.md is the manual of every metric. Names follow Prometheus' rules: prefix octavo_,
 * base units, _total for what only grows. Pure; any thread.
 */
#ifndef OCTAVO_DAEMON_METRICS_H
#define OCTAVO_DAEMON_METRICS_H

#include "daemon/snapshot.h"

#define METRICS_CONTENT_TYPE	"text/plain; version=0.0.4; charset=utf-8"

void metrics_render(const struct snapshot *snapshot, GString *text);

/* Appends NAME="VALUE" with the value escaped, and made UTF-8 if it is not. */
void metrics_label(GString *text, const char *name, const char *value);

#endif /* OCTAVO_DAEMON_METRICS_H */
