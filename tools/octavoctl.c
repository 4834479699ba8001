// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/octavoctl.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "tools/client.h"
#include "tools/examine.h"

static int command_doctor(struct octavoctl *ctl, GError **error)
{
	(void)error;
	return examine_host(ctl->json);
}

static const struct command {
	const char *name;
	const char *arguments;
	int words;		/* how many arguments it takes, exactly */
	bool offline;		/* works without octavod */
	command_fn run;
	const char *help;
} commands[] = {
	{ "gpus", "", 0, false, query_gpus, "GPUs of this host and whether they are folded" },
	{ "types", "", 0, false, query_types, "types of vGPU and how many can still be created" },
	{ "list", "", 0, false, query_list, "existing vGPUs" },
	{ "show", " UUID", 1, false, query_show, "everything about one vGPU" },
	{ "resize", " UUID WIDTHxHEIGHT", 2, false, change_resize,
	  "change the mode that the guest prefers" },
	{ "doctor", "", 0, true, command_doctor,
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

static int octavoctl_run(const struct command *command, struct octavoctl *ctl, GError **error)
{
	if (ctl->argc != command->words) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE, "usage: octavoctl %s%s",
			    command->name, command->arguments);
		return CLIENT_ERROR_USAGE;
	}
	if (!command->offline) {
		ctl->bus = client_connect(error);
		if (!ctl->bus)
			return CLIENT_ERROR_NO_DAEMON;
	}
	return command->run(ctl, error);
}

int main(int argc, char **argv)
{
	gboolean json = FALSE, version = FALSE;
	const GOptionEntry entries[] = {
		{ "json", 0, 0, G_OPTION_ARG_NONE, &json, "print JSON", NULL },
		{ "version", 0, 0, G_OPTION_ARG_NONE, &version, "print the version and end", NULL },
		{ 0 },
	};
	g_autoptr(GOptionContext) context = g_option_context_new("COMMAND - look after vGPUs");
	g_autofree char *summary = octavoctl_summary();
	const struct command *command;
	g_autoptr(GError) error = NULL;
	struct octavoctl ctl = { 0 };
	int status;

	setlocale(LC_ALL, "");
	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_summary(context, summary);
	if (!g_option_context_parse(context, &argc, &argv, &error)) {
		fprintf(stderr, "octavoctl: %s: see octavoctl --help\n", error->message);
		return CLIENT_ERROR_USAGE;
	}
	if (version) {
		puts("octavoctl " OCTAVO_VERSION);
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
	ctl.json = json;
	ctl.argc = argc - 2;
	ctl.argv = argv + 2;
	status = octavoctl_run(command, &ctl, &error);
	g_clear_object(&ctl.bus);
	if (!error)
		return status;
	fprintf(stderr, "octavoctl: %s\n", error->message);
	return error->domain == CLIENT_ERROR ? error->code : CLIENT_ERROR_FAILED;
}
