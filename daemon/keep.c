// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/keep.h"

#include <glib.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* name -> descriptor of those that wait to be taken: what systemd hands over is the process's */
static GHashTable *keep_waiting;

void keep_init(void)
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(1, &names);

	keep_waiting = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	for (int i = 0; i < count; i++) {
		/* two of one name: one was put while the other was being dropped, and is the later */
		void *known;

		if (g_hash_table_lookup_extended(keep_waiting, names[i], NULL, &known))
			close(GPOINTER_TO_INT(known));
		g_hash_table_insert(keep_waiting, g_strdup(names[i]),
				    GINT_TO_POINTER(SD_LISTEN_FDS_START + i));
		free(names[i]);
	}
	free(names);
}

void keep_put(const char *name, int fd)
{
	g_autofree char *state = g_strdup_printf("FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);

	sd_pid_notify_with_fds(0, 0, state, &fd, 1);
}

void keep_drop(const char *name)
{
	sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

int keep_take(const char *name)
{
	void *value;

	if (!keep_waiting || !g_hash_table_lookup_extended(keep_waiting, name, NULL, &value))
		return -1;
	g_hash_table_remove(keep_waiting, name);
	return GPOINTER_TO_INT(value);
}

void keep_drop_rest(void)
{
	GHashTableIter iter;
	void *name, *value;

	if (!keep_waiting)
		return;
	g_hash_table_iter_init(&iter, keep_waiting);
	while (g_hash_table_iter_next(&iter, &name, &value)) {
		keep_drop(name);
		close(GPOINTER_TO_INT(value));
		g_hash_table_iter_remove(&iter);
	}
}
