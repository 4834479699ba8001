/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opener - who holds a vGPU, in words an operator knows
 */
#ifndef OCTAVO_DAEMON_OPENER_H
#define OCTAVO_DAEMON_OPENER_H

#include <glib.h>
#include <sys/types.h>

/*
 * The VM's name out of a QEMU command line (the words of /proc/PID/cmdline, each with its NUL), else
 * the program's name. The caller's to g_free(); "" for an empty command line.
 */
char *opener_name(const char *cmdline, size_t bytes);

/* The same for a running process; "" if it is gone. */
char *opener_read(pid_t pid);

#endif /* OCTAVO_DAEMON_OPENER_H */
