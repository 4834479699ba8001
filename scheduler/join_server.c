// SPDX-License-Identifier: LGPL-2.1-or-later
/* The side of joining that has the arbiter. One thread, poll() over all connections. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/arbiter.h"
#include "scheduler/gate.h"
#include "scheduler/join.h"

#define CONNECTIONS_MAX 256

struct join_vgpu {
	char name[ARBITER_NAME_MAX];
	uint32_t weight;
	int id;
	int fd;
	unsigned int connections; /* 0: free */
};

struct join_connection {
	int fd;
	int vgpu; /* -1: has not joined */
};

struct join_server {
	struct join_config config;
	struct sockaddr_un address;
	pthread_t thread;
	pthread_mutex_t mutex; /* n_connections, last_ns */
	pthread_cond_t idle;
	unsigned int n_connections;
	int listen_fd;
	int stop_fd;
	struct join_connection connections[CONNECTIONS_MAX];
	struct join_vgpu vgpus[POLICY_MAX_VGPUS];
};

/* The value of key= in a request, in a buffer of size; false: not there, or too long. */
static bool request_value(const char *request, const char *key, char *value, size_t size)
{
	const char *at = strstr(request, key);
	size_t length;

	if (!at || (at != request && at[-1] != ' '))
		return false;
	at += strlen(key);
	length = strcspn(at, " ");
	if (length == 0 || length >= size)
		return false;
	memcpy(value, at, length);
	value[length] = '\0';
	return true;
}

static uint32_t profile_weight(const char *profile)
{
	unsigned int parts;
	char rest;

	if (sscanf(profile, "1_%u%c", &parts, &rest) != 1 || parts == 0 || parts > 8)
		return 0;
	return parts & (parts - 1) ? 0 : POLICY_WHOLE / parts;
}

/* Without a name, the processes of one container share one vGPU: a hash of the peer's cgroup. */
static void peer_name(int fd, char *name, size_t size)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);
	uint64_t hash = UINT64_C(14695981039346656037);
	char path[64];
	FILE *file;
	int c;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)peer.pid);
	file = fopen(path, "re");
	while (file && (c = fgetc(file)) != EOF)
		hash = (hash ^ (unsigned char)c) * UINT64_C(1099511628211);
	if (file)
		fclose(file);
	snprintf(name, size, "cgroup-%012" PRIx64, hash & UINT64_C(0xffffffffffff));
}

static void answer(int fd, const char *text, int pass)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (pass >= 0) {
		struct cmsghdr *header;

		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &pass, sizeof(int));
	}
	/* who does not read has only itself to blame */
	sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int vgpu_join(struct join_server *server, const char *name, uint32_t weight)
{
	struct join_vgpu *vgpu, *unused = NULL;
	uint64_t share = server->config.memory_bytes * weight / POLICY_WHOLE;

	for (vgpu = server->vgpus; vgpu < server->vgpus + POLICY_MAX_VGPUS; vgpu++) {
		if (vgpu->connections == 0) {
			unused = unused ? unused : vgpu;
		} else if (vgpu->weight == weight && strcmp(vgpu->name, name) == 0) {
			vgpu->connections++;
			return (int)(vgpu - server->vgpus);
		}
	}
	if (!unused)
		return -ENOSPC;
	unused->fd = gate_create(share);
	if (unused->fd < 0)
		return unused->fd;
	unused->id = arbiter_add_vgpu(server->config.arbiter, unused->fd, weight, name, NULL);
	if (unused->id < 0) {
		close(unused->fd);
		return unused->id;
	}
	snprintf(unused->name, sizeof(unused->name), "%s", name);
	unused->weight = weight;
	unused->connections = 1;
	return (int)(unused - server->vgpus);
}

static void vgpu_leave(struct join_server *server, int index)
{
	struct join_vgpu *vgpu = &server->vgpus[index];

	if (--vgpu->connections)
		return;
	arbiter_remove_vgpu(server->config.arbiter, vgpu->id);
	close(vgpu->fd);
}

static void request_join(struct join_server *server, struct join_connection *connection,
			 const char *request)
{
	char profile[16] = "", name[ARBITER_NAME_MAX], policy[32], text[160];
	uint32_t weight;
	int index;

	if (connection->vgpu >= 0) {
		answer(connection->fd, "error this connection has joined already", -1);
		return;
	}
	request_value(request, "profile=", profile, sizeof(profile));
	weight = profile_weight(profile);
	if (!weight) {
		snprintf(text, sizeof(text), "error found profile '%s': want 1_1, 1_2, 1_4 or 1_8", profile);
		answer(connection->fd, text, -1);
		return;
	}
	if (!request_value(request, "name=", name, sizeof(name)))
		peer_name(connection->fd, name, sizeof(name));
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			*c = '_';
	if (request_value(request, "policy=", policy, sizeof(policy))) {
		int kind = policy_parse(policy);

		if (kind < 0 || !server->config.may_set_policy) {
			snprintf(text, sizeof(text), "error policy '%s': %s", policy,
				 kind < 0 ? "want elastic, fixed-share, equal-share or best-effort" :
					    "this GPU's policy is set by octavod's configuration");
			answer(connection->fd, text, -1);
			return;
		}
		arbiter_set_policy(server->config.arbiter, (enum policy_kind)kind);
	}
	index = vgpu_join(server, name, weight);
	if (index < 0) {
		snprintf(text, sizeof(text), "error cannot make a vGPU: %s", strerror(-index));
		answer(connection->fd, text, -1);
		return;
	}
	connection->vgpu = index;
	answer(connection->fd, "ok", server->vgpus[index].fd);
}

static void request_status(struct join_server *server, int fd)
{
	struct arbiter_gpu_stats gpu;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return;
	arbiter_gpu_stats(server->config.arbiter, &gpu);
	fprintf(file, "policy %s, slice %.1f ms, watchdog %.1f s, switches %" PRIu64 "\n",
		policy_name(gpu.policy), (double)gpu.slice_ns / 1e6, (double)gpu.watchdog_ns / 1e9,
		gpu.switches);
	fprintf(file, "%-24s %6s %10s %10s %8s %12s %12s\n", "vgpu", "weight", "used s", "waited s",
		"overrun", "memory", "share");
	for (int i = 0; i < POLICY_MAX_VGPUS; i++) {
		const struct join_vgpu *vgpu = &server->vgpus[i];
		struct arbiter_stats stats;

		if (!vgpu->connections || arbiter_stats(server->config.arbiter, vgpu->id, &stats))
			continue;
		fprintf(file, "%-24s %6" PRIu32 " %10.3f %10.3f %8.3f %12" PRIu64 " %12" PRIu64 "\n",
			vgpu->name, vgpu->weight, (double)stats.used_ns / 1e9,
			(double)stats.waited_ns / 1e9, (double)stats.overrun_ns / 1e9,
			stats.used_bytes, stats.share_bytes);
	}
	fclose(file);
	if (size < JOIN_MESSAGE_MAX)
		answer(fd, text, -1);
	free(text);
}

static void request_log(struct join_server *server, int fd)
{
	struct arbiter_slice *slices = calloc(ARBITER_LOG_SIZE, sizeof(*slices));
	int memory = memfd_create("octavo-log", MFD_CLOEXEC);
	int copy = memory < 0 ? -1 : fcntl(memory, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
	uint64_t cursor = 0;
	size_t n;

	if (slices && file) {
		n = arbiter_read_log(server->config.arbiter, &cursor, slices, ARBITER_LOG_SIZE);
		fputs("begin_ns,end_ns,vgpu,granted_ns,used_ns,overrun_ns,waiting\n", file);
		for (size_t i = 0; i < n; i++) {
			const struct turn_slice *slice = &slices[i].slice;

			fprintf(file,
				"%" PRIu64 ",%" PRIu64 ",%.31s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 "\n",
				slice->begin_ns, slice->end_ns, slices[i].name, slice->granted_ns,
				slice->used_ns, slice->overrun_ns, slice->waiting);
		}
		fflush(file);
		answer(fd, "ok", memory);
	} else {
		answer(fd, "error not enough memory for the log", -1);
	}
	if (file)
		fclose(file);
	if (memory >= 0)
		close(memory);
	free(slices);
}

static void connection_close(struct join_server *server, struct join_connection *connection)
{
	if (connection->vgpu >= 0)
		vgpu_leave(server, connection->vgpu);
	close(connection->fd);
	*connection = (struct join_connection){ .fd = -1, .vgpu = -1 };
	pthread_mutex_lock(&server->mutex);
	server->n_connections--;
	pthread_cond_broadcast(&server->idle);
	pthread_mutex_unlock(&server->mutex);
}

static void connection_serve(struct join_server *server, struct join_connection *connection)
{
	char request[512];
	ssize_t n = recv(connection->fd, request, sizeof(request) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		connection_close(server, connection);
		return;
	}
	request[n] = '\0';
	if (strncmp(request, "join ", 5) == 0)
		request_join(server, connection, request);
	else if (strcmp(request, "status") == 0)
		request_status(server, connection->fd);
	else if (strcmp(request, "log") == 0)
		request_log(server, connection->fd);
	else
		answer(connection->fd, "error want: join, status or log", -1);
}

static void connection_accept(struct join_server *server)
{
	int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (server->connections[i].fd >= 0)
			continue;
		server->connections[i] = (struct join_connection){ .fd = fd, .vgpu = -1 };
		pthread_mutex_lock(&server->mutex);
		server->n_connections++;
		pthread_mutex_unlock(&server->mutex);
		return;
	}
	answer(fd, "error too many connections", -1);
	close(fd);
}

static void *server_run(void *data)
{
	struct join_server *server = data;
	struct pollfd polls[CONNECTIONS_MAX + 2];

	for (;;) {
		polls[0] = (struct pollfd){ .fd = server->stop_fd, .events = POLLIN };
		polls[1] = (struct pollfd){ .fd = server->listen_fd, .events = POLLIN };
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			polls[i + 2] = (struct pollfd){ .fd = server->connections[i].fd,
							.events = POLLIN };
		if (poll(polls, CONNECTIONS_MAX + 2, -1) < 0)
			continue;
		if (polls[0].revents)
			return NULL;
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			if (polls[i + 2].fd >= 0 && polls[i + 2].revents)
				connection_serve(server, &server->connections[i]);
		if (polls[1].revents)
			connection_accept(server);
	}
}

/* A path where nobody listens is what a dead server left. */
static int server_listen(struct join_server *server)
{
	int probe = join_connect(server->config.path), fd, err;

	if (probe >= 0) {
		close(probe);
		return -EADDRINUSE;
	}
	if (probe == -ENAMETOOLONG)
		return probe;
	if (probe == -ECONNREFUSED)
		unlink(server->config.path);
	memcpy(server->address.sun_path, server->config.path, strlen(server->config.path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&server->address, sizeof(server->address)) ||
	    chmod(server->config.path, server->config.mode) || listen(fd, 64)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

struct join_server *join_server_create(const struct join_config *config, int *err)
{
	struct join_server *server = calloc(1, sizeof(*server));
	int rc = -ENOMEM;

	if (server) {
		server->config = *config;
		server->address.sun_family = AF_UNIX;
		for (int i = 0; i < CONNECTIONS_MAX; i++)
			server->connections[i] = (struct join_connection){ .fd = -1, .vgpu = -1 };
		pthread_mutex_init(&server->mutex, NULL);
		pthread_cond_init(&server->idle, NULL);
		server->stop_fd = eventfd(0, EFD_CLOEXEC);
		server->listen_fd = server_listen(server);
		rc = server->listen_fd < 0 ? server->listen_fd : 0;
		if (rc == 0)
			rc = -pthread_create(&server->thread, NULL, server_run, server);
		if (rc) {
			if (server->listen_fd >= 0)
				close(server->listen_fd);
			close(server->stop_fd);
			free(server);
			server = NULL;
		}
	}
	if (err)
		*err = rc;
	return server;
}

void join_server_wait_idle(struct join_server *server, uint32_t grace_ms)
{
	struct timespec until;
	int err = 0;

	pthread_mutex_lock(&server->mutex);
	do {
		while (server->n_connections)
			pthread_cond_wait(&server->idle, &server->mutex);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += grace_ms / 1000;
		until.tv_nsec += grace_ms % 1000 * 1000000L;
		if (until.tv_nsec >= 1000000000L) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000L;
		}
		while (!server->n_connections && err != ETIMEDOUT)
			err = pthread_cond_timedwait(&server->idle, &server->mutex, &until);
		if (server->n_connections)
			err = 0;
	} while (err != ETIMEDOUT);
	pthread_mutex_unlock(&server->mutex);
}

void join_server_destroy(struct join_server *server)
{
	if (!server)
		return;
	eventfd_write(server->stop_fd, 1);
	pthread_join(server->thread, NULL);
	/* first the name, so that nobody joins who would be left alone at once */
	unlink(server->config.path);
	close(server->listen_fd);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (server->connections[i].fd >= 0)
			connection_close(server, &server->connections[i]);
	close(server->stop_fd);
	pthread_mutex_destroy(&server->mutex);
	pthread_cond_destroy(&server->idle);
	free(server);
}
