/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* load.h - what a load (load.c, load-gl.c) reports, in memory shared with whoever started it */
#ifndef OCTAVO_TESTS_LOAD_H
#define OCTAVO_TESTS_LOAD_H

#include <stdatomic.h>
#include <stdint.h>

#define LOAD_LATENCIES 65536

struct load_tally {
	_Atomic uint32_t ready;	   /* 1: set up, and waits for go */
	_Atomic uint32_t go;	   /* written by the starter: 1 work, 0 pause */
	_Atomic uint32_t stop;	   /* likewise */
	_Atomic uint32_t failed;   /* a result was not the one expected */
	_Atomic uint64_t done;	   /* pieces of work that have finished */
	_Atomic uint64_t began_ns; /* CLOCK_MONOTONIC of the first submission */
	_Atomic uint64_t done_ns;  /* when the last of them did */
	_Atomic uint64_t n_latencies;
	_Atomic uint32_t latency_us[LOAD_LATENCIES]; /* from submission to finished, a ring */
};

#endif
