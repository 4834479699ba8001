/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * keep - descriptors that outlive octavod, in systemd's hands (FileDescriptorStoreMax=)
 *
 * What the next octavod needs and nobody else can be asked for: taking it back out of a worker needs
 * the right to trace every process, and would be what the worker says it is. Without systemd
 * nothing is kept. Main loop's thread.
 */
#ifndef OCTAVO_DAEMON_KEEP_H
#define OCTAVO_DAEMON_KEEP_H

/* Takes what the octavod before this one has put there. Once, before any other descriptor is open. */
void keep_init(void);

/* @name: printable, without ':'. The caller keeps @fd too. */
void keep_put(const char *name, int fd);
void keep_drop(const char *name);

/* A descriptor of the octavod before this one, the caller's; it stays kept. -1: none. Once each. */
int keep_take(const char *name);
/* Drops those that nobody has taken. */
void keep_drop_rest(void);

#endif /* OCTAVO_DAEMON_KEEP_H */
