// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl's commands that look: gpus, types, list, show, nova-conf */
#include <stdio.h>

#include "tools/client.h"
#include "tools/nova.h"
#include "tools/octavoctl.h"
#include "tools/output.h"

/* ---- cells ---- */

static char *cell(GVariant *record, const char *key)
{
	const char *text = record_string(record, key);

	return g_strdup(*text ? text : "-");
}

static char *cell_address(GVariant *record)
{
	return cell(record, "address");
}

static char *cell_driver(GVariant *record)
{
	return cell(record, "driver");
}

static char *cell_name(GVariant *record)
{
	return cell(record, "name");
}

static char *cell_state(GVariant *record)
{
	return cell(record, "state");
}

static char *cell_vram(GVariant *record)
{
	return output_size(record_number(record, "vram_bytes"));
}

static char *cell_used(GVariant *record)
{
	return g_strdup_printf("%u/%u", (unsigned int)record_number(record, "eighths_used"),
			       (unsigned int)record_number(record, "eighths_total"));
}

static char *cell_vgpus(GVariant *record)
{
	return g_strdup_printf("%u", (unsigned int)record_number(record, "vgpus"));
}

static char *cell_gpu(GVariant *record)
{
	return cell(record, "gpu_address");
}

static char *cell_id(GVariant *record)
{
	return cell(record, "id");
}

static char *cell_description(GVariant *record)
{
	return cell(record, "description");
}

static char *cell_available(GVariant *record)
{
	return g_strdup_printf("%u", (unsigned int)record_number(record, "available_instances"));
}

static char *cell_uuid(GVariant *record)
{
	return cell(record, "uuid");
}

static char *cell_share(GVariant *record)
{
	return output_share(record_number(record, "eighths"));
}

static char *cell_mode(GVariant *record)
{
	return g_strdup_printf("%ux%u", (unsigned int)record_number(record, "width"),
			       (unsigned int)record_number(record, "height"));
}

static char *cell_opener(GVariant *record)
{
	return cell(record, "opener_name");
}

/* ---- commands ---- */

static int query_print(struct octavoctl *ctl, GVariant *records, const struct output_column *columns,
		       unsigned int count, const char *none)
{
	if (ctl->json)
		output_json(records);
	else if (g_variant_n_children(records))
		output_table(records, columns, count);
	else
		fprintf(stderr, "octavoctl: %s\n", none);
	return 0;
}

int query_gpus(struct octavoctl *ctl, GError **error)
{
	static const struct output_column columns[] = {
		{ "ADDRESS", cell_address }, { "DRIVER", cell_driver }, { "STATE", cell_state },
		{ "VRAM", cell_vram },	     { "USED", cell_used },	{ "VGPUS", cell_vgpus },
		{ "NAME", cell_name },
	};
	g_autoptr(GVariant) gpus = client_list(ctl->bus, CLIENT_GPU, error);

	if (!gpus)
		return 1;
	query_print(ctl, gpus, columns, G_N_ELEMENTS(columns), "this host has no GPU");
	for (gsize i = 0; !ctl->json && i < g_variant_n_children(gpus); i++) {
		g_autoptr(GVariant) gpu = g_variant_get_child_value(gpus, i);
		const char *reason = record_string(gpu, "reason");

		if (*reason)
			fprintf(stderr, "%s: %s\n", record_string(gpu, "address"), reason);
	}
	return 0;
}

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

int query_types(struct octavoctl *ctl, GError **error)
{
	static const struct output_column columns[] = {
		{ "GPU", cell_gpu },
		{ "TYPE", cell_id },
		{ "AVAILABLE", cell_available },
		{ "DESCRIPTION", cell_description },
	};
	g_autoptr(GVariant) gpus = client_list(ctl->bus, CLIENT_GPU, error);
	g_autoptr(GVariant) types = NULL;

	if (!gpus)
		return 1;
	types = query_flatten_types(gpus);
	return query_print(ctl, types, columns, G_N_ELEMENTS(columns),
			   "no GPU of this host is folded: 'octavoctl gpus' says why");
}

int query_list(struct octavoctl *ctl, GError **error)
{
	static const struct output_column columns[] = {
		{ "UUID", cell_uuid },	 { "SIZE", cell_share }, { "GPU", cell_gpu },
		{ "STATE", cell_state }, { "MODE", cell_mode },	 { "VM", cell_opener },
	};
	g_autoptr(GVariant) vgpus = client_list(ctl->bus, CLIENT_VGPU, error);

	if (!vgpus)
		return 1;
	return query_print(ctl, vgpus, columns, G_N_ELEMENTS(columns),
			   "there are no vGPUs: 'mdevctl types' shows what can be created");
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
