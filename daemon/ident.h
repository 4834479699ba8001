/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ident - names of things: PCI addresses, UUIDs, D-Bus object paths
 *
 * Pure functions; any thread. Returned strings belong to the caller (g_free).
 */
#ifndef OCTAVO_DAEMON_IDENT_H
#define OCTAVO_DAEMON_IDENT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define UUID_BYTES	16
#define UUID_TEXT_BYTES	37	/* 36 characters and the NUL */

struct pci_address {
	uint32_t domain;
	uint8_t bus;
	uint8_t devfn;		/* slot << 3 | function */
};

/* Accepts DDDD:BB:SS.F and BB:SS.F (domain 0), hexadecimal, nothing before or behind it. */
bool pci_address_parse(const char *text, struct pci_address *address);
char *pci_address_format(const struct pci_address *address);
bool pci_address_equal(const struct pci_address *a, const struct pci_address *b);

/* Accepts the canonical form only: 8-4-4-4-12 hexadecimal digits, either case. */
bool uuid_parse(const char *text, uint8_t uuid[UUID_BYTES]);
/* Lower case, as sysfs and mdevctl write it. */
void uuid_format(const uint8_t uuid[UUID_BYTES], char text[UUID_TEXT_BYTES]);

/* "/org/octavo1/KIND/NAME" with every character that a path may not have as '_'. */
char *ident_path(const char *kind, const char *name);

#endif /* OCTAVO_DAEMON_IDENT_H */
