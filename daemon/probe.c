// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <gio/gunixinputstream.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/unit.h"

#define PROBE_SECONDS 120u	/* a driver that has not answered by then never will */

#define PROBE_OUTPUT_FD	"3"	/* the first that a unit is given */

struct probe {
	/* one or the other */
	GSubprocess *process;
	struct unit *unit;	/* until it has started */
	int pidfd;		/* of the unit's program, or -1 */
	GOutputStream *output;	/* what it has printed */
	GError *error;		/* why there is none, or NULL */
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

static void probe_finish(struct probe *probe, const char *output, GError *error)
{
	struct probe_facts *facts = output && !error ? probe_parse(output) : NULL;

	if (probe->timeout)
		g_source_remove(probe->timeout);
	probe->timeout = 0;
	if (!facts && !error)
		error = g_error_new_literal(G_IO_ERROR, G_IO_ERROR_FAILED,
					    "what the configuration asks for cannot be rendered, see journalctl -u octavod -u 'octavo-vgpu@probe*'");
	probe->fn(facts, error, probe->data);
	g_clear_error(&error);
}

static gboolean probe_overdue(void *data)
{
	struct probe *probe = data;

	probe->timeout = 0;
	if (probe->process)
		g_subprocess_force_exit(probe->process);
	else if (probe->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, probe->pidfd, SIGKILL, NULL, 0);
	return G_SOURCE_REMOVE;
}

/* ---- octavod's own child ---- */

static void probe_child_done(GObject *source, GAsyncResult *result, void *data)
{
	GSubprocess *process = G_SUBPROCESS(source);
	g_autofree char *output = NULL;
	struct probe *probe = data;
	GError *error = NULL;
	bool read = g_subprocess_communicate_utf8_finish(process, result, &output, NULL, &error);

	/* freed meanwhile */
	if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
		g_error_free(error);
		return;
	}
	if (read && (!g_subprocess_get_if_exited(process) || g_subprocess_get_exit_status(process)))
		g_clear_pointer(&output, g_free);
	probe_finish(probe, output, error);
}

static bool probe_fork(struct probe *probe, const char *program, const char *const *arguments,
		       GError **error)
{
	g_autoptr(GSubprocessLauncher) launcher =
		g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE);
	g_autoptr(GPtrArray) argv = g_ptr_array_new();

	g_ptr_array_add(argv, (void *)program);
	for (unsigned int i = 0; arguments[i]; i++)
		g_ptr_array_add(argv, (void *)arguments[i]);
	g_ptr_array_add(argv, NULL);
	g_subprocess_launcher_unsetenv(launcher, "NOTIFY_SOCKET");
	probe->process = g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, error);
	if (probe->process)
		g_subprocess_communicate_utf8_async(probe->process, NULL, probe->cancellable,
						    probe_child_done, probe);
	return probe->process;
}

/* ---- a unit ---- */

/* The last holder of the pipe has ended, octavod among them. */
static void probe_unit_done(GObject *source, GAsyncResult *result, void *data)
{
	GOutputStream *stream = G_OUTPUT_STREAM(source);
	g_autofree char *output = NULL;
	struct probe *probe = data;
	GError *error = NULL;

	g_output_stream_splice_finish(stream, result, &error);
	if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
		g_error_free(error);
		return;
	}
	if (!error)
		error = g_steal_pointer(&probe->error);
	output = g_strndup(g_memory_output_stream_get_data(G_MEMORY_OUTPUT_STREAM(stream)),
			   g_memory_output_stream_get_data_size(G_MEMORY_OUTPUT_STREAM(stream)));
	probe_finish(probe, output, error);
}

static void probe_unit_started(pid_t pid, int pidfd, const GError *error, void *data)
{
	struct probe *probe = data;

	(void)pid;
	probe->pidfd = pidfd;
	if (error)
		probe->error = g_error_copy(error);
	/* and with it octavod's end of the pipe: what is read ends with the program */
	g_clear_pointer(&probe->unit, unit_free);
}

static bool probe_sandbox(struct probe *probe, const struct probe_setup *setup,
			  const char *const *arguments, GError **error)
{
	g_autofree char *instance = g_strconcat("probe-", setup->gpu, NULL);
	struct unit_setup unit = {
		.instance = instance, .arguments = arguments, .fds_count = 1, .devices = setup->devices,
	};
	g_autoptr(GInputStream) input = NULL;
	int pipes[2];

	if (!g_unix_open_pipe(pipes, O_CLOEXEC, error))
		return false;
	input = g_unix_input_stream_new(pipes[0], TRUE);
	unit.fds[0] = pipes[1];
	probe->unit = unit_start(setup->units, &unit, probe_unit_started, probe, error);
	close(pipes[1]);
	if (!probe->unit)
		return false;
	probe->output = g_memory_output_stream_new_resizable();
	g_output_stream_splice_async(probe->output, input, G_OUTPUT_STREAM_SPLICE_CLOSE_SOURCE,
				     G_PRIORITY_DEFAULT, probe->cancellable, probe_unit_done, probe);
	return true;
}

/* ---- life ---- */

struct probe *probe_start(const struct probe_setup *setup, probe_done_fn fn, void *data,
			  GError **error)
{
	g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
	struct probe *probe = g_new0(struct probe, 1);
	g_auto(GStrv) arguments = NULL;
	bool started;

	g_strv_builder_add_many(builder, "--probe", "--gpu", setup->gpu, "--renderer",
				setup->renderer, NULL);
	if (setup->vulkan_device)
		g_strv_builder_add_many(builder, "--vulkan-device", setup->vulkan_device, NULL);
	if (setup->units)
		g_strv_builder_add_many(builder, "--output-fd", PROBE_OUTPUT_FD, NULL);
	arguments = g_strv_builder_end(builder);

	probe->pidfd = -1;
	probe->cancellable = g_cancellable_new();
	probe->fn = fn;
	probe->data = data;
	probe->timeout = g_timeout_add_seconds(PROBE_SECONDS, probe_overdue, probe);
	started = setup->units ?
			  probe_sandbox(probe, setup, (const char *const *)arguments, error) :
			  probe_fork(probe, setup->program, (const char *const *)arguments, error);
	if (!started)
		g_clear_pointer(&probe, probe_free);
	return probe;
}

void probe_free(struct probe *probe)
{
	if (!probe)
		return;
	if (probe->timeout) {
		g_source_remove(probe->timeout);
		if (probe->process || probe->pidfd >= 0)
			probe_overdue(probe);
	}
	g_cancellable_cancel(probe->cancellable);
	g_object_unref(probe->cancellable);
	unit_free(probe->unit);
	if (probe->pidfd >= 0)
		close(probe->pidfd);
	g_clear_object(&probe->process);
	g_clear_object(&probe->output);
	g_clear_error(&probe->error);
	g_free(probe);
}
