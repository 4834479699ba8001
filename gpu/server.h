/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * server.h - the render server, parent of one process per guest context
 *
 * It is started by the worker, not by virglrenderer, so that it has a process group of its own, the
 * environment of the scheduler's layer, and an end that can be enforced.
 */
#ifndef OCTAVO_GPU_SERVER_H
#define OCTAVO_GPU_SERVER_H

#include <sys/types.h>

struct renderer_options;

struct server {
	pid_t pid;		/* and process group; 0: none */
};

/*
 * Starts it and returns the worker's end of the connection, or -errno. Its environment names the
 * gate (OCTAVO_GATE_FD, a descriptor that stays open in it) and the Vulkan device that guests may
 * use (OCTAVO_VULKAN_DEVICE). From the thread that lives as long as it shall.
 */
int server_start(struct server *server, const struct renderer_options *options);

/* Kills it and all its children, and waits until it is gone. From any thread. */
void server_kill(struct server *server);

/* The newest child that is none of @known (up to @count), or 0. */
pid_t server_new_child(const struct server *server, const pid_t *known, unsigned int count);

#endif
