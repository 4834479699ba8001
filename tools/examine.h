/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * examine - gathers a real host's facts for doctor, prints its findings
 */
#ifndef OCTAVO_TOOLS_EXAMINE_H
#define OCTAVO_TOOLS_EXAMINE_H

#include <stdbool.h>

/* Exit status: 0 nothing wrong, 1 vGPUs cannot run, 6 warnings only. */
int examine_host(bool json);

#endif /* OCTAVO_TOOLS_EXAMINE_H */
