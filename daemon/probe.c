// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/probe.h"

#include <gio/gio.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PROBE_SECONDS 120u	/* a driver that has not answered by then never will */

struct probe {
	GSubprocess *process;
	GCancellable *cancellable;
	guint timeout;
	probe_done_fn fn;
	void *data;
};

/* What is behind "KEY " if @line begins with it. */
static const char *probe_value(const char *line, const char *key)
{
	size_t length = strlen(key);

	return g_str_has_prefix(line, key) && line[length] == ' ' ? line + length + 1 : NULL;
}

static void probe_set(char **field, const char *value)
{
	g_free(*field);
	*field = g_strdup(value);
}

struct probe_facts *probe_parse(const char *text)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	struct probe_facts *facts = g_new0(struct probe_facts, 1);
	const char *value;

	for (unsigned int i = 0; lines[i]; i++) {
		if ((value = probe_value(lines[i], "capsets"))) {
			probe_set(&facts->capsets, value);
		} else if ((value = probe_value(lines[i], "render-node"))) {
			probe_set(&facts->render_node, value);
		} else if ((value = probe_value(lines[i], "vulkan-ids"))) {
			probe_set(&facts->vulkan_ids, value);
		} else if ((value = probe_value(lines[i], "vram-bytes"))) {
			facts->vram_bytes = g_ascii_strtoull(value, NULL, 10);
		} else if ((value = probe_value(lines[i], "vulkan-device"))) {
			const char *end = strchrnul(value, ' ');

			g_free(facts->vulkan_device);
			facts->vulkan_device = g_strndup(value, (size_t)(end - value));
			probe_set(&facts->vulkan_name, *end ? end + 1 : "");
		}
	}
	if (facts->capsets)
		return facts;
	probe_facts_free(facts);
	return NULL;
}

void probe_facts_free(struct probe_facts *facts)
{
	if (!facts)
		return;
	g_free(facts->capsets);
	g_free(facts->render_node);
	g_free(facts->vulkan_device);
	g_free(facts->vulkan_name);
	g_free(facts->vulkan_ids);
	g_free(facts);
}

/* The facts with a text, by their names in the cache. */
static const struct {
	const char *name;
	size_t offset;
} probe_fields[] = {
	{ "capsets", offsetof(struct probe_facts, capsets) },
	{ "render-node", offsetof(struct probe_facts, render_node) },
	{ "vulkan-device", offsetof(struct probe_facts, vulkan_device) },
	{ "vulkan-name", offsetof(struct probe_facts, vulkan_name) },
	{ "vulkan-ids", offsetof(struct probe_facts, vulkan_ids) },
};

struct probe_facts *probe_cache_read(const char *path, const char *gpu, const char *key)
{
	g_autoptr(GKeyFile) file = g_key_file_new();
	g_autofree char *known = NULL;
	struct probe_facts *facts;

	if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL))
		return NULL;
	known = g_key_file_get_string(file, gpu, "key", NULL);
	if (g_strcmp0(known, key) != 0 || !g_key_file_has_key(file, gpu, "capsets", NULL))
		return NULL;
	facts = g_new0(struct probe_facts, 1);
	for (unsigned int i = 0; i < G_N_ELEMENTS(probe_fields); i++)
		*(char **)((char *)facts + probe_fields[i].offset) =
			g_key_file_get_string(file, gpu, probe_fields[i].name, NULL);
	facts->vram_bytes = g_key_file_get_uint64(file, gpu, "vram-bytes", NULL);
	return facts;
}

void probe_cache_write(const char *path, const char *gpu, const char *key,
		       const struct probe_facts *facts)
{
	g_autoptr(GKeyFile) file = g_key_file_new();
	g_autoptr(GError) error = NULL;

	g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL);
	g_key_file_remove_group(file, gpu, NULL);
	if (facts) {
		g_key_file_set_string(file, gpu, "key", key);
		for (unsigned int i = 0; i < G_N_ELEMENTS(probe_fields); i++) {
			const char *text = *(char *const *)((const char *)facts + probe_fields[i].offset);

			if (text)
				g_key_file_set_string(file, gpu, probe_fields[i].name, text);
		}
		g_key_file_set_uint64(file, gpu, "vram-bytes", facts->vram_bytes);
	}
	if (!g_key_file_save_to_file(file, path, &error))
		g_debug("%s", error->message);
}

static void probe_done(GObject *source, GAsyncResult *result, void *data)
{
	GSubprocess *process = G_SUBPROCESS(source);
	g_autoptr(GError) error = NULL;
	g_autofree char *output = NULL;
	struct probe_facts *facts = NULL;
	struct probe *probe = data;
	bool read = g_subprocess_communicate_utf8_finish(process, result, &output, NULL, &error);

	/* freed meanwhile */
	if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
		return;
	if (probe->timeout)
		g_source_remove(probe->timeout);
	probe->timeout = 0;
	if (read && g_subprocess_get_if_exited(process) && g_subprocess_get_exit_status(process) == 0)
		facts = probe_parse(output);
	if (read && !facts)
		g_set_error(&error, G_IO_ERROR, G_IO_ERROR_FAILED,
			    "what the configuration asks for cannot be rendered, see journalctl -u octavod");
	probe->fn(facts, error, probe->data);
}

static gboolean probe_overdue(void *data)
{
	struct probe *probe = data;

	probe->timeout = 0;
	g_subprocess_force_exit(probe->process);
	return G_SOURCE_REMOVE;
}

struct probe *probe_start(const char *program, const char *gpu, const char *renderer,
			  const char *vulkan_device, probe_done_fn fn, void *data, GError **error)
{
	const char *argv[] = {
		program, "--probe", "--gpu", gpu, "--renderer", renderer, NULL, NULL, NULL,
	};
	g_autoptr(GSubprocessLauncher) launcher =
		g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE);
	GSubprocess *process;
	struct probe *probe;

	if (vulkan_device) {
		argv[6] = "--vulkan-device";
		argv[7] = vulkan_device;
	}
	g_subprocess_launcher_unsetenv(launcher, "NOTIFY_SOCKET");
	process = g_subprocess_launcher_spawnv(launcher, argv, error);
	if (!process)
		return NULL;
	probe = g_new0(struct probe, 1);
	probe->process = process;
	probe->cancellable = g_cancellable_new();
	probe->fn = fn;
	probe->data = data;
	probe->timeout = g_timeout_add_seconds(PROBE_SECONDS, probe_overdue, probe);
	g_subprocess_communicate_utf8_async(process, NULL, probe->cancellable, probe_done, probe);
	return probe;
}

void probe_free(struct probe *probe)
{
	if (!probe)
		return;
	if (probe->timeout) {
		g_source_remove(probe->timeout);
		g_subprocess_force_exit(probe->process);
	}
	g_cancellable_cancel(probe->cancellable);
	g_object_unref(probe->cancellable);
	g_object_unref(probe->process);
	g_free(probe);
}
