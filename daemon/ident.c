// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/ident.h"

#include <string.h>

/* Reads 1 to @digits hexadecimal digits and moves @text behind them. */
static bool ident_hex(const char **text, unsigned int digits, uint32_t *value)
{
	unsigned int i;

	*value = 0;
	for (i = 0; i < digits && g_ascii_isxdigit(**text); i++, (*text)++)
		*value = *value << 4 | (uint32_t)g_ascii_xdigit_value(**text);
	return i > 0;
}

static bool ident_char(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

bool pci_address_parse(const char *text, struct pci_address *address)
{
	uint32_t part[4] = { 0 };
	bool with_domain;

	with_domain = strchr(text, ':') != strrchr(text, ':');
	if (with_domain && (!ident_hex(&text, 8, &part[0]) || !ident_char(&text, ':')))
		return false;
	if (!ident_hex(&text, 2, &part[1]) || !ident_char(&text, ':') ||
	    !ident_hex(&text, 2, &part[2]) || !ident_char(&text, '.') ||
	    !ident_hex(&text, 1, &part[3]) || *text != '\0')
		return false;
	if (part[2] > 0x1f || part[3] > 7)
		return false;
	address->domain = part[0];
	address->bus = (uint8_t)part[1];
	address->devfn = (uint8_t)(part[2] << 3 | part[3]);
	return true;
}

char *pci_address_format(const struct pci_address *address)
{
	return g_strdup_printf("%04x:%02x:%02x.%x", address->domain, address->bus,
			       address->devfn >> 3, address->devfn & 7u);
}

bool pci_address_equal(const struct pci_address *a, const struct pci_address *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->devfn == b->devfn;
}

bool uuid_parse(const char *text, uint8_t uuid[UUID_BYTES])
{
	unsigned int i;

	for (i = 0; i < UUID_BYTES; i++) {
		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		if (!g_ascii_isxdigit(text[0]) || !g_ascii_isxdigit(text[1]))
			return false;
		uuid[i] = (uint8_t)(g_ascii_xdigit_value(text[0]) << 4 | g_ascii_xdigit_value(text[1]));
		text += 2;
	}
	return *text == '\0';
}

void uuid_format(const uint8_t uuid[UUID_BYTES], char text[UUID_TEXT_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	unsigned int i;

	for (i = 0; i < UUID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*text++ = '-';
		*text++ = digits[uuid[i] >> 4];
		*text++ = digits[uuid[i] & 0xf];
	}
	*text = '\0';
}

char *ident_path(const char *kind, const char *name)
{
	char *path = g_strdup_printf("/org/octavo1/%s/%s", kind, name);

	for (char *c = path + strlen(path) - strlen(name); *c; c++)
		if (!g_ascii_isalnum(*c))
			*c = '_';
	return path;
}
