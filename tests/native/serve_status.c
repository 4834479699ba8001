// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * serve_status ADDRESS PORT...: octavod's endpoint over a made-up host of 8 vGPUs, for browsers,
 * Prometheus and a stop watch. Each line on its standard input moves it to the next PORT; at its end
 * it ends. Writes a line for each: "listening", or the error.
 */
#include <gio/gio.h>
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/endpoint.h"
#include "tests/unit/fake_host.h"

struct serve {
	GMainLoop *loop;
	struct endpoint *endpoint;
	const char *address;
	char **ports;
};

static struct snapshot *serve_source(bool detailed, void *data)
{
	(void)data;
	/* from 1000 s on, whenever this machine was started */
	return fake_host((uint64_t)g_get_monotonic_time() * 1000 + 1000ull * 1000000000, detailed);
}

static void serve_move(struct serve *serve)
{
	g_autoptr(GError) error = NULL;

	if (*serve->ports &&
	    endpoint_listen(serve->endpoint, serve->address, (unsigned int)atoi(*serve->ports), &error))
		puts("listening");
	else
		puts(error ? error->message : "no more ports");
	fflush(stdout);
	if (*serve->ports)
		serve->ports++;
}

static gboolean serve_input(int fd, GIOCondition condition, void *data)
{
	struct serve *serve = data;
	char c;

	(void)condition;
	if (read(fd, &c, 1) != 1) {
		g_main_loop_quit(serve->loop);
		return G_SOURCE_REMOVE;
	}
	if (c == '\n')
		serve_move(serve);
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	struct serve serve = { .loop = g_main_loop_new(NULL, FALSE), .address = argv[1], .ports = argv + 2 };

	if (argc < 3) {
		fputs("usage: serve_status ADDRESS PORT...\n", stderr);
		return 2;
	}
	serve.endpoint = endpoint_new(serve_source, NULL);
	serve_move(&serve);
	g_unix_fd_add(0, G_IO_IN | G_IO_HUP, serve_input, &serve);
	g_main_loop_run(serve.loop);
	endpoint_free(serve.endpoint);
	g_main_loop_unref(serve.loop);
	return 0;
}
