/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* paths.h - where things are installed; the build says so, these are the usual places */
#ifndef OCTAVO_DAEMON_PATHS_H
#define OCTAVO_DAEMON_PATHS_H

#ifndef OCTAVO_CONF
#define OCTAVO_CONF "/etc/octavo/octavo.conf"
#endif

#ifndef OCTAVO_PKGLIBEXECDIR
#define OCTAVO_PKGLIBEXECDIR "/usr/libexec/octavo"
#endif

#endif /* OCTAVO_DAEMON_PATHS_H */
