/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * access - who may change things: root, and whomever polkit allows org.octavo1.manage
 */
#ifndef OCTAVO_DAEMON_ACCESS_H
#define OCTAVO_DAEMON_ACCESS_H

#include <gio/gio.h>
#include <stdbool.h>

#define ACCESS_MANAGE "org.octavo1.manage"

/*
 * Blocks for as long as a person takes to type a password: not for the main loop's thread. Answers
 * @invocation with an error when it returns false.
 */
bool access_check(GDBusMethodInvocation *invocation, const char *action);

#endif /* OCTAVO_DAEMON_ACCESS_H */
