// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

int log_verbose;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static bool log_admits(struct log_site *site, unsigned int *dropped)
{
	struct timespec now;
	uint64_t now_ns;

	*dropped = 0;
	if (!site || site->lines < LOG_BURST) {
		if (site)
			site->lines++;
		return true;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
	if (now_ns < site->next_ns) {
		site->dropped++;
		return false;
	}
	site->next_ns = now_ns + LOG_PAUSE_S * 1000000000ULL;
	*dropped = site->dropped;
	site->dropped = 0;
	return true;
}

void log_line(struct log_site *site, int priority, const char *format, ...)
{
	unsigned int dropped;
	va_list args;

	pthread_mutex_lock(&log_lock);
	if (log_admits(site, &dropped)) {
		fprintf(stderr, "<%d>", priority);
		va_start(args, format);
		vfprintf(stderr, format, args);
		va_end(args);
		if (dropped)
			fprintf(stderr, " (%u more like it left out)", dropped);
		fputc('\n', stderr);
	}
	pthread_mutex_unlock(&log_lock);
}
