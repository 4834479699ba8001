/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output - records (a{sv}) as tables, lists and JSON on standard output
 */
#ifndef OCTAVO_TOOLS_OUTPUT_H
#define OCTAVO_TOOLS_OUTPUT_H

#include <glib.h>

/*
 * A column of a table: @text gives the cell of @record, the caller's to free. @key is the field it
 * shows; NULL where @text knows better.
 */
struct output_column {
	const char *title;
	const char *key;
	char *(*text)(GVariant *record, const char *key);
};

/* @records: aa{sv}. Columns as wide as their widest cell, two blanks apart. */
void output_table(GVariant *records, const struct output_column *columns, unsigned int count);
/* "key: value" lines of one record. */
void output_record(GVariant *record);
/* Any variant; indented, a line feed at the end. */
void output_json(GVariant *value);

/* Fields of a record; "" or 0 if it has none. The string is the record's own. */
const char *record_string(GVariant *record, const char *key);
guint64 record_number(GVariant *record, const char *key);

/* "4096M" in binary units, exact or rounded down; the caller's. */
char *output_size(guint64 bytes);
/* "1/4" */
char *output_share(guint64 eighths);

#endif /* OCTAVO_TOOLS_OUTPUT_H */
