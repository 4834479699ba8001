// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl top: what each vGPU does, once a second, in 80 columns */
#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/client.h"
#include "tools/octavoctl.h"
#include "tools/output.h"

#define TOP_CLEAR	"\033[H\033[2J"
#define TOP_VM_WIDTH	16
#define TOP_NS_PER_S	1000000000u

/* Two looks at the counters; rates are their difference. */
struct top_look {
	GVariant *counters;	/* a{oa{st}} */
	gint64 time_us;
};

static bool top_look(struct octavoctl *ctl, struct top_look *look, GError **error)
{
	g_autoptr(GVariant) answer =
		client_call(ctl->bus, CLIENT_PATH, CLIENT_MANAGER, "GetCounters", NULL, error);

	if (!answer)
		return false;
	look->counters = g_variant_get_child_value(answer, 0);
	look->time_us = g_get_monotonic_time();
	return true;
}

static guint64 top_counter(const struct top_look *look, const char *path, const char *name)
{
	g_autoptr(GVariant) counters =
		g_variant_lookup_value(look->counters, path, G_VARIANT_TYPE("a{st}"));
	guint64 value = 0;

	if (counters)
		g_variant_lookup(counters, name, "t", &value);
	return value;
}

static guint64 top_rate(const struct top_look *before, const struct top_look *now, const char *path,
			const char *name)
{
	guint64 first = top_counter(before, path, name), last = top_counter(now, path, name);
	gint64 span_us = now->time_us - before->time_us;

	if (last < first || span_us <= 0)
		return 0;
	return (last - first) * G_USEC_PER_SEC / (guint64)span_us;
}

static void top_line(GVariant *vgpu, const struct top_look *before, const struct top_look *now)
{
	const char *path = record_string(vgpu, "path");
	g_autofree char *share = output_share(record_number(vgpu, "eighths"));
	g_autofree char *used = output_size(top_counter(now, path, "vram_used_bytes"));
	g_autofree char *limit = output_size(record_number(vgpu, "vram_bytes"));
	guint64 busy = top_rate(before, now, path, "gpu_used_ns") / (TOP_NS_PER_S / 100);
	guint64 wait = top_rate(before, now, path, "gpu_waited_ns") / (TOP_NS_PER_S / 100);

	printf("%.8s  %-4s  %-11s  %-*.*s  %3" G_GUINT64_FORMAT "%%  %3" G_GUINT64_FORMAT
	       "%%  %6" G_GUINT64_FORMAT "  %6s/%s\n",
	       record_string(vgpu, "uuid"), share, record_string(vgpu, "state"), TOP_VM_WIDTH,
	       TOP_VM_WIDTH, record_string(vgpu, "opener_name"), busy, wait,
	       top_rate(before, now, path, "kicks"), used, limit);
}

/* One look, on one line */
static void top_print_json(GVariant *vgpus, const struct top_look *before, const struct top_look *now)
{
	g_autoptr(GVariant) records = NULL;
	g_autofree char *text = NULL;
	GVariantBuilder builder;

	g_variant_builder_init(&builder, G_VARIANT_TYPE("aa{sv}"));
	for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
		g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);
		const char *path = record_string(vgpu, "path");
		GVariantDict dict;

		g_variant_dict_init(&dict, NULL);
		g_variant_dict_insert(&dict, "uuid", "s", record_string(vgpu, "uuid"));
		g_variant_dict_insert(&dict, "eighths", "u", (guint32)record_number(vgpu, "eighths"));
		g_variant_dict_insert(&dict, "state", "s", record_string(vgpu, "state"));
		g_variant_dict_insert(&dict, "opener_name", "s", record_string(vgpu, "opener_name"));
		g_variant_dict_insert(&dict, "used_ns_per_second", "t",
				      top_rate(before, now, path, "gpu_used_ns"));
		g_variant_dict_insert(&dict, "waited_ns_per_second", "t",
				      top_rate(before, now, path, "gpu_waited_ns"));
		g_variant_dict_insert(&dict, "kicks_per_second", "t",
				      top_rate(before, now, path, "kicks"));
		g_variant_dict_insert(&dict, "vram_used_bytes", "t",
				      top_counter(now, path, "vram_used_bytes"));
		g_variant_dict_insert(&dict, "vram_bytes", "t", record_number(vgpu, "vram_bytes"));
		g_variant_builder_add_value(&builder, g_variant_dict_end(&dict));
	}
	records = g_variant_ref_sink(g_variant_builder_end(&builder));
	text = json_gvariant_serialize_data(records, NULL);
	puts(text);
	fflush(stdout);
}

static bool top_print(struct octavoctl *ctl, const struct top_look *before,
		      const struct top_look *now, GError **error)
{
	g_autoptr(GVariant) vgpus = client_list(ctl->bus, CLIENT_VGPU, error);

	if (!vgpus)
		return false;
	if (ctl->json) {
		top_print_json(vgpus, before, now);
		return true;
	}
	if (isatty(STDOUT_FILENO))
		fputs(TOP_CLEAR, stdout);
	printf("%-8s  %-4s  %-11s  %-*s  %4s  %4s  %6s  %s\n", "VGPU", "SIZE", "STATE",
	       TOP_VM_WIDTH, "VM", "BUSY", "WAIT", "KICK/S", "MEMORY/LIMIT");
	for (gsize i = 0; i < g_variant_n_children(vgpus); i++) {
		g_autoptr(GVariant) vgpu = g_variant_get_child_value(vgpus, i);

		top_line(vgpu, before, now);
	}
	fflush(stdout);
	return true;
}

int top_show(struct octavoctl *ctl, GError **error)
{
	struct top_look before = { 0 }, now = { 0 };
	int left = ctl->count;
	bool last = false;

	if (!left && !isatty(STDOUT_FILENO))
		left = 1;
	if (!top_look(ctl, &before, error))
		return 1;
	do {
		bool good;

		g_usleep(G_USEC_PER_SEC);
		if (!top_look(ctl, &now, error))
			break;
		good = top_print(ctl, &before, &now, error);
		g_variant_unref(before.counters);
		before = now;
		now.counters = NULL;
		if (!good)
			break;
		if (left)
			last = --left == 0;
	} while (!last);
	g_variant_unref(before.counters);
	return 0;
}
