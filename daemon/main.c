// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavod: parses its command line, starts manager and bus, and runs the main loop. */
#include <gio/gio.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "config.h"
#include "daemon/bus.h"
#include "daemon/collect.h"
#include "daemon/endpoint.h"
#include "daemon/keep.h"
#include "daemon/manager.h"
#include "daemon/paths.h"

#define EXIT_CONFIGURATION	78	/* EX_CONFIG: systemd does not try again */
#define EXIT_SECOND_INSTANCE	3	/* likewise */

#define READY_SECONDS	60u	/* VMs that start at boot wait for octavod, but not for a GPU that hangs */

struct octavod {
	GMainLoop *loop;
	struct manager *manager;
	struct endpoint *endpoint;
	guint late;		/* GSource of READY_SECONDS; 0: systemd knows that octavod is ready */
	int status;
};

/* conf.log_level, for the writer, which GLib gives no argument from here */
static GLogLevelFlags log_level = G_LOG_LEVEL_INFO;

static GLogWriterOutput main_log(GLogLevelFlags level, const GLogField *fields, gsize count,
				 void *data)
{
	(void)data;
	if ((level & G_LOG_LEVEL_MASK) > log_level)
		return G_LOG_WRITER_HANDLED;
	if (g_log_writer_is_journald(STDERR_FILENO) &&
	    g_log_writer_journald(level, fields, count, NULL) == G_LOG_WRITER_HANDLED)
		return G_LOG_WRITER_HANDLED;
	return g_log_writer_standard_streams(level, fields, count, NULL);
}

static int main_status(const GError *error)
{
	if (error->domain == CONF_ERROR)
		return EXIT_CONFIGURATION;
	if (g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_BUSY) ||
	    g_error_matches(error, G_IO_ERROR, G_IO_ERROR_EXISTS))
		return EXIT_SECOND_INSTANCE;
	return EXIT_FAILURE;
}

static void main_fatal(const GError *error, void *data)
{
	struct octavod *octavod = data;

	g_critical("%s", error->message);
	octavod->status = main_status(error);
	g_main_loop_quit(octavod->loop);
}

static gboolean main_stop(void *data)
{
	struct octavod *octavod = data;

	sd_notify(0, "STOPPING=1");
	g_main_loop_quit(octavod->loop);
	return G_SOURCE_CONTINUE;
}

static struct snapshot *main_collect(bool detailed, void *data)
{
	struct octavod *octavod = data;

	return collect(octavod->manager, detailed);
}

/* Metrics that cannot be had are no reason to serve no VMs. */
static void main_apply_conf(void *data)
{
	struct octavod *octavod = data;
	const struct conf *conf = manager_conf(octavod->manager);
	g_autoptr(GError) error = NULL;

	log_level = conf->log_level;
	if (!endpoint_listen(octavod->endpoint, conf->metrics_address, conf->metrics_port, &error))
		g_warning("%s: choose another metrics-port or metrics-address in octavo.conf and reload; all else goes on",
			  error->message);
}

static gboolean main_reload(void *data)
{
	struct octavod *octavod = data;
	g_autoptr(GError) error = NULL;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" G_GINT64_FORMAT, g_get_monotonic_time());
	if (manager_reload(octavod->manager, &error)) {
		sd_notify(0, "READY=1\nSTATUS=configuration read");
	} else {
		g_warning("%s: the configuration in force stays", error->message);
		sd_notifyf(0, "READY=1\nSTATUS=configuration refused: %s", error->message);
	}
	return G_SOURCE_CONTINUE;
}

/* Every GPU is examined, so a VM that starts now finds its vGPU. */
static void main_ready(void *data)
{
	struct octavod *octavod = data;

	if (octavod->late) {
		g_source_remove(octavod->late);
		octavod->late = 0;
		sd_notify(0, "READY=1");
	}
}

static gboolean main_late(void *data)
{
	g_warning("examining the GPUs takes longer than %u s: VMs that start now may have to try again",
		  READY_SECONDS);
	main_ready(data);
	return G_SOURCE_REMOVE;
}

static gboolean main_watchdog(void *data)
{
	(void)data;
	sd_notify(0, "WATCHDOG=1");
	return G_SOURCE_CONTINUE;
}

static int main_run(struct octavod *octavod, const char *conf_path, const char *control_path)
{
	g_autoptr(GError) error = NULL;
	struct bus *bus;
	uint64_t watchdog_us;

	octavod->manager = manager_new(conf_path, control_path, &error);
	if (!octavod->manager) {
		g_critical("%s", error->message);
		return main_status(error);
	}
	octavod->endpoint = endpoint_new(main_collect, octavod);
	main_apply_conf(octavod);
	manager_when_reloaded(octavod->manager, main_apply_conf, octavod);
	bus = bus_new(octavod->manager, main_fatal, octavod, &error);
	if (!bus) {
		g_critical("%s", error->message);
		endpoint_free(octavod->endpoint);
		manager_free(octavod->manager);
		return main_status(error);
	}
	g_unix_signal_add(SIGTERM, main_stop, octavod);
	g_unix_signal_add(SIGINT, main_stop, octavod);
	g_unix_signal_add(SIGHUP, main_reload, octavod);
	if (sd_watchdog_enabled(0, &watchdog_us) > 0)
		g_timeout_add((guint)(watchdog_us / 2000), main_watchdog, NULL);
	octavod->late = g_timeout_add_seconds(READY_SECONDS, main_late, octavod);
	manager_when_examined(octavod->manager, main_ready, octavod);
	g_main_loop_run(octavod->loop);

	bus_free(bus);
	endpoint_free(octavod->endpoint);
	manager_free(octavod->manager);
	return octavod->status;
}

int main(int argc, char **argv)
{
	g_autofree char *conf_path = NULL;
	g_autofree char *control_path = NULL;
	gboolean version = FALSE, check = FALSE;
	const GOptionEntry entries[] = {
		{ "config", 'c', 0, G_OPTION_ARG_FILENAME, &conf_path,
		  "read FILE and FILE.d/ instead of " OCTAVO_CONF, "FILE" },
		{ "control", 0, 0, G_OPTION_ARG_FILENAME, &control_path,
		  "the module's node is FILE, not " CONTROL_PATH, "FILE" },
		{ "check", 0, 0, G_OPTION_ARG_NONE, &check,
		  "check the configuration and end", NULL },
		{ "version", 0, 0, G_OPTION_ARG_NONE, &version, "print the version and end", NULL },
		{ 0 },
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- fold GPUs into vGPUs");
	struct octavod octavod = { .status = EXIT_SUCCESS };
	g_autoptr(GError) error = NULL;
	struct conf *conf;
	int status;

	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &error) || argc > 1) {
		fprintf(stderr, "octavod: %s: see octavod --help\n",
			error ? error->message : "it takes no arguments beside options");
		return 2;
	}
	if (version) {
		puts("octavod " PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	if (check) {
		conf = conf_load(conf_path ? conf_path : OCTAVO_CONF, &error);
		if (!conf) {
			fprintf(stderr, "octavod: %s\n", error->message);
			return EXIT_CONFIGURATION;
		}
		conf_free(conf);
		return EXIT_SUCCESS;
	}

	keep_init();
	g_log_set_writer_func(main_log, NULL, NULL);
	octavod.loop = g_main_loop_new(NULL, FALSE);
	status = main_run(&octavod, conf_path ? conf_path : OCTAVO_CONF,
			  control_path ? control_path : CONTROL_PATH);
	g_main_loop_unref(octavod.loop);
	return status;
}
