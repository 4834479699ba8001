/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* folder.h - a temporary folder that stands for a host's / */
#ifndef OCTAVO_TESTS_FOLDER_H
#define OCTAVO_TESTS_FOLDER_H

#include <glib.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <unistd.h>

static inline char *folder_new(void)
{
	char *path = g_dir_make_tmp("octavo-test-XXXXXX", NULL);

	g_assert_nonnull(path);
	return path;
}

static inline void folder_write(const char *root, const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(root, name, NULL);
	g_autofree char *parent = g_path_get_dirname(path);

	g_assert_true(g_mkdir_with_parents(parent, 0755) == 0);
	g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static inline void folder_link(const char *root, const char *name, const char *target)
{
	g_autofree char *path = g_build_filename(root, name, NULL);
	g_autofree char *parent = g_path_get_dirname(path);

	g_assert_true(g_mkdir_with_parents(parent, 0755) == 0);
	g_assert_true(symlink(target, path) == 0);
}

/* Takes it away with everything in it. */
static inline void folder_free(char *path)
{
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		char *child = g_build_filename(path, name, NULL);

		if (g_file_test(child, G_FILE_TEST_IS_DIR) &&
		    !g_file_test(child, G_FILE_TEST_IS_SYMLINK)) {
			folder_free(child);
			continue;
		}
		g_unlink(child);
		g_free(child);
	}
	g_rmdir(path);
	g_free(path);
}

#endif
