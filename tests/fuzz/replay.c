// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs a fuzz target over files and folders, for compilers without libFuzzer: make check does. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static unsigned int replayed;

static int replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	static uint8_t data[1 << 20];
	size_t size;

	if (!file) {
		perror(path);
		return 1;
	}
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	replayed++;
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++) {
		struct dirent *entry;
		DIR *folder = opendir(argv[i]);
		char path[PATH_MAX];

		if (!folder) {
			failed |= replay(argv[i]);
			continue;
		}
		while ((entry = readdir(folder))) {
			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			failed |= replay(path);
		}
		closedir(folder);
	}
	fprintf(stderr, "%u inputs replayed\n", replayed);
	return failed || !replayed;
}
