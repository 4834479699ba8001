// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/bench/player.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/gate.h"
#include "tests/native/engine.h"

static void die(const char *what, const char *which)
{
	fprintf(stderr, "shares: %s '%s': %s\n", what, which, strerror(errno));
	exit(2);
}

static char *join_path(const char *dir, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		die("no memory for", name);
	return path;
}

static void calibrate(const char *program, double *fixed_ns, double *step_ns)
{
	char command[2 * PATH_MAX + 64];
	FILE *pipe;

	snprintf(command, sizeof(command), "chrt -f 2 '%s' calibrate 2>/dev/null || '%s' calibrate",
		 program, program);
	pipe = popen(command, "r");
	if (!pipe || fscanf(pipe, "%lf %lf", fixed_ns, step_ns) != 2)
		die("cannot calibrate", program);
	pclose(pipe);
}

/* The last processor is the engines' (engine.h), the others are everybody else's. */
static void processors_divide(void)
{
	char engines[16];
	cpu_set_t set;
	int last = -1;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET((size_t)i, &set))
			last = i;
	if (CPU_COUNT(&set) < 2)
		return;
	CPU_CLR((size_t)last, &set);
	snprintf(engines, sizeof(engines), "%d", last);
	if (!sched_setaffinity(0, sizeof(set), &set))
		setenv(ENGINE_VARIABLE, engines, 1);
}

void stage_init(struct stage *stage, const char *build_dir, bool gl)
{
	char dir[] = "/tmp/octavo-layer-XXXXXX", *manifest, *real;
	FILE *file;

	memset(stage, 0, sizeof(*stage));
	real = realpath(build_dir, NULL);
	if (!real || !mkdtemp(dir))
		die("cannot use", build_dir);
	stage->load = join_path(real, "load");
	stage->load_gl = join_path(real, "load-gl");
	stage->layer_dir = strdup(dir);
	manifest = join_path(dir, "VkLayer_octavo_slice.json");
	file = fopen(manifest, "we");
	if (!file)
		die("cannot write", manifest);
	fprintf(file,
		"{\"file_format_version\": \"1.2.0\", \"layer\": {\"name\": \"VK_LAYER_OCTAVO_slice\", \"type\": \"GLOBAL\", \"library_path\": \"%s/.libs/VkLayer_octavo_slice.so\", \"api_version\": \"1.4.309\", \"implementation_version\": \"1\", \"description\": \"test\"}}\n",
		real);
	fclose(file);
	free(manifest);
	free(real);
	/* a software engine must not take all cores from the arbiter and the other clients */
	setenv("LP_NUM_THREADS", "1", 0);
	processors_divide();
	calibrate(stage->load, &stage->fixed_ns[0], &stage->step_ns[0]);
	if (gl)
		calibrate(stage->load_gl, &stage->fixed_ns[1], &stage->step_ns[1]);
}

void stage_finish(struct stage *stage)
{
	char *manifest = join_path(stage->layer_dir, "VkLayer_octavo_slice.json");

	arbiter_destroy(stage->arbiter);
	unlink(manifest);
	rmdir(stage->layer_dir);
	free(manifest);
}

void stage_arbiter(struct stage *stage, enum policy_kind policy, uint64_t slice_ns)
{
	const struct arbiter_config config = { .policy = policy, .slice_ns = slice_ns };

	arbiter_destroy(stage->arbiter);
	stage->arbiter = arbiter_create(&config, NULL);
	if (!stage->arbiter)
		die("cannot create", "an arbiter");
}

static void player_exec(const struct stage *stage, const struct player *player)
{
	char steps[32], depth[16], pause[16], fd[16];
	const struct player_config *config = &player->config;
	const char *program = config->gl ? stage->load_gl : stage->load;
	double count = (config->length_ms * 1e6 - stage->fixed_ns[config->gl]) / stage->step_ns[config->gl];

	const struct sched_param param = { .sched_priority = 2 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* a GPU does not slow down because the host has other things to do; a software engine would */
	sched_setscheduler(0, SCHED_FIFO, &param);
	snprintf(steps, sizeof(steps), "%.0f", count > 1 ? count : 1);
	snprintf(depth, sizeof(depth), "%u", config->depth);
	snprintf(pause, sizeof(pause), "%u", config->pause_us);
	snprintf(fd, sizeof(fd), "%d", player->gate_fd);
	if (config->weight) {
		fcntl(player->gate_fd, F_SETFD, 0);
		setenv("OCTAVO_GATE_FD", fd, 1);
		setenv("VK_ADD_LAYER_PATH", stage->layer_dir, 1);
		setenv("VK_INSTANCE_LAYERS", "VK_LAYER_OCTAVO_slice", 1);
	}
	execl(program, program, steps, depth, player->tally_path, pause, (char *)NULL);
	_exit(127);
}

struct player *stage_player(struct stage *stage, const struct player_config *config)
{
	struct player *player = &stage->players[stage->n];
	int fd;

	*player = (struct player){
		.config = *config, .gate_fd = -1, .id = -1, .piece_ms = config->length_ms
	};
	snprintf(player->name, sizeof(player->name), "player%d", stage->n++);
	strcpy(player->tally_path, "/tmp/octavo-tally-XXXXXX");
	fd = mkostemp(player->tally_path, O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, sizeof(*player->tally)))
		die("cannot create", player->tally_path);
	player->tally = mmap(NULL, sizeof(*player->tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (player->tally == MAP_FAILED)
		die("cannot map", player->tally_path);
	close(fd);
	if (config->weight) {
		player->gate_fd = gate_create(0);
		if (stage->arbiter)
			player->id = arbiter_add_vgpu(stage->arbiter, player->gate_fd,
						      config->weight, player->name, NULL);
	}
	player->pid = fork();
	if (player->pid == 0)
		player_exec(stage, player);
	for (int i = 0; !player->tally->ready; i++) {
		int status;

		if (i > 100000 || waitpid(player->pid, &status, WNOHANG) == player->pid)
			die("did not start", config->gl ? stage->load_gl : stage->load);
		usleep(200);
	}
	return player;
}

bool stage_clear(struct stage *stage)
{
	bool right = true;

	for (int i = 0; i < stage->n; i++)
		stage->players[i].tally->stop = 1;
	for (int i = 0; i < stage->n; i++) {
		struct player *player = &stage->players[i];
		int status = -1;

		waitpid(player->pid, &status, 0);
		right &= status == 0 && !player->tally->failed;
		if (player->id >= 0)
			arbiter_remove_vgpu(stage->arbiter, player->id);
		if (player->gate_fd >= 0)
			close(player->gate_fd);
		munmap(player->tally, sizeof(*player->tally));
		unlink(player->tally_path);
	}
	stage->n = 0;
	return right;
}

void player_go(struct player *player, bool go)
{
	player->tally->go = go;
}

void player_mark(struct player *player)
{
	player->mark = player->tally->done;
}

double player_work_ms(const struct player *player)
{
	return (double)(player->tally->done - player->mark) * player->piece_ms;
}

/* Time at which the next piece after so many was done. */
static uint64_t wait_done(const struct player *player, uint64_t done)
{
	while (player->tally->done == done)
		usleep(50);
	return player->tally->done_ns;
}

void stage_measure(struct stage *stage, double length_ms, bool gl, double seconds)
{
	const struct player_config config = { 0, length_ms, 4, 0, gl };
	struct player *player = stage_player(stage, &config);
	uint64_t from_ns, to_ns;
	double piece_ms;
	int status;

	player_go(player, true);
	stage_sleep(0.1);
	from_ns = wait_done(player, player->tally->done);
	player_mark(player);
	stage_sleep(seconds);
	to_ns = wait_done(player, player->tally->done);
	piece_ms = (double)(to_ns - from_ns) / 1e6 / (double)(player->tally->done - player->mark);
	player->tally->stop = 1;
	waitpid(player->pid, &status, 0);
	munmap(player->tally, sizeof(*player->tally));
	unlink(player->tally_path);
	stage->n--;
	for (int i = 0; i < stage->n; i++)
		if (stage->players[i].config.length_ms == length_ms &&
		    stage->players[i].config.gl == gl)
			stage->players[i].piece_ms = piece_ms;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void player_latency(const struct player *player, uint64_t from, double *longest, double *p99)
{
	uint64_t end = player->tally->n_latencies, n;
	uint32_t *sorted;

	if (end - from > LOAD_LATENCIES)
		from = end - LOAD_LATENCIES;
	n = end - from;
	*longest = *p99 = 0;
	sorted = calloc(n + 1, sizeof(*sorted));
	if (!sorted || n == 0) {
		free(sorted);
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		sorted[i] = player->tally->latency_us[(from + i) % LOAD_LATENCIES];
	qsort(sorted, n, sizeof(*sorted), compare);
	*longest = sorted[n - 1] / 1e3;
	*p99 = sorted[n * 99 / 100] / 1e3;
	free(sorted);
}

void stage_sleep(double seconds)
{
	struct timespec left = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}
