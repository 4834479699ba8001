/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * handover.h - what octavod gives to a worker that systemd has started: arguments and descriptors
 *
 * One message on a connected SOCK_SEQPACKET socket: the arguments, each with its NUL, and up to
 * HANDOVER_FDS_MAX descriptors.
 */
#ifndef OCTAVO_GPU_HANDOVER_H
#define OCTAVO_GPU_HANDOVER_H

#define HANDOVER_FDS_MAX	2

/*
 * Waits for the message, closes the socket @fd and puts the descriptors at 3 and up, close-on-exec.
 * Returns the number of arguments and an array of them after @program, NULL at the end, which live
 * as long as the process; or -errno: -ECONNRESET if octavod has let go, -EPROTO for a message of
 * another form. Once, before any other descriptor is open.
 */
int handover_take(int fd, char *program, char ***arguments);

#endif
