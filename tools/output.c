// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/output.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

const char *record_string(GVariant *record, const char *key)
{
	const char *text = "";

	if (!g_variant_lookup(record, key, "&s", &text))
		g_variant_lookup(record, key, "&o", &text);
	return text;
}

guint64 record_number(GVariant *record, const char *key)
{
	g_autoptr(GVariant) value = g_variant_lookup_value(record, key, NULL);

	if (!value)
		return 0;
	switch (g_variant_classify(value)) {
	case G_VARIANT_CLASS_BOOLEAN:
		return g_variant_get_boolean(value) ? 1 : 0;
	case G_VARIANT_CLASS_UINT16:
		return g_variant_get_uint16(value);
	case G_VARIANT_CLASS_UINT32:
		return g_variant_get_uint32(value);
	case G_VARIANT_CLASS_UINT64:
		return g_variant_get_uint64(value);
	default:
		return 0;
	}
}

char *output_size(guint64 bytes)
{
	if (bytes < 1 << 20)
		return g_strdup_printf("%" G_GUINT64_FORMAT "K", bytes >> 10);
	return g_strdup_printf("%" G_GUINT64_FORMAT "M", bytes >> 20);
}

char *output_share(guint64 eighths)
{
	return eighths ? g_strdup_printf("1/%u", (unsigned int)(8 / eighths)) : g_strdup("-");
}

static void output_line(char *const *cells, const glong *widths, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		glong fill = i + 1 < count ? widths[i] + 2 - g_utf8_strlen(cells[i], -1) : 0;

		printf("%s%*s", cells[i], (int)fill, "");
	}
	putchar('\n');
}

void output_table(GVariant *records, const struct output_column *columns, unsigned int count)
{
	gsize rows = g_variant_n_children(records);
	g_autofree glong *widths = g_new0(glong, count);
	g_auto(GStrv) cells = g_new0(char *, (rows + 1) * count + 1);

	for (unsigned int i = 0; i < count; i++)
		cells[i] = g_strdup(columns[i].title);
	for (gsize row = 0; row < rows; row++) {
		g_autoptr(GVariant) record = g_variant_get_child_value(records, row);

		for (unsigned int i = 0; i < count; i++)
			cells[(row + 1) * count + i] = columns[i].text(record, columns[i].key);
	}
	for (gsize i = 0; i < (rows + 1) * count; i++)
		widths[i % count] = MAX(widths[i % count], g_utf8_strlen(cells[i], -1));
	for (gsize row = 0; row <= rows; row++)
		output_line(cells + row * count, widths, count);
}

static char *output_value(GVariant *value)
{
	if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING) ||
	    g_variant_is_of_type(value, G_VARIANT_TYPE_OBJECT_PATH))
		return g_variant_dup_string(value, NULL);
	return g_variant_print(value, FALSE);
}

void output_record(GVariant *record)
{
	GVariantIter iter;
	const char *key;
	GVariant *value;

	g_variant_iter_init(&iter, record);
	while (g_variant_iter_loop(&iter, "{&sv}", &key, &value)) {
		g_autofree char *title = g_strdelimit(g_strdup(key), "_", ' ');
		g_autofree char *text = NULL;

		if (g_variant_is_of_type(value, G_VARIANT_TYPE("a{st}"))) {
			GVariantIter counters;
			const char *name;
			guint64 count;

			printf("%s:\n", title);
			g_variant_iter_init(&counters, value);
			while (g_variant_iter_next(&counters, "{&st}", &name, &count))
				printf("  %s: %" G_GUINT64_FORMAT "\n", name, count);
			continue;
		}
		text = output_value(value);
		printf("%s: %s\n", title, text);
	}
}

void output_json(GVariant *value)
{
	g_autoptr(JsonNode) node = json_gvariant_serialize(value);
	g_autofree char *text = json_to_string(node, TRUE);

	puts(text);
}
