// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/access.h"

#define POLKIT_NAME		"org.freedesktop.PolicyKit1"
#define POLKIT_PATH		"/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE	"org.freedesktop.PolicyKit1.Authority"
#define POLKIT_INTERACTIVE	1u
#define ACCESS_TIMEOUT_MS	(5 * 60 * 1000)

static bool access_is_root(GDBusConnection *connection, const char *sender)
{
	g_autoptr(GVariant) answer = g_dbus_connection_call_sync(
		connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
		"GetConnectionUnixUser", g_variant_new("(s)", sender), G_VARIANT_TYPE("(u)"),
		G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);
	guint32 uid;

	if (!answer)
		return false;
	g_variant_get(answer, "(u)", &uid);
	return uid == 0;
}

/* Over plain D-Bus: the call is one line long, libpolkit is a dependency. */
static bool access_polkit(GDBusConnection *connection, const char *sender, const char *action,
			  bool interactive, GError **error)
{
	g_autoptr(GVariant) answer = NULL;
	GVariantBuilder subject;
	gboolean allowed, challenge;

	g_variant_builder_init(&subject, G_VARIANT_TYPE("a{sv}"));
	g_variant_builder_add(&subject, "{sv}", "name", g_variant_new_string(sender));
	answer = g_dbus_connection_call_sync(
		connection, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE, "CheckAuthorization",
		g_variant_new("((sa{sv})s@a{ss}us)", "system-bus-name", &subject, action,
			      g_variant_new_array(G_VARIANT_TYPE("{ss}"), NULL, 0),
			      interactive ? POLKIT_INTERACTIVE : 0u, ""),
		G_VARIANT_TYPE("((bba{ss}))"), G_DBUS_CALL_FLAGS_NONE, ACCESS_TIMEOUT_MS, NULL, error);
	if (!answer)
		return false;
	g_variant_get(answer, "((bb@a{ss}))", &allowed, &challenge, NULL);
	return allowed;
}

bool access_check(GDBusMethodInvocation *invocation, const char *action)
{
	GDBusConnection *connection = g_dbus_method_invocation_get_connection(invocation);
	GDBusMessage *message = g_dbus_method_invocation_get_message(invocation);
	const char *sender = g_dbus_method_invocation_get_sender(invocation);
	bool interactive = g_dbus_message_get_flags(message) &
			   G_DBUS_MESSAGE_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION;
	g_autoptr(GError) error = NULL;

	if (access_is_root(connection, sender) ||
	    access_polkit(connection, sender, action, interactive, &error))
		return true;
	if (error)
		g_dbus_error_strip_remote_error(error);
	g_dbus_method_invocation_return_error(
		invocation, G_DBUS_ERROR, G_DBUS_ERROR_ACCESS_DENIED,
		"%s is not allowed to this user%s%s: be root, or in group octavo (polkit action %s)",
		g_dbus_method_invocation_get_method_name(invocation), error ? "; polkit: " : "",
		error ? error->message : "", action);
	return false;
}
