// SPDX-License-Identifier: LGPL-2.1-or-later
/* hostile.c - entry, checks and what the groups share */
#include "hostile.h"

#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct host host = { .control = -1 };
void *volatile nowhere;

static unsigned int passed, failed;
static const char *group_name = "";

static void __attribute__((format(printf, 3, 0)))
verdict(bool ok, const char *detail, const char *format, va_list args)
{
	printf("%s %s: ", ok ? "ok  " : "FAIL", group_name);
	vprintf(format, args);
	printf("%s\n", detail);
	fflush(stdout);
	if (ok)
		passed++;
	else
		failed++;
}

bool check(bool ok, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	verdict(ok, "", format, args);
	va_end(args);
	return ok;
}

bool check_errno(long result, int error, const char *format, ...)
{
	int found = result < 0 ? errno : 0;
	char detail[96] = "";
	va_list args;

	if (found != error)
		snprintf(detail, sizeof(detail), " (expected %s, found %s)",
			 error ? strerrorname_np(error) : "success",
			 found ? strerrorname_np(found) : "success");
	va_start(args, format);
	verdict(found == error, detail, format, args);
	va_end(args);
	return found == error;
}

void group(const char *name)
{
	group_name = name;
}

_Noreturn void give_up(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "hostile: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (%s)\n", strerror(errno));
	printf("%u passed, %u failed\n", passed, failed + 1);
	exit(1);
}

int summary(void)
{
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}

bool eventfd_fired(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t count;

	if (poll(&p, 1, ms) != 1)
		return false;
	return read(fd, &count, sizeof(count)) == sizeof(count) && count;
}

/* The first display device that has a driver. */
static void parent_find(char parent[32])
{
	glob_t found;
	size_t i;

	if (glob("/sys/bus/pci/devices/*", 0, NULL, &found))
		give_up("no PCI devices");
	for (i = 0; i < found.gl_pathc; i++) {
		char path[320], text[16] = "";
		int fd;

		snprintf(path, sizeof(path), "%s/driver", found.gl_pathv[i]);
		if (access(path, F_OK))
			continue;
		snprintf(path, sizeof(path), "%s/class", found.gl_pathv[i]);
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) < 8)
			text[0] = '\0';
		close(fd);
		if (!strncmp(text, "0x03", 4)) {
			snprintf(parent, 32, "%s", strrchr(found.gl_pathv[i], '/') + 1);
			break;
		}
	}
	globfree(&found);
	if (!parent[0])
		give_up("no display device with a driver; name one with --parent");
}

static const struct {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "control", test_control },
	{ "create", test_create },
	{ "open", test_open },
	{ "device", test_device },
	{ "registers", test_registers },
	{ "session", test_session },
	{ "interrupts", test_interrupts },
	{ "doorbells", test_doorbells },
	{ "guest", test_guest },
	{ "window", test_window },
	{ "console", test_console },
	{ "reset", test_reset },
	{ "race", test_race },
	{ "parent", test_parent },
};

static void usage(void)
{
	puts("Usage: hostile [--parent 0000:00:01.0] [--iommufd] [GROUP...]\n"
	     "Misuses octavo.ko in every way it knows; octavod must be stopped.\nGroups:");
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		printf("  %s\n", groups[i].name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "parent", required_argument, NULL, 'p' },
		{ "iommufd", no_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char parent[32] = "";
	int option, i;

	while ((option = getopt_long(argc, argv, "p:ih", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			snprintf(parent, sizeof(parent), "%s", optarg);
			break;
		case 'i':
			host.cdev = true;
			break;
		case 'h':
			usage();
			return 0;
		default:
			usage();
			return 2;
		}
	}
	if (!parent[0])
		parent_find(parent);
	host_setup(parent);
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		bool wanted = optind == argc;

		for (i = optind; i < argc; i++)
			wanted |= !strcmp(argv[i], groups[g].name);
		if (!wanted)
			continue;
		group(groups[g].name);
		groups[g].run();
	}
	group("end");
	host_teardown();
	return summary();
}
