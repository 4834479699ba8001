/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log.h - lines on stderr, with the priority prefix that the journal understands
 *
 * A guest can cause most of what a worker has to say, so every place that logs has its own allowance:
 * LOG_BURST lines, then one a LOG_PAUSE_S, which says how many were left out.
 */
#ifndef OCTAVO_GPU_LOG_H
#define OCTAVO_GPU_LOG_H

#include <stdint.h>

#define LOG_BURST	5
#define LOG_PAUSE_S	10

struct log_site {
	uint64_t next_ns;	/* CLOCK_MONOTONIC */
	unsigned int lines;
	unsigned int dropped;
};

void log_line(struct log_site *site, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Numbers of <syslog.h>, which would clash with these names. */
#define log_at(priority, ...)                                                                      \
	do {                                                                                       \
		static struct log_site log_site_;                                                  \
		log_line(&log_site_, priority, __VA_ARGS__);                                       \
	} while (0)
#define log_error(...)		log_at(3, __VA_ARGS__)
#define log_warning(...)	log_at(4, __VA_ARGS__)
#define log_info(...)		log_at(6, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_verbose)                                                                   \
			log_line(NULL, 7, __VA_ARGS__);                                            \
	} while (0)

extern int log_verbose;

#endif
