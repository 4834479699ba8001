// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/opener.h"

#include <string.h>

/* "-name guest=NAME,debug-threads=on" as libvirt writes it, or "-name NAME" */
static char *opener_vm_name(const char *value)
{
	const char *start = value;
	const char *end;

	if (g_str_has_prefix(start, "guest="))
		start += strlen("guest=");
	end = strchr(start, ',');
	return end ? g_strndup(start, (size_t)(end - start)) : g_strdup(start);
}

char *opener_name(const char *cmdline, size_t bytes)
{
	const char *end = cmdline + bytes;
	const char *word = cmdline;

	if (!bytes || cmdline[bytes - 1] != '\0')
		return g_strdup("");
	while (word < end) {
		const char *next = word + strlen(word) + 1;

		if (g_str_equal(word, "-name") && next < end)
			return opener_vm_name(next);
		word = next;
	}
	return g_path_get_basename(cmdline);
}

char *opener_read(pid_t pid)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/cmdline", (int)pid);
	g_autofree char *cmdline = NULL;
	size_t bytes;

	if (!g_file_get_contents(path, &cmdline, &bytes, NULL))
		return g_strdup("");
	return opener_name(cmdline, bytes);
}
