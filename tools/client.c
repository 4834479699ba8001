// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/client.h"

#include "tools/output.h"

#define CLIENT_TIMEOUT_MS	(5 * 60 * 1000)	/* polkit may wait for a password */

G_DEFINE_QUARK(octavo-client-error, client_error)

/* Turns what D-Bus says into what a person can do about it. */
static void client_explain(GError *cause, GError **error)
{
	g_autofree char *name = g_dbus_error_get_remote_error(cause);
	enum client_error code = CLIENT_ERROR_FAILED;

	if (g_error_matches(cause, G_DBUS_ERROR, G_DBUS_ERROR_SERVICE_UNKNOWN) ||
	    g_error_matches(cause, G_DBUS_ERROR, G_DBUS_ERROR_NAME_HAS_NO_OWNER) ||
	    g_error_matches(cause, G_DBUS_ERROR, G_DBUS_ERROR_NO_REPLY)) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_NO_DAEMON,
			    "octavod does not run: start it with 'systemctl start octavod'; if it does not stay, 'octavoctl doctor' and 'journalctl -u octavod' say why");
		g_error_free(cause);
		return;
	}
	if (g_error_matches(cause, G_DBUS_ERROR, G_DBUS_ERROR_ACCESS_DENIED))
		code = CLIENT_ERROR_DENIED;
	else if (g_strcmp0(name, "org.octavo1.Error.NotFound") == 0 ||
		 g_error_matches(cause, G_DBUS_ERROR, G_DBUS_ERROR_UNKNOWN_OBJECT))
		code = CLIENT_ERROR_NOT_FOUND;
	g_dbus_error_strip_remote_error(cause);
	g_set_error(error, CLIENT_ERROR, (int)code, "%s", cause->message);
	g_error_free(cause);
}

GDBusConnection *client_connect(GError **error)
{
	GError *cause = NULL;
	GDBusConnection *bus = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, &cause);

	if (bus) {
		g_dbus_connection_set_exit_on_close(bus, FALSE);
		return bus;
	}
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_NO_DAEMON,
		    "cannot reach the system bus (%s): start it with 'systemctl start dbus'",
		    cause->message);
	g_error_free(cause);
	return NULL;
}

GVariant *client_call(GDBusConnection *bus, const char *path, const char *interface,
		      const char *method, GVariant *arguments, GError **error)
{
	GError *cause = NULL;
	GVariant *answer = g_dbus_connection_call_sync(
		bus, CLIENT_NAME, path, interface, method, arguments, NULL,
		G_DBUS_CALL_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION, CLIENT_TIMEOUT_MS, NULL, &cause);

	if (!answer)
		client_explain(cause, error);
	return answer;
}

char *client_snake(const char *name)
{
	GString *snake = g_string_new(NULL);

	for (const char *c = name; *c; c++) {
		if (g_ascii_isupper(*c) && c != name)
			g_string_append_c(snake, '_');
		g_string_append_c(snake, g_ascii_tolower(*c));
	}
	return g_string_free(snake, FALSE);
}

static void client_add_properties(GVariantBuilder *record, GVariant *properties)
{
	GVariantIter iter;
	const char *name;
	GVariant *value;

	g_variant_iter_init(&iter, properties);
	while (g_variant_iter_loop(&iter, "{&sv}", &name, &value)) {
		g_autofree char *snake = client_snake(name);

		g_variant_builder_add(record, "{sv}", snake, value);
	}
}

GVariant *client_list(GDBusConnection *bus, const char *interface, GError **error)
{
	g_autoptr(GVariant) answer = client_call(bus, CLIENT_PATH, "org.freedesktop.DBus.ObjectManager",
						 "GetManagedObjects", NULL, error);
	g_autoptr(GVariant) objects = NULL;
	GVariantBuilder records;
	GVariantIter iter;
	const char *path;
	GVariant *interfaces;

	if (!answer)
		return NULL;
	objects = g_variant_get_child_value(answer, 0);
	g_variant_builder_init(&records, G_VARIANT_TYPE("aa{sv}"));
	g_variant_iter_init(&iter, objects);
	while (g_variant_iter_loop(&iter, "{&o@a{sa{sv}}}", &path, &interfaces)) {
		g_autoptr(GVariant) properties =
			g_variant_lookup_value(interfaces, interface, G_VARIANT_TYPE("a{sv}"));

		if (!properties)
			continue;
		g_variant_builder_open(&records, G_VARIANT_TYPE("a{sv}"));
		g_variant_builder_add(&records, "{sv}", "path", g_variant_new_object_path(path));
		client_add_properties(&records, properties);
		g_variant_builder_close(&records);
	}
	return g_variant_ref_sink(g_variant_builder_end(&records));
}

static GVariant *client_properties(GDBusConnection *bus, const char *path, const char *interface,
				   GError **error)
{
	g_autoptr(GVariant) answer = client_call(bus, path, "org.freedesktop.DBus.Properties",
						 "GetAll", g_variant_new("(s)", interface), error);
	g_autoptr(GVariant) properties = NULL;
	GVariantBuilder record;

	if (!answer)
		return NULL;
	properties = g_variant_get_child_value(answer, 0);
	g_variant_builder_init(&record, G_VARIANT_TYPE("a{sv}"));
	g_variant_builder_add(&record, "{sv}", "path", g_variant_new_object_path(path));
	client_add_properties(&record, properties);
	return g_variant_ref_sink(g_variant_builder_end(&record));
}

char *client_vgpu_path(GDBusConnection *bus, const char *uuid, GError **error)
{
	g_autoptr(GVariant) answer = client_call(bus, CLIENT_PATH, CLIENT_MANAGER, "GetVgpu",
						 g_variant_new("(s)", uuid), error);
	char *path = NULL;

	if (answer)
		g_variant_get(answer, "(o)", &path);
	return path;
}

GVariant *client_vgpu(GDBusConnection *bus, const char *uuid, GError **error)
{
	g_autofree char *path = client_vgpu_path(bus, uuid, error);

	return path ? client_properties(bus, path, CLIENT_VGPU, error) : NULL;
}

GVariant *client_manager(GDBusConnection *bus, GError **error)
{
	return client_properties(bus, CLIENT_PATH, CLIENT_MANAGER, error);
}

char *client_gpu_path(GDBusConnection *bus, const char *address, GError **error)
{
	g_autoptr(GVariant) gpus = client_list(bus, CLIENT_GPU, error);

	if (!gpus)
		return NULL;
	for (gsize i = 0; i < g_variant_n_children(gpus); i++) {
		g_autoptr(GVariant) gpu = g_variant_get_child_value(gpus, i);

		if (g_str_equal(record_string(gpu, "address"), address))
			return g_strdup(record_string(gpu, "path"));
	}
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_NOT_FOUND,
		    "there is no GPU '%s': 'octavoctl gpus' shows those of this host", address);
	return NULL;
}
