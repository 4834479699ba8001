// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/nova.h"

#include <string.h>

#include "tools/client.h"
#include "tools/output.h"

#define NOVA_CLASS_DEFAULT	"VGPU"

static const struct nova_size {
	const char *name;
	unsigned int eighths;
	const char *class;	/* Nova allows A-Z, 0-9 and _ behind CUSTOM_ */
} nova_sizes[] = {
	{ "1/2", 4, "CUSTOM_OCTAVO_1_2" },
	{ "1/4", 2, "CUSTOM_OCTAVO_1_4" },
	{ "1/8", 1, "CUSTOM_OCTAVO_1_8" },
};

struct nova_section {
	char *type;
	const struct nova_size *size;
	GPtrArray *addresses;	/* strings of the GPUs' records */
};

static void nova_section_free(void *data)
{
	struct nova_section *section = data;

	g_free(section->type);
	g_ptr_array_unref(section->addresses);
	g_free(section);
}

static const struct nova_size *nova_size_find(const char *name, GError **error)
{
	for (unsigned int i = 0; i < G_N_ELEMENTS(nova_sizes); i++)
		if (g_str_equal(nova_sizes[i].name, name))
			return &nova_sizes[i];
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE,
		    "there is no type '%s': types are 1/2, 1/4 and 1/8", name);
	return NULL;
}

/* ---- what is wanted ---- */

struct nova_wish {
	const struct nova_size *all;	/* or NULL */
	GHashTable *one;		/* address to size */
};

static bool nova_wish_add(struct nova_wish *wish, const char *word, GError **error)
{
	const char *equals = strchr(word, '=');
	const struct nova_size *size = nova_size_find(equals ? equals + 1 : word, error);
	g_autofree char *address = NULL;

	if (!size)
		return false;
	if (!equals) {
		if (!wish->all) {
			wish->all = size;
			return true;
		}
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE,
			    "both %s and %s are to be every GPU's type, but Nova takes one for each GPU: write ADDRESS=%s for some",
			    wish->all->name, size->name, size->name);
		return false;
	}
	address = g_ascii_strdown(word, equals - word);
	if (!g_hash_table_contains(wish->one, address)) {
		g_hash_table_insert(wish->one, g_steal_pointer(&address), (void *)size);
		return true;
	}
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE,
		    "GPU %s is named twice, but Nova takes one type for each GPU", address);
	return false;
}

/* Every named GPU has to be there. */
static bool nova_wish_check(const struct nova_wish *wish, GVariant *gpus, GError **error)
{
	GHashTableIter iter;
	void *address;

	g_hash_table_iter_init(&iter, wish->one);
	while (g_hash_table_iter_next(&iter, &address, NULL)) {
		bool found = false;

		for (gsize i = 0; !found && i < g_variant_n_children(gpus); i++) {
			g_autoptr(GVariant) gpu = g_variant_get_child_value(gpus, i);

			found = g_str_equal(record_string(gpu, "address"), address);
		}
		if (found)
			continue;
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_NOT_FOUND,
			    "there is no GPU '%s': 'octavoctl gpus' shows those of this host",
			    (const char *)address);
		return false;
	}
	return true;
}

/* ---- sections ---- */

/* Id of the GPU's type of this size; NULL if it has none. */
static char *nova_type_find(GVariant *gpu, const struct nova_size *size)
{
	g_autoptr(GVariant) types = g_variant_lookup_value(gpu, "types", G_VARIANT_TYPE("aa{sv}"));

	for (gsize i = 0; types && i < g_variant_n_children(types); i++) {
		g_autoptr(GVariant) type = g_variant_get_child_value(types, i);

		if (record_number(type, "eighths") == size->eighths)
			return g_strdup(record_string(type, "id"));
	}
	return NULL;
}

static void nova_section_add(GPtrArray *sections, const char *type, const struct nova_size *size,
			     const char *address)
{
	struct nova_section *section = NULL;

	for (unsigned int i = 0; !section && i < sections->len; i++) {
		struct nova_section *other = g_ptr_array_index(sections, i);

		if (g_str_equal(other->type, type))
			section = other;
	}
	if (!section) {
		section = g_new0(struct nova_section, 1);
		section->type = g_strdup(type);
		section->size = size;
		section->addresses = g_ptr_array_new_with_free_func(g_free);
		g_ptr_array_add(sections, section);
	}
	g_ptr_array_add(section->addresses, g_strdup(address));
}

static bool nova_collect(GPtrArray *sections, const struct nova_wish *wish, GVariant *gpus,
			 GError **error)
{
	for (gsize i = 0; i < g_variant_n_children(gpus); i++) {
		g_autoptr(GVariant) gpu = g_variant_get_child_value(gpus, i);
		const char *address = record_string(gpu, "address");
		const struct nova_size *own = g_hash_table_lookup(wish->one, address);
		const struct nova_size *size = own ? own : wish->all;
		g_autofree char *type = size ? nova_type_find(gpu, size) : NULL;

		if (type) {
			nova_section_add(sections, type, size, address);
		} else if (own) {
			g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_FAILED,
				    "GPU %s has no vGPUs of %s: it is %s; 'octavoctl gpus' says why",
				    address, own->name, record_string(gpu, "state"));
			return false;
		}
	}
	if (sections->len)
		return true;
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_FAILED,
		    "no GPU of this host is folded: 'octavoctl gpus' says why");
	return false;
}

static bool nova_sizes_differ(const GPtrArray *sections)
{
	const struct nova_section *first = g_ptr_array_index(sections, 0);

	for (unsigned int i = 1; i < sections->len; i++) {
		const struct nova_section *section = g_ptr_array_index(sections, i);

		if (section->size != first->size)
			return true;
	}
	return false;
}

static GVariant *nova_section_record(const struct nova_section *section, bool classes)
{
	GVariantDict dict;

	g_variant_dict_init(&dict, NULL);
	g_variant_dict_insert(&dict, "type", "s", section->type);
	g_variant_dict_insert(&dict, "size", "s", section->size->name);
	g_variant_dict_insert_value(&dict, "device_addresses",
				    g_variant_new_strv((const char *const *)section->addresses->pdata,
						       (gssize)section->addresses->len));
	g_variant_dict_insert(&dict, "mdev_class", "s",
			      classes ? section->size->class : NOVA_CLASS_DEFAULT);
	return g_variant_dict_end(&dict);
}

GVariant *nova_sections(GVariant *gpus, const char *const *wanted, bool classes, GError **error)
{
	g_autoptr(GHashTable) one = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_autoptr(GPtrArray) sections = g_ptr_array_new_with_free_func(nova_section_free);
	struct nova_wish wish = { .one = one };
	GVariantBuilder records;

	for (unsigned int i = 0; wanted[i]; i++)
		if (!nova_wish_add(&wish, wanted[i], error))
			return NULL;
	if (!nova_wish_check(&wish, gpus, error) || !nova_collect(sections, &wish, gpus, error))
		return NULL;
	classes = classes || nova_sizes_differ(sections);
	g_variant_builder_init(&records, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned int i = 0; i < sections->len; i++)
		g_variant_builder_add_value(
			&records, nova_section_record(g_ptr_array_index(sections, i), classes));
	return g_variant_ref_sink(g_variant_builder_end(&records));
}

char *nova_text(GVariant *sections)
{
	GString *text = g_string_new("# Written by octavoctl nova-conf\n[devices]\nenabled_mdev_types = ");

	for (gsize i = 0; i < g_variant_n_children(sections); i++) {
		g_autoptr(GVariant) section = g_variant_get_child_value(sections, i);

		g_string_append_printf(text, "%s%s", i ? ", " : "", record_string(section, "type"));
	}
	g_string_append_c(text, '\n');
	for (gsize i = 0; i < g_variant_n_children(sections); i++) {
		g_autoptr(GVariant) section = g_variant_get_child_value(sections, i);
		g_autofree const char **addresses = NULL;
		g_autofree char *list = NULL;
		const char *class = record_string(section, "mdev_class");

		g_variant_lookup(section, "device_addresses", "^a&s", &addresses);
		list = g_strjoinv(",", (char **)addresses);
		g_string_append_printf(text,
				       "\n# %s of a GPU: flavors ask for it with resources:%s=1\n"
				       "[mdev_%s]\ndevice_addresses = %s\n",
				       record_string(section, "size"), class,
				       record_string(section, "type"), list);
		if (!g_str_equal(class, NOVA_CLASS_DEFAULT))
			g_string_append_printf(text, "mdev_class = %s\n", class);
	}
	return g_string_free(text, FALSE);
}
