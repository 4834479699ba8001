/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unit - the worker program in its sandbox: octavo-vgpu@INSTANCE.service
 *
 *	octavod				systemd				octavo-vgpu
 *	listens on UNIT_SOCKET
 *	SetUnitProperties: limits
 *	RestartUnit ------------------> ends an old one, forks
 *					connects (OpenFile=)
 *	accepts, looks at the peer <---	closes the sandbox, exec ------> fd 3 is the connection
 *	arguments and descriptors ------------------------------------> takes them, closes fd 3
 *
 * The socket is root's: systemd's part of the new process connects before it lets go of root, so
 * the worker itself needs no way to octavod, and the peer is the worker. Its cgroup says which unit
 * it is of. Nothing here waits: systemd is asked through the bus from the main loop, and what is to
 * be handed over lies in the connection before the worker runs.
 *
 * The limits are drop-ins of systemd's in /run/systemd/system.control, named 50-*.conf: a drop-in
 * of the operator with a later name wins. The dynamic user is a drop-in of octavod's: systemd names
 * it after the template, so all instances would be one, and no specifier is short enough for a name.
 * It is there before systemd first loads the unit and never changes, so nothing is to be reloaded.
 */
#ifndef OCTAVO_DAEMON_UNIT_H
#define OCTAVO_DAEMON_UNIT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define UNIT_SOCKET	"/run/octavo/worker"	/* the unit file says it too */
#define UNIT_FDS_MAX	2u

/* Where units come for what they need; outlives all of them. */
struct unit_socket;

/* G_IO_ERROR_EXISTS: another octavod listens at @path. */
struct unit_socket *unit_socket_new(const char *path, GError **error);
void unit_socket_free(struct unit_socket *socket);

struct unit;

struct unit_setup {
	const char *instance;		/* of the template: the vGPU's UUID, or probe-ADDRESS */
	const char *const *arguments;	/* NULL at the end; without the program's name */
	int fds[UNIT_FDS_MAX];		/* the program has them as 3 and 4; the caller closes its own */
	unsigned int fds_count;
	uint64_t memory_bytes;		/* 0: what the unit file says; likewise: */
	unsigned int tasks;
	const char *const *devices;	/* nodes that it may open, NULL at the end */
};

/*
 * Told once: the program runs as @pid and has what it needs (@pidfd is the receiver's), or @error
 * says why not. unit_free() may be called in it.
 */
typedef void (*unit_fn)(pid_t pid, int pidfd, const GError *error, void *data);

struct unit *unit_start(struct unit_socket *socket, const struct unit_setup *setup, unit_fn fn,
			void *data, GError **error);

/* The unit_fn is not called any more. A unit that waits for its descriptors ends for lack of them. */
void unit_free(struct unit *unit);

/* The name of the unit's dynamic user, the caller's. */
char *unit_user(const char *instance);

/* INSTANCE out of the text of /proc/PID/cgroup, the caller's; NULL: of no such unit. */
char *unit_instance(const char *cgroup);

#endif /* OCTAVO_DAEMON_UNIT_H */
