// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/examine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/client.h"
#include "tools/doctor.h"
#include "tools/output.h"

#define EXAMINE_WARNINGS 6	/* exit status */

/* First dotted number in what a program says about its version; NULL if there is no such program. */
static char *examine_version(const char *program, const char *option)
{
	const char *const argv[] = { program, option, NULL };
	g_autofree char *output = NULL;
	const char *start, *end;

	if (!g_spawn_sync(NULL, (char **)argv, NULL,
			  G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &output,
			  NULL, NULL, NULL))
		return NULL;
	for (start = output; *start && !g_ascii_isdigit(*start); start++)
		;
	for (end = start; g_ascii_isdigit(*end) || *end == '.'; end++)
		;
	return g_strndup(start, (size_t)(end - start));
}

/* Messages of the kernel about octavo, one a line, without /dev/kmsg's prefix. */
static char *examine_kernel_log(void)
{
	g_autoptr(GString) log = g_string_new(NULL);
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char record[8192];
	ssize_t bytes;

	if (fd < 0)
		return NULL;
	while ((bytes = read(fd, record, sizeof(record) - 1)) > 0 || (bytes < 0 && errno == EPIPE)) {
		const char *message;

		if (bytes < 0)
			continue;
		record[bytes] = '\0';
		record[strcspn(record, "\n")] = '\0';
		message = strchr(record, ';');
		if (message && strstr(message, "octavo"))
			g_string_append_printf(log, "%s\n", message + 1);
	}
	close(fd);
	return g_string_free(g_steal_pointer(&log), FALSE);
}

static void examine_daemon(struct doctor_host *host, GError **error)
{
	g_autoptr(GDBusConnection) bus = client_connect(error);
	g_autoptr(GVariant) answer = NULL;

	if (!bus)
		return;
	host->manager = client_manager(bus, error);
	if (!host->manager)
		return;
	host->daemon = true;
	host->gpus = client_list(bus, CLIENT_GPU, NULL);
	answer = client_call(bus, CLIENT_PATH, CLIENT_MANAGER, "GetEvents", NULL, NULL);
	if (answer)
		host->events = g_variant_get_child_value(answer, 0);
}

static void examine_print(const GPtrArray *findings)
{
	static const char *const marks[] = {
		[DOCTOR_GOOD] = "good   ",
		[DOCTOR_NOTE] = "note   ",
		[DOCTOR_WARNING] = "WARNING",
		[DOCTOR_ERROR] = "ERROR  ",
	};

	for (unsigned int i = 0; i < findings->len; i++) {
		const struct doctor_finding *finding = g_ptr_array_index(findings, i);

		printf("%s  %-8s  %s\n", marks[finding->level], finding->subject, finding->found);
		if (*finding->advice)
			printf("                   -> %s\n", finding->advice);
	}
	switch (doctor_worst(findings)) {
	case DOCTOR_ERROR:
		puts("vGPUs cannot run on this host until every ERROR is dealt with.");
		break;
	case DOCTOR_WARNING:
		puts("vGPUs can run on this host; see the warnings.");
		break;
	default:
		puts("This host is ready for vGPUs.");
	}
}

static void examine_print_json(const GPtrArray *findings)
{
	GVariantBuilder builder;

	g_variant_builder_init(&builder, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned int i = 0; i < findings->len; i++) {
		const struct doctor_finding *finding = g_ptr_array_index(findings, i);

		g_variant_builder_open(&builder, G_VARIANT_TYPE("a{sv}"));
		g_variant_builder_add(&builder, "{sv}", "level",
				      g_variant_new_string(doctor_level_name(finding->level)));
		g_variant_builder_add(&builder, "{sv}", "subject",
				      g_variant_new_string(finding->subject));
		g_variant_builder_add(&builder, "{sv}", "found", g_variant_new_string(finding->found));
		g_variant_builder_add(&builder, "{sv}", "advice",
				      g_variant_new_string(finding->advice));
		g_variant_builder_close(&builder);
	}

	g_autoptr(GVariant) value = g_variant_ref_sink(g_variant_builder_end(&builder));

	output_json(value);
}

int examine_host(bool json)
{
	g_autofree char *qemu = examine_version("qemu-system-x86_64", "--version");
	g_autofree char *libvirt = examine_version("libvirtd", "--version");
	g_autofree char *mdevctl = examine_version("mdevctl", "--version");
	g_autofree char *kernel_log = examine_kernel_log();
	g_autoptr(GError) error = NULL;
	g_autoptr(GPtrArray) findings = NULL;
	struct rlimit memlock = { 0 };
	struct utsname names;
	struct doctor_host host = { .root = "" };

	uname(&names);
	getrlimit(RLIMIT_MEMLOCK, &memlock);
	if (!libvirt)
		libvirt = examine_version("virtqemud", "--version");
	host.kernel_release = names.release;
	host.memlock_bytes = memlock.rlim_cur == RLIM_INFINITY ? G_MAXUINT64 : memlock.rlim_cur;
	/* CAP_IPC_LOCK knows no limit */
	if (geteuid() == 0)
		host.memlock_bytes = G_MAXUINT64;
	host.qemu_version = qemu;
	host.libvirt_version = libvirt;
	host.mdevctl_version = mdevctl;
	host.kernel_log = kernel_log;
	host.kvm = kvm_try("/dev/kvm");
	examine_daemon(&host, &error);
	host.daemon_error = error ? error->message : NULL;

	findings = doctor_examine(&host);
	if (json)
		examine_print_json(findings);
	else
		examine_print(findings);
	g_clear_pointer(&host.manager, g_variant_unref);
	g_clear_pointer(&host.gpus, g_variant_unref);
	g_clear_pointer(&host.events, g_variant_unref);

	switch (doctor_worst(findings)) {
	case DOCTOR_ERROR:
		return CLIENT_ERROR_FAILED;
	case DOCTOR_WARNING:
		return EXAMINE_WARNINGS;
	default:
		return 0;
	}
}
