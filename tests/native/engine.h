/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * engine.h - a software renderer's engine, kept apart as a GPU would be
 *
 * A GPU takes no processor time from those who wait for it, and they take none from it. A software
 * renderer computes in a thread of each process: left to the kernel, it runs beside its neighbours'
 * engines and makes way for whoever is awake. On a processor of their own the engines of all processes
 * take turns in the order in which they got work, as a GPU's queue does.
 */
#ifndef OCTAVO_TESTS_ENGINE_H
#define OCTAVO_TESTS_ENGINE_H

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The processor that the starter keeps for engines; unset: they are left alone. */
#define ENGINE_VARIABLE "LOAD_ENGINE_CPU"

/* After so much work the engine has had more processor time than any other of the renderer's threads. */
#define ENGINE_KNOWN_NS 100000000u

/* Put this process's engine there. To be called once, after that much work, by who submits it. */
static inline void engine_place(void)
{
	const char *where = getenv(ENGINE_VARIABLE);
	char path[64];
	uint64_t most = 0, ran;
	pid_t engine = 0;
	DIR *tasks;
	cpu_set_t set;

	tasks = where ? opendir("/proc/self/task") : NULL;
	if (!tasks)
		return;
	for (struct dirent *task; (task = readdir(tasks));) {
		pid_t thread = (pid_t)atoi(task->d_name);
		FILE *file;

		if (thread == 0 || thread == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.16s/schedstat", task->d_name);
		file = fopen(path, "re");
		if (file && fscanf(file, "%" SCNu64, &ran) == 1 && ran > most) {
			most = ran;
			engine = thread;
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	CPU_ZERO(&set);
	CPU_SET((size_t)atoi(where), &set);
	if (engine && sched_setaffinity(engine, sizeof(set), &set))
		perror("load: the engine's processor");
}

#endif
