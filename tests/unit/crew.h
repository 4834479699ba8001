/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* crew.h - child processes of a test: each runs a function on a shared tally until it is ended */
#ifndef OCTAVO_TESTS_CREW_H
#define OCTAVO_TESTS_CREW_H

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory that children write and the parent reads. */
static inline void *crew_shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

static inline pid_t crew_start(void (*run)(int fd, void *data), int fd, void *data)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		abort();
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	run(fd, data);
	_exit(0);
}

static inline void crew_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Poll every 0.2 ms until what the parent can only see in shared memory is so; false: 60 s passed. */
#define CREW_WAIT(condition)                                                                       \
	({                                                                                         \
		int crew_tries = 300000;                                                           \
												   \
		while (!(condition) && --crew_tries)                                               \
			usleep(200);                                                               \
		crew_tries > 0;                                                                    \
	})

#endif
