/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fake_host - the snapshot of a host that does not exist: two GPUs, eight vGPUs, each with its own
 * kind of trouble. The same time gives the same snapshot; a later one has counters that went on.
 */
#ifndef OCTAVO_TESTS_FAKE_HOST_H
#define OCTAVO_TESTS_FAKE_HOST_H

#include "daemon/snapshot.h"

#define FAKE_HOST_VGPUS	8u

/* @now_ns: from 1000 s on, on the clock of slices. snapshot_free() it. */
struct snapshot *fake_host(uint64_t now_ns, bool detailed);

#endif
