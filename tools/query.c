// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl's commands that look: gpus, types, list, show, nova-conf */
#include <stdio.h>

#include "tools/client.h"
#include "tools/nova.h"
#include "tools/octavoctl.h"
#include "tools/output.h"

/* ---- cells ---- */

static char *cell_string(GVariant *record, const char *key)
{
	const char *text = record_string(record, key);

	return g_strdup(*text ? text : "-");
}

static char *cell_number(GVariant *record, const char *key)
{
	return g_strdup_printf("%u", (unsigned int)record_number(record, key));
}

static char *cell_size(GVariant *record, const char *key)
{
	return output_size(record_number(record, key));
}

static char *cell_share(GVariant *record, const char *key)
{
	return output_share(record_number(record, key));
}

static char *cell_used(GVariant *record, const char *key G_GNUC_UNUSED)
{
	return g_strdup_printf("%u/%u", (unsigned int)record_number(record, "eighths_used"),
			       (unsigned int)record_number(record, "eighths_total"));
}

static char *cell_mode(GVariant *record, const char *key G_GNUC_UNUSED)
{
	return g_strdup_printf("%ux%u", (unsigned int)record_number(record, "width"),
			       (unsigned int)record_number(record, "height"));
}

/* ---- commands ---- */

/* All GPUs' types in one list, each with its GPU's address. */
static GVariant *query_flatten_types(GVariant *gpus)
{
	GVariantBuilder records;

	g_variant_builder_init(&records, G_VARIANT_TYPE("aa{sv}"));
	for (gsize i = 0; i < g_variant_n_children(gpus); i++) {
		g_autoptr(GVariant) gpu = g_variant_get_child_value(gpus, i);
		g_autoptr(GVariant) types =
			g_variant_lookup_value(gpu, "types", G_VARIANT_TYPE("aa{sv}"));

		for (gsize j = 0; types && j < g_variant_n_children(types); j++) {
			g_autoptr(GVariant) type = g_variant_get_child_value(types, j);
			GVariantIter iter;
			const char *key;
			GVariant *value;

			g_variant_builder_open(&records, G_VARIANT_TYPE("a{sv}"));
			g_variant_builder_add(&records, "{sv}", "gpu_address",
					      g_variant_new_string(record_string(gpu, "address")));
			g_variant_iter_init(&iter, type);
			while (g_variant_iter_loop(&iter, "{&sv}", &key, &value))
				g_variant_builder_add(&records, "{sv}", key, value);
			g_variant_builder_close(&records);
		}
	}
	return g_variant_ref_sink(g_variant_builder_end(&records));
}

/* A table of one record a row. */
struct listing {
	const char *interface; /* of the objects that are asked for */
	GVariant *(*flatten)(GVariant *objects); /* to the records; NULL: they are the records */
	const struct output_column *columns;
	unsigned int n_columns;
	const char *none; /* what to say when there are no records */
};

/* Prints it; returns the records, or NULL with @error. */
static GVariant *query_listing(struct octavoctl *ctl, const struct listing *listing, GError **error)
{
	g_autoptr(GVariant) objects = client_list(ctl->bus, listing->interface, error);
	GVariant *records;

	if (!objects)
		return NULL;
	records = listing->flatten ? listing->flatten(objects) : g_variant_ref(objects);
	if (ctl->json)
		output_json(records);
	else if (g_variant_n_children(records))
		output_table(records, listing->columns, listing->n_columns);
	else
		fprintf(stderr, "octavoctl: %s\n", listing->none);
	return records;
}

int query_gpus(struct octavoctl *ctl, GError **error)
{
	static const struct output_column columns[] = {
		{ "ADDRESS", "address", cell_string },
		{ "DRIVER", "driver", cell_string },
		{ "STATE", "state", cell_string },
		{ "VRAM", "vram_bytes", cell_size },
		{ "USED", NULL, cell_used },
		{ "VGPUS", "vgpus", cell_number },
		{ "NAME", "name", cell_string },
	};
	static const struct listing listing = { CLIENT_GPU, NULL, columns, G_N_ELEMENTS(columns),
						"this host has no GPU" };
	g_autoptr(GVariant) gpus = query_listing(ctl, &listing, error);

	if (!gpus)
		return 1;
	for (gsize i = 0; !ctl->json && i < g_variant_n_children(gpus); i++) {
		g_autoptr(GVariant) gpu = g_variant_get_child_value(gpus, i);
		const char *reason = record_string(gpu, "reason");

		if (*reason)
			fprintf(stderr, "%s: %s\n", record_string(gpu, "address"), reason);
	}
	return 0;
}

int query_types(struct octavoctl *ctl, GError **error)
{
	static const struct output_column columns[] = {
		{ "GPU", "gpu_address", cell_string },
		{ "TYPE", "id", cell_string },
		{ "AVAILABLE", "available_instances", cell_number },
		{ "DESCRIPTION", "description", cell_string },
	};
	static const struct listing listing = {
		CLIENT_GPU, query_flatten_types, columns, G_N_ELEMENTS(columns),
		"no GPU of this host is folded: 'octavoctl gpus' says why"
	};
	g_autoptr(GVariant) types = query_listing(ctl, &listing, error);

	return types ? 0 : 1;
}

int query_list(struct octavoctl *ctl, GError **error)
{
	static const struct output_column columns[] = {
		{ "UUID", "uuid", cell_string },
		{ "SIZE", "eighths", cell_share },
		{ "GPU", "gpu_address", cell_string },
		{ "STATE", "state", cell_string },
		{ "MODE", NULL, cell_mode },
		{ "VM", "opener_name", cell_string },
	};
	static const struct listing listing = {
		CLIENT_VGPU, NULL, columns, G_N_ELEMENTS(columns),
		"there are no vGPUs: 'mdevctl types' shows what can be created"
	};
	g_autoptr(GVariant) vgpus = query_listing(ctl, &listing, error);

	return vgpus ? 0 : 1;
}

int query_show(struct octavoctl *ctl, GError **error)
{
	g_autoptr(GVariant) vgpu = client_vgpu(ctl->bus, ctl->argv[0], error);
	g_autoptr(GVariant) answer = NULL;
	g_autoptr(GVariant) counters = NULL;
	g_autoptr(GVariant) record = NULL;
	GVariantDict dict;

	if (!vgpu)
		return 1;
	answer = client_call(ctl->bus, record_string(vgpu, "path"), CLIENT_VGPU, "GetCounters", NULL,
			     error);
	if (!answer)
		return 1;
	counters = g_variant_get_child_value(answer, 0);
	if (ctl->json) {
		g_variant_dict_init(&dict, vgpu);
		g_variant_dict_insert_value(&dict, "counters", counters);
		record = g_variant_ref_sink(g_variant_dict_end(&dict));
		output_json(record);
		return 0;
	}
	output_record(vgpu);
	g_variant_dict_init(&dict, NULL);
	g_variant_dict_insert_value(&dict, "counters", counters);
	record = g_variant_ref_sink(g_variant_dict_end(&dict));
	output_record(record);
	return 0;
}

/* CSV, as octavo-sim --log reads it; times are CLOCK_MONOTONIC's. */
int query_slices(struct octavoctl *ctl, GError **error)
{
	g_autofree char *path = client_gpu_path(ctl->bus, ctl->argv[0], error);
	g_autoptr(GVariant) answer = NULL;
	g_autoptr(GVariant) slices = NULL;
	guint64 sequence, begin, end, granted, used, overrun;
	const char *uuid;
	GVariantIter iter;
	guint32 waiting;

	if (!path)
		return 1;
	answer = client_call(ctl->bus, path, CLIENT_GPU, "GetSlices", g_variant_new("(t)", (guint64)0),
			     error);
	if (!answer)
		return 1;
	slices = g_variant_get_child_value(answer, 1);
	if (!g_variant_is_of_type(slices, G_VARIANT_TYPE("a(tstttttu)"))) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_FAILED,
			    "octavod answers in another form: install octavod and octavoctl from one release");
		return 1;
	}
	if (ctl->json) {
		output_json(slices);
		return 0;
	}
	puts("begin_ns,end_ns,vgpu,granted_ns,used_ns,overrun_ns,waiting");
	g_variant_iter_init(&iter, slices);
	while (g_variant_iter_next(&iter, "(t&stttttu)", &sequence, &uuid, &begin, &end, &granted, &used,
				   &overrun, &waiting))
		printf("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%s,%" G_GUINT64_FORMAT
		       ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%u\n", begin, end, uuid, granted,
		       used, overrun, waiting);
	return 0;
}

int query_nova(struct octavoctl *ctl, GError **error)
{
	g_autoptr(GVariant) gpus = client_list(ctl->bus, CLIENT_GPU, error);
	g_autoptr(GVariant) sections = NULL;
	g_autofree char *text = NULL;

	if (!gpus)
		return 1;
	sections = nova_sections(gpus, (const char *const *)ctl->argv, ctl->classes, error);
	if (!sections)
		return 1;
	if (ctl->json) {
		output_json(sections);
		return 0;
	}
	text = nova_text(sections);
	fputs(text, stdout);
	return 0;
}
