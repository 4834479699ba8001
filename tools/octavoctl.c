// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/octavoctl.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tools/client.h"
#include "tools/examine.h"

static int command_doctor(struct octavoctl *ctl, GError **error)
{
	(void)error;
	return examine_host(ctl->json);
}

/* Options beside --json, which all take */
enum {
	OPTION_GPU = 1 << 0,
	OPTION_UUID = 1 << 1,
	OPTION_PERSISTENT = 1 << 2,
	OPTION_FOLLOW = 1 << 3,
	OPTION_DISPLAY = 1 << 4,
	OPTION_COUNT = 1 << 5,
	OPTION_NODEDEV = 1 << 6,
	OPTION_CLASSES = 1 << 7,
};

static const struct command {
	const char *name;
	const char *arguments;
	int words;		/* how many arguments it takes; negative: that many or more */
	unsigned int options;
	bool offline;		/* works without octavod */
	command_fn run;
	const char *help;
} commands[] = {
	{ "gpus", "", 0, 0, false, query_gpus, "GPUs of this host and whether they are folded" },
	{ "types", "", 0, 0, false, query_types, "types of vGPU and how many can still be created" },
	{ "list", "", 0, 0, false, query_list, "existing vGPUs" },
	{ "show", " UUID", 1, 0, false, query_show, "everything about one vGPU" },
	{ "create", " TYPE", 1, OPTION_GPU | OPTION_UUID | OPTION_PERSISTENT, false, change_create,
	  "create a vGPU of 1/2, 1/4 or 1/8 and print its UUID" },
	{ "remove", " UUID", 1, OPTION_PERSISTENT, false, change_remove,
	  "remove a vGPU that no VM has open" },
	{ "resize", " UUID WIDTHxHEIGHT", 2, 0, false, change_resize,
	  "change the mode that the guest prefers" },
	{ "policy", " GPU POLICY", 2, 0, false, change_policy,
	  "share a GPU's time by another policy" },
	{ "slice", " GPU MILLISECONDS", 2, 0, false, change_slice, "change the length of a GPU's slices" },
	{ "slices", " GPU", 1, 0, false, query_slices, "who had a GPU when: its last slices as CSV" },
	{ "xml", " UUID", 1, OPTION_DISPLAY | OPTION_NODEDEV, false, xml_show,
	  "the hostdev element of a libvirt domain" },
	{ "nova-conf", " [ADDRESS=]TYPE...", -1, OPTION_CLASSES, false, query_nova,
	  "the part of OpenStack Nova's configuration for this host" },
	{ "top", "", 0, OPTION_COUNT, false, top_show, "what each vGPU does, once a second" },
	{ "log", "", 0, OPTION_FOLLOW | OPTION_COUNT, false, events_log, "the last events" },
	{ "events", "", 0, OPTION_COUNT, false, events_follow, "events as they happen" },
	{ "doctor", "", 0, 0, true, command_doctor,
	  "what is missing or wrong on this host, and what to do" },
};

static char *octavoctl_summary(void)
{
	GString *text = g_string_new("Commands:\n");

	for (unsigned int i = 0; i < G_N_ELEMENTS(commands); i++) {
		g_autofree char *usage = g_strconcat(commands[i].name, commands[i].arguments, NULL);

		g_string_append_printf(text, "  %-28s  %s\n", usage, commands[i].help);
	}
	g_string_append(text, "\nExit status: 0 good, 1 refused or failed, 2 wrong usage, 3 octavod does not run,\n"
			      "4 not permitted, 5 no such vGPU; of doctor: 1 errors, 6 warnings only.");
	return g_string_free(text, FALSE);
}

static const struct command *octavoctl_find(const char *name)
{
	for (unsigned int i = 0; i < G_N_ELEMENTS(commands); i++)
		if (g_str_equal(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static bool octavoctl_check_options(const struct command *command, const struct octavoctl *ctl,
				    GError **error)
{
	const struct {
		unsigned int option;
		bool given;
		const char *name;
	} options[] = {
		{ OPTION_GPU, ctl->gpu, "--gpu" },
		{ OPTION_UUID, ctl->uuid, "--uuid" },
		{ OPTION_PERSISTENT, ctl->persistent, "--persistent" },
		{ OPTION_FOLLOW, ctl->follow, "--follow" },
		{ OPTION_DISPLAY, ctl->display, "--display" },
		{ OPTION_COUNT, ctl->count, "--count" },
		{ OPTION_NODEDEV, ctl->nodedev, "--nodedev" },
		{ OPTION_CLASSES, ctl->classes, "--classes" },
	};

	for (unsigned int i = 0; i < G_N_ELEMENTS(options); i++) {
		if (!options[i].given || (command->options & options[i].option))
			continue;
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE,
			    "octavoctl %s takes no %s: see octavoctl --help", command->name,
			    options[i].name);
		return false;
	}
	if (ctl->count >= 0)
		return true;
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE, "--count %d is no number above 0",
		    ctl->count);
	return false;
}

static int octavoctl_run(const struct command *command, struct octavoctl *ctl, GError **error)
{
	if (command->words < 0 ? ctl->argc < -command->words : ctl->argc != command->words) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE, "usage: octavoctl %s%s",
			    command->name, command->arguments);
		return CLIENT_ERROR_USAGE;
	}
	if (!octavoctl_check_options(command, ctl, error))
		return CLIENT_ERROR_USAGE;
	if (!command->offline) {
		ctl->bus = client_connect(error);
		if (!ctl->bus)
			return CLIENT_ERROR_NO_DAEMON;
	}
	return command->run(ctl, error);
}

int main(int argc, char **argv)
{
	struct octavoctl ctl = { 0 };
	gboolean version = FALSE;
	const GOptionEntry entries[] = {
		{ "json", 0, 0, G_OPTION_ARG_NONE, &ctl.json, "print JSON", NULL },
		{ "gpu", 0, 0, G_OPTION_ARG_STRING, &ctl.gpu,
		  "create: on this GPU, not the first with room", "ADDRESS" },
		{ "uuid", 0, 0, G_OPTION_ARG_STRING, &ctl.uuid, "create: with this UUID", "UUID" },
		{ "persistent", 0, 0, G_OPTION_ARG_NONE, &ctl.persistent,
		  "create: again at every boot; remove: not again", NULL },
		{ "display", 0, 0, G_OPTION_ARG_NONE, &ctl.display, "xml: show it on the VM's console",
		  NULL },
		{ "nodedev", 0, 0, G_OPTION_ARG_NONE, &ctl.nodedev,
		  "xml: the vGPU itself, for virsh nodedev-define", NULL },
		{ "classes", 0, 0, G_OPTION_ARG_NONE, &ctl.classes,
		  "nova-conf: a resource class for each size", NULL },
		{ "follow", 'f', 0, G_OPTION_ARG_NONE, &ctl.follow, "log: go on with new events", NULL },
		{ "count", 'n', 0, G_OPTION_ARG_INT, &ctl.count, "top, log, events: end after N", "N" },
		{ "version", 0, 0, G_OPTION_ARG_NONE, &version, "print the version and end", NULL },
		{ 0 },
	};
	g_autoptr(GOptionContext) context = g_option_context_new("COMMAND - look after vGPUs");
	g_autofree char *summary = octavoctl_summary();
	const struct command *command;
	g_autoptr(GError) error = NULL;
	int status;

	setlocale(LC_ALL, "");
	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_summary(context, summary);
	if (!g_option_context_parse(context, &argc, &argv, &error)) {
		fprintf(stderr, "octavoctl: %s: see octavoctl --help\n", error->message);
		return CLIENT_ERROR_USAGE;
	}
	if (version) {
		puts("octavoctl " PACKAGE_VERSION);
		return 0;
	}
	command = argc > 1 ? octavoctl_find(argv[1]) : NULL;
	if (!command) {
		if (argc > 1)
			fprintf(stderr, "octavoctl: there is no command '%s': see octavoctl --help\n",
				argv[1]);
		else
			fprintf(stderr, "octavoctl: a command is missing: see octavoctl --help\n");
		return CLIENT_ERROR_USAGE;
	}
	ctl.argc = argc - 2;
	ctl.argv = argv + 2;
	status = octavoctl_run(command, &ctl, &error);
	g_clear_object(&ctl.bus);
	g_free(ctl.gpu);
	g_free(ctl.uuid);
	if (!error)
		return status;
	fprintf(stderr, "octavoctl: %s\n", error->message);
	return error->domain == CLIENT_ERROR ? error->code : CLIENT_ERROR_FAILED;
}
