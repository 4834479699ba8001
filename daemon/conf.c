// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/conf.h"

#include <errno.h>
#include <string.h>

#include "daemon/paths.h"
#include "mdev/octavo.h"
#include "scheduler/policy.h"

G_DEFINE_QUARK(octavo-conf-error, conf_error)

static const char *const renderer_names[] = { "auto", "2d", "virgl", "venus" };
static const char *const policy_names[] = { "best-effort", "equal-share", "fixed-share", "elastic" };

static int conf_choice(const char *value, const char *const *names, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (g_str_equal(value, names[i]))
			return (int)i;
	return -1;
}

const char *conf_renderer_name(enum conf_renderer renderer)
{
	return renderer_names[renderer];
}

const char *conf_policy_name(enum conf_policy policy)
{
	return policy_names[policy];
}

bool conf_policy_parse(const char *name, enum conf_policy *policy)
{
	int choice = conf_choice(name, policy_names, G_N_ELEMENTS(policy_names));

	if (choice >= 0)
		*policy = (enum conf_policy)choice;
	return choice >= 0;
}

/* A decimal number and, behind blanks, its unit. */
static bool conf_number(const char *text, uint64_t *number, const char **unit)
{
	char *end;

	if (!g_ascii_isdigit(*text))
		return false;
	errno = 0;
	*number = g_ascii_strtoull(text, &end, 10);
	if (errno)
		return false;
	while (*end == ' ' || *end == '\t')
		end++;
	*unit = end;
	return true;
}

bool conf_size_parse(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *unit;
		unsigned int shift;
	} units[] = {
		{ "", 0 }, { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 }, { "TiB", 40 },
	};
	const char *unit;
	uint64_t number;

	if (!conf_number(text, &number, &unit))
		return false;
	for (unsigned int i = 0; i < G_N_ELEMENTS(units); i++) {
		if (!g_str_equal(unit, units[i].unit))
			continue;
		if (number > UINT64_MAX >> units[i].shift)
			return false;
		*bytes = number << units[i].shift;
		return true;
	}
	return false;
}

static bool conf_bool(const char *value, bool *result)
{
	static const char *const names[] = { "false", "true", "no", "yes" };
	int choice = conf_choice(value, names, G_N_ELEMENTS(names));

	if (choice >= 0)
		*result = choice & 1;
	return choice >= 0;
}

static bool set_enable(struct conf_gpu *gpu, const char *value)
{
	return conf_bool(value, &gpu->enable);
}

static bool set_vram(struct conf_gpu *gpu, const char *value)
{
	if (g_str_equal(value, "auto")) {
		gpu->vram_bytes = 0;
		return true;
	}
	return conf_size_parse(value, &gpu->vram_bytes) && gpu->vram_bytes >= CONF_VRAM_MIN_BYTES;
}

static bool set_heads(struct conf_gpu *gpu, const char *value)
{
	const char *unit;
	uint64_t heads;

	if (!conf_number(value, &heads, &unit) || *unit || heads < 1 || heads > OCTAVO_HEADS_MAX)
		return false;
	gpu->heads = (unsigned int)heads;
	return true;
}

static bool set_renderer(struct conf_gpu *gpu, const char *value)
{
	int choice = conf_choice(value, renderer_names, G_N_ELEMENTS(renderer_names));

	if (choice >= 0)
		gpu->renderer = (enum conf_renderer)choice;
	return choice >= 0;
}

/* A deviceUUID as drivers print it, with or without dashes; anything else is part of a name. */
static bool set_vulkan_device(struct conf_gpu *gpu, const char *value)
{
	g_auto(GStrv) parts = g_strsplit(value, "-", -1);
	g_autofree char *plain = g_strjoinv("", parts);
	bool digits_only = true;

	g_clear_pointer(&gpu->vulkan_device, g_free);
	if (g_str_equal(value, "auto"))
		return true;
	for (const char *c = value; *c; c++)
		if (g_ascii_iscntrl(*c))
			return false;
	for (const char *c = plain; *c; c++)
		digits_only &= g_ascii_isxdigit(*c);
	gpu->vulkan_device = digits_only && strlen(plain) == 2 * UUID_BYTES ?
				     g_ascii_strdown(plain, -1) : g_strdup(value);
	return *value;
}

static bool set_policy(struct conf_gpu *gpu, const char *value)
{
	return conf_policy_parse(value, &gpu->policy);
}

/* "10 s", "2 ms" or "2500 us", not more than @most. */
static bool conf_us(const char *value, unsigned int most, unsigned int *us)
{
	const char *unit;
	uint64_t number;

	if (!conf_number(value, &number, &unit) || number > most)
		return false;
	if (g_str_equal(unit, "s"))
		number *= 1000000;
	else if (g_str_equal(unit, "ms"))
		number *= 1000;
	else if (!g_str_equal(unit, "us"))
		return false;
	if (number > most)
		return false;
	*us = (unsigned int)number;
	return true;
}

static bool set_slice(struct conf_gpu *gpu, const char *value)
{
	return conf_us(value, CONF_SLICE_MAX_US, &gpu->slice_us) &&
	       gpu->slice_us >= CONF_SLICE_MIN_US;
}

static bool set_busy_poll(struct conf_gpu *gpu, const char *value)
{
	return conf_us(value, CONF_BUSY_POLL_MAX_US, &gpu->busy_poll_us);
}

static bool set_watchdog(struct conf_gpu *gpu, const char *value)
{
	return conf_us(value, CONF_WATCHDOG_MAX_US, &gpu->watchdog_us) &&
	       gpu->watchdog_us >= CONF_WATCHDOG_MIN_US;
}

static const struct conf_gpu_key {
	const char *name;
	const char *allowed;
	bool (*set)(struct conf_gpu *gpu, const char *value);
} gpu_keys[] = {
	{ "enable", "true or false", set_enable },
	{ "vram", "auto, or a size of at least 128 MiB such as 8 GiB", set_vram },
	{ "heads", "1 to 4", set_heads },
	{ "renderer", "auto, 2d, virgl or venus", set_renderer },
	{ "vulkan-device", "auto, a Vulkan deviceUUID (32 hexadecimal digits), or part of a device's name", set_vulkan_device },
	{ "policy", "best-effort, equal-share, fixed-share or elastic", set_policy },
	{ "slice", "1 ms to 30 ms, in ms or us", set_slice },
	{ "busy-poll", "0 us to 10 ms, in ms or us", set_busy_poll },
	{ "watchdog", "1 s to 600 s", set_watchdog },
};

static bool set_worker(struct conf *conf, const char *value)
{
	g_free(conf->worker);
	conf->worker = g_strdup(value);
	return g_path_is_absolute(value);
}

static bool set_launcher(struct conf *conf, const char *value)
{
	static const char *const names[] = { "auto", "systemd", "fork" };
	int choice = conf_choice(value, names, G_N_ELEMENTS(names));

	if (choice >= 0)
		conf->launcher = (enum conf_launcher)choice;
	return choice >= 0;
}

static bool set_log_level(struct conf *conf, const char *value)
{
	static const char *const names[] = { "error", "warning", "notice", "info", "debug" };
	static const GLogLevelFlags levels[] = {
		G_LOG_LEVEL_CRITICAL, G_LOG_LEVEL_WARNING, G_LOG_LEVEL_MESSAGE, G_LOG_LEVEL_INFO,
		G_LOG_LEVEL_DEBUG,
	};
	int choice = conf_choice(value, names, G_N_ELEMENTS(names));

	if (choice >= 0)
		conf->log_level = levels[choice];
	return choice >= 0;
}

static bool set_metrics_port(struct conf *conf, const char *value)
{
	const char *unit;
	uint64_t port;

	if (!conf_number(value, &port, &unit) || *unit || port > 65535)
		return false;
	conf->metrics_port = (unsigned int)port;
	return true;
}

static bool set_metrics_address(struct conf *conf, const char *value)
{
	g_free(conf->metrics_address);
	conf->metrics_address = g_strdup(value);
	return g_hostname_is_ip_address(value);
}

static const struct conf_key {
	const char *name;
	const char *allowed;
	bool (*set)(struct conf *conf, const char *value);
} daemon_keys[] = {
	{ "worker", "an absolute path", set_worker },
	{ "launcher", "auto, systemd or fork", set_launcher },
	{ "log-level", "error, warning, notice, info or debug", set_log_level },
	{ "metrics-port", "0 (off) or a TCP port", set_metrics_port },
	{ "metrics-address", "an IP address", set_metrics_address },
};

/* One file while it is read, for the messages. */
struct conf_file {
	const char *path;
	const char *text;
};

static bool conf_is_group(const char *line, const char *group)
{
	size_t length = strlen(group);

	return line[0] == '[' && strncmp(line + 1, group, length) == 0 && line[1 + length] == ']';
}

/*
 * The line, from 1, on which GKeyFile found @key (the last wins) or the group's header if @key is
 * NULL; GKeyFile itself keeps no line numbers.
 */
static unsigned int conf_line(const struct conf_file *file, const char *group, const char *key)
{
	g_auto(GStrv) lines = g_strsplit(file->text, "\n", -1);
	unsigned int found = 0;
	bool inside = false;

	for (unsigned int i = 0; lines[i]; i++) {
		const char *line = g_strstrip(lines[i]);

		if (*line == '[') {
			inside = conf_is_group(line, group);
			if (inside && !key)
				found = i + 1;
		} else if (inside && key && g_str_has_prefix(line, key)) {
			const char *rest = line + strlen(key);

			while (*rest == ' ' || *rest == '\t')
				rest++;
			if (*rest == '=')
				found = i + 1;
		}
	}
	return found;
}

static void conf_refuse(GError **error, const struct conf_file *file, const char *group,
			const char *key, const char *found, const char *allowed)
{
	unsigned int line = conf_line(file, group, key);

	if (key)
		g_set_error(error, CONF_ERROR, CONF_ERROR_VALUE, "%s:%u: [%s] %s%s: allowed: %s",
			    file->path, line, group, key, found, allowed);
	else
		g_set_error(error, CONF_ERROR, CONF_ERROR_VALUE, "%s:%u: [%s]%s: allowed: %s",
			    file->path, line, group, found, allowed);
}

static bool conf_set_daemon(struct conf *conf, const struct conf_file *file, const char *group,
			    const char *key, const char *value, GError **error)
{
	g_autoptr(GString) names = g_string_new(NULL);

	for (unsigned int i = 0; i < G_N_ELEMENTS(daemon_keys); i++) {
		g_string_append_printf(names, "%s%s", i ? ", " : "", daemon_keys[i].name);
		if (!g_str_equal(key, daemon_keys[i].name))
			continue;
		if (daemon_keys[i].set(conf, value))
			return true;
		g_autofree char *found = g_strdup_printf(" = %s", value);

		conf_refuse(error, file, group, key, found, daemon_keys[i].allowed);
		return false;
	}
	conf_refuse(error, file, group, key, " is no key of this group", names->str);
	return false;
}

static bool conf_set_gpu(struct conf_gpu *gpu, const struct conf_file *file, const char *group,
			 const char *key, const char *value, GError **error)
{
	g_autoptr(GString) names = g_string_new(NULL);

	for (unsigned int i = 0; i < G_N_ELEMENTS(gpu_keys); i++) {
		g_string_append_printf(names, "%s%s", i ? ", " : "", gpu_keys[i].name);
		if (!g_str_equal(key, gpu_keys[i].name))
			continue;
		if (gpu_keys[i].set(gpu, value)) {
			gpu->given |= 1u << i;
			return true;
		}
		g_autofree char *found = g_strdup_printf(" = %s", value);

		conf_refuse(error, file, group, key, found, gpu_keys[i].allowed);
		return false;
	}
	conf_refuse(error, file, group, key, " is no key of this group", names->str);
	return false;
}

static struct conf_gpu *conf_find_gpu(const struct conf *conf, const struct pci_address *address)
{
	for (unsigned int i = 0; i < conf->gpus->len; i++) {
		struct conf_gpu *gpu = &g_array_index(conf->gpus, struct conf_gpu, i);

		if (pci_address_equal(&gpu->address, address))
			return gpu;
	}
	return NULL;
}

static struct conf_gpu *conf_add_gpu(struct conf *conf, const struct pci_address *address)
{
	struct conf_gpu gpu = { .address = *address };
	struct conf_gpu *known = conf_find_gpu(conf, address);

	if (known)
		return known;
	g_array_append_val(conf->gpus, gpu);
	return &g_array_index(conf->gpus, struct conf_gpu, conf->gpus->len - 1);
}

static bool conf_read_group(struct conf *conf, const struct conf_file *file, GKeyFile *keys,
			    const char *group, GError **error)
{
	struct conf_gpu *gpu = NULL;
	struct pci_address address;

	if (g_str_equal(group, "gpu any")) {
		gpu = &conf->any;
	} else if (g_str_has_prefix(group, "gpu ") &&
		   pci_address_parse(group + strlen("gpu "), &address)) {
		gpu = conf_add_gpu(conf, &address);
	} else if (!g_str_equal(group, "octavod")) {
		conf_refuse(error, file, group, NULL, " is no group that octavod knows",
			    "[octavod], [gpu any], [gpu DDDD:BB:SS.F]");
		return false;
	}

	g_auto(GStrv) names = g_key_file_get_keys(keys, group, NULL, error);

	if (!names)
		return false;
	for (unsigned int i = 0; names[i]; i++) {
		g_autofree char *raw = g_key_file_get_value(keys, group, names[i], NULL);
		const char *value = raw ? g_strstrip(raw) : "";
		bool good = gpu ? conf_set_gpu(gpu, file, group, names[i], value, error) :
				  conf_set_daemon(conf, file, group, names[i], value, error);

		if (!good)
			return false;
	}
	return true;
}

/* GKeyFile merges groups of one name silently, and 01:00.0 and 0000:01:00.0 are one GPU. */
static bool conf_check_overlap(const struct conf_file *file, GError **error)
{
	g_auto(GStrv) lines = g_strsplit(file->text, "\n", -1);
	g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	for (unsigned int i = 0; lines[i]; i++) {
		char *line = g_strstrip(lines[i]);
		struct pci_address address;
		char *name;

		if (*line != '[' || !strchr(line, ']'))
			continue;
		*strchr(line, ']') = '\0';
		if (g_str_has_prefix(line, "[gpu ") &&
		    pci_address_parse(line + strlen("[gpu "), &address))
			name = pci_address_format(&address);
		else
			name = g_strdup(line + 1);

		unsigned int before = GPOINTER_TO_UINT(g_hash_table_lookup(seen, name));

		if (before) {
			g_set_error(error, CONF_ERROR, CONF_ERROR_VALUE,
				    "%s:%u: [%s] is the same as the group of line %u: put their keys into one",
				    file->path, i + 1, line + 1, before);
			g_free(name);
			return false;
		}
		g_hash_table_insert(seen, name, GUINT_TO_POINTER(i + 1));
	}
	return true;
}

/* GKeyFile's message about a bad line quotes it but does not say where it is. */
static unsigned int conf_bad_line(const char *text)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	bool inside = false;

	for (unsigned int i = 0; lines[i]; i++) {
		const char *line = g_strstrip(lines[i]);
		const char *equals = strchr(line, '=');

		if (!*line || *line == '#')
			continue;
		if (*line == '[' && line[strlen(line) - 1] == ']')
			inside = true;
		else if (!inside || !equals || equals == line)
			return i + 1;
	}
	return 0;
}

static bool conf_read_file(struct conf *conf, const char *path, GError **error)
{
	g_autoptr(GKeyFile) keys = g_key_file_new();
	g_autoptr(GError) cause = NULL;
	g_autofree char *text = NULL;
	size_t length;

	if (!g_file_get_contents(path, &text, &length, &cause)) {
		if (g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT))
			return true;
		g_set_error(error, CONF_ERROR, CONF_ERROR_FILE, "%s", cause->message);
		return false;
	}

	struct conf_file file = { .path = path, .text = text };

	if (!g_key_file_load_from_data(keys, text, length, G_KEY_FILE_NONE, &cause)) {
		if (length == 0)
			return true;
		g_set_error(error, CONF_ERROR, CONF_ERROR_FILE, "%s:%u: %s: allowed: [GROUP], KEY = VALUE, # comment",
			    path, conf_bad_line(text), cause->message);
		return false;
	}
	if (!conf_check_overlap(&file, error))
		return false;

	g_auto(GStrv) groups = g_key_file_get_groups(keys, NULL);

	for (unsigned int i = 0; groups[i]; i++)
		if (!conf_read_group(conf, &file, keys, groups[i], error))
			return false;
	return true;
}

static int conf_compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool conf_read_folder(struct conf *conf, const char *path, GError **error)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GError) cause = NULL;
	g_autoptr(GDir) dir = g_dir_open(path, 0, &cause);
	const char *name;

	if (!dir) {
		if (g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_NOENT))
			return true;
		g_set_error(error, CONF_ERROR, CONF_ERROR_FILE, "%s", cause->message);
		return false;
	}
	while ((name = g_dir_read_name(dir)))
		if (g_str_has_suffix(name, ".conf"))
			g_ptr_array_add(names, g_build_filename(path, name, NULL));
	g_ptr_array_sort(names, conf_compare_names);
	for (unsigned int i = 0; i < names->len; i++)
		if (!conf_read_file(conf, g_ptr_array_index(names, i), error))
			return false;
	return true;
}

/* Keys that a GPU's group does not have come from [gpu any]. */
static void conf_inherit(struct conf_gpu *gpu, const struct conf_gpu *any)
{
	struct conf_gpu own = *gpu;

	*gpu = *any;
	gpu->address = own.address;
	gpu->given = own.given;
	gpu->vulkan_device = g_strdup(any->vulkan_device);
	for (unsigned int i = 0; i < G_N_ELEMENTS(gpu_keys); i++) {
		if (!(own.given & 1u << i))
			continue;
		if (gpu_keys[i].set == set_enable)
			gpu->enable = own.enable;
		else if (gpu_keys[i].set == set_vram)
			gpu->vram_bytes = own.vram_bytes;
		else if (gpu_keys[i].set == set_heads)
			gpu->heads = own.heads;
		else if (gpu_keys[i].set == set_renderer)
			gpu->renderer = own.renderer;
		else if (gpu_keys[i].set == set_policy)
			gpu->policy = own.policy;
		else if (gpu_keys[i].set == set_slice)
			gpu->slice_us = own.slice_us;
		else if (gpu_keys[i].set == set_busy_poll)
			gpu->busy_poll_us = own.busy_poll_us;
		else if (gpu_keys[i].set == set_watchdog)
			gpu->watchdog_us = own.watchdog_us;
		else if (gpu_keys[i].set == set_vulkan_device) {
			g_free(gpu->vulkan_device);
			gpu->vulkan_device = g_steal_pointer(&own.vulkan_device);
		}
	}
	g_free(own.vulkan_device);
}

static void conf_clear_gpu(void *data)
{
	struct conf_gpu *gpu = data;

	g_free(gpu->vulkan_device);
}

struct conf *conf_load(const char *path, GError **error)
{
	struct conf *conf = g_new0(struct conf, 1);
	g_autofree char *folder = g_strconcat(path, ".d", NULL);

	conf->worker = g_strdup(OCTAVO_PKGLIBEXECDIR "/octavo-vgpu");
	conf->log_level = G_LOG_LEVEL_INFO;
	conf->metrics_address = g_strdup("127.0.0.1");
	conf->any.enable = true;
	conf->any.heads = 1;
	conf->any.policy = CONF_POLICY_ELASTIC;
	conf->any.slice_us = POLICY_SLICE_NS / 1000;
	conf->any.busy_poll_us = CONF_BUSY_POLL_US;
	conf->any.watchdog_us = CONF_WATCHDOG_US;
	conf->gpus = g_array_new(FALSE, TRUE, sizeof(struct conf_gpu));
	g_array_set_clear_func(conf->gpus, conf_clear_gpu);

	if (!conf_read_file(conf, path, error) || !conf_read_folder(conf, folder, error)) {
		conf_free(conf);
		return NULL;
	}
	for (unsigned int i = 0; i < conf->gpus->len; i++)
		conf_inherit(&g_array_index(conf->gpus, struct conf_gpu, i), &conf->any);
	return conf;
}

void conf_free(struct conf *conf)
{
	if (!conf)
		return;
	g_free(conf->worker);
	g_free(conf->metrics_address);
	g_free(conf->any.vulkan_device);
	g_array_unref(conf->gpus);
	g_free(conf);
}

const struct conf_gpu *conf_gpu(const struct conf *conf, const struct pci_address *address)
{
	const struct conf_gpu *gpu = conf_find_gpu(conf, address);

	return gpu ? gpu : &conf->any;
}

bool conf_has_gpu(const struct conf *conf, const struct pci_address *address)
{
	return conf_find_gpu(conf, address);
}
