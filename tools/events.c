// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl's commands that tell what happened and happens: log, events */
#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/client.h"
#include "tools/octavoctl.h"

struct events_watch {
	struct octavoctl *ctl;
	GMainLoop *loop;
	int left;		/* events still to print; negative: without end */
	bool gone;		/* octavod has ended */
};

/* One line; of JSON if wanted. */
static void events_print(const struct octavoctl *ctl, gint64 time_us, const char *type,
			 const char *uuid, const char *gpu, const char *message)
{
	g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(time_us / G_USEC_PER_SEC);
	g_autofree char *text = NULL;

	if (ctl->json) {
		GVariantDict dict;
		g_autoptr(GVariant) record = NULL;

		g_variant_dict_init(&dict, NULL);
		g_variant_dict_insert(&dict, "time_us", "x", time_us);
		g_variant_dict_insert(&dict, "type", "s", type);
		g_variant_dict_insert(&dict, "uuid", "s", uuid);
		g_variant_dict_insert(&dict, "gpu_address", "s", gpu);
		g_variant_dict_insert(&dict, "message", "s", message);
		record = g_variant_ref_sink(g_variant_dict_end(&dict));
		text = json_gvariant_serialize_data(record, NULL);
		puts(text);
	} else {
		text = g_date_time_format(time, "%F %T");
		printf("%s  %-11s  %s%s%s\n", text, type, *uuid ? uuid : gpu,
		       *uuid || *gpu ? "  " : "", message);
	}
	fflush(stdout);
}

static void events_signal(GDBusConnection *bus, const char *sender, const char *path,
			  const char *interface, const char *signal, GVariant *arguments, void *data)
{
	struct events_watch *watch = data;
	const char *type, *uuid, *gpu, *message;
	gint64 time_us;

	(void)bus;
	(void)sender;
	(void)path;
	(void)interface;
	(void)signal;
	if (!g_variant_is_of_type(arguments, G_VARIANT_TYPE("(xssss)")))
		return;
	g_variant_get(arguments, "(x&s&s&s&s)", &time_us, &type, &uuid, &gpu, &message);
	events_print(watch->ctl, time_us, type, uuid, gpu, message);
	if (watch->left > 0) {
		watch->left--;
		if (!watch->left)
			g_main_loop_quit(watch->loop);
	}
}

static void events_vanished(GDBusConnection *bus, const char *name, void *data)
{
	struct events_watch *watch = data;

	(void)bus;
	(void)name;
	watch->gone = true;
	g_main_loop_quit(watch->loop);
}

static int events_wait(struct octavoctl *ctl, GError **error)
{
	struct events_watch watch = {
		.ctl = ctl,
		.loop = g_main_loop_new(NULL, FALSE),
		.left = ctl->count ? ctl->count : -1,
	};
	guint signal, name;

	signal = g_dbus_connection_signal_subscribe(ctl->bus, CLIENT_NAME, CLIENT_MANAGER, "Event",
						    CLIENT_PATH, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
						    events_signal, &watch, NULL);
	name = g_bus_watch_name_on_connection(ctl->bus, CLIENT_NAME, G_BUS_NAME_WATCHER_FLAGS_NONE,
					      NULL, events_vanished, &watch, NULL);
	g_main_loop_run(watch.loop);
	g_bus_unwatch_name(name);
	g_dbus_connection_signal_unsubscribe(ctl->bus, signal);
	g_main_loop_unref(watch.loop);
	if (!watch.gone)
		return 0;
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_NO_DAEMON,
		    "octavod does not run: start it with 'systemctl start octavod'");
	return CLIENT_ERROR_NO_DAEMON;
}

int events_follow(struct octavoctl *ctl, GError **error)
{
	return events_wait(ctl, error);
}

int events_log(struct octavoctl *ctl, GError **error)
{
	g_autoptr(GVariant) answer =
		client_call(ctl->bus, CLIENT_PATH, CLIENT_MANAGER, "GetEvents", NULL, error);
	const char *type, *uuid, *gpu, *message;
	g_autoptr(GVariantIter) iter = NULL;
	gint64 time_us;

	if (!answer)
		return 1;
	g_variant_get(answer, "(a(xssss))", &iter);
	while (g_variant_iter_next(iter, "(x&s&s&s&s)", &time_us, &type, &uuid, &gpu, &message))
		events_print(ctl, time_us, type, uuid, gpu, message);
	return ctl->follow ? events_wait(ctl, error) : 0;
}
