/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * doctor - what on this host is missing or wrong for vGPUs, in plain words
 *
 * What can be read from files is read below a root folder, so that tests can show it any host. The
 * rest comes in as facts, gathered by octavoctl.
 */
#ifndef OCTAVO_TOOLS_DOCTOR_H
#define OCTAVO_TOOLS_DOCTOR_H

#include <glib.h>
#include <stdbool.h>

#include "tools/kvm.h"

enum doctor_level {
	DOCTOR_GOOD,		/* as it should be */
	DOCTOR_NOTE,		/* worth knowing */
	DOCTOR_WARNING,		/* vGPUs run, but not as well as they could */
	DOCTOR_ERROR,		/* vGPUs cannot run */
};

struct doctor_finding {
	enum doctor_level level;
	const char *subject;	/* "kernel", "module", ...; static */
	char *found;		/* what is there */
	char *advice;		/* what to do about it; "" for good ones and notes */
};

/* Where a host is looked at, and what no file says. */
struct doctor_host {
	const char *root;		/* "" for the real one */
	const char *kernel_release;	/* uname -r */
	enum kvm_result kvm;
	bool daemon;			/* octavod answers on the bus */
	const char *daemon_error;	/* why not */
	GVariant *manager;		/* record of org.octavo1.Manager, or NULL */
	GVariant *gpus;			/* records of the GPUs, or NULL */
	guint64 memlock_bytes;		/* soft limit of this user; G_MAXUINT64: none */
	const char *qemu_version;	/* "10.0.2", or NULL: not installed; likewise: */
	const char *libvirt_version;
	const char *mdevctl_version;
	const char *kernel_log;		/* lines of the kernel's log, or NULL: may not be read */
	GVariant *events;		/* a(xssss) of org.octavo1.Manager.GetEvents, or NULL */
};

/* Array of struct doctor_finding *, in the order of a vGPU's path from kernel to VM. */
GPtrArray *doctor_examine(const struct doctor_host *host);

/* The worst level among them. */
enum doctor_level doctor_worst(const GPtrArray *findings);

const char *doctor_level_name(enum doctor_level level);

#endif /* OCTAVO_TOOLS_DOCTOR_H */
