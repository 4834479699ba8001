// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl's commands that change something: resize */
#include <stdio.h>

#include "tools/client.h"
#include "tools/octavoctl.h"

int change_resize(struct octavoctl *ctl, GError **error)
{
	g_autofree char *path = NULL;
	g_autoptr(GVariant) answer = NULL;
	unsigned int width, height;
	char end;

	if (sscanf(ctl->argv[1], "%ux%u%c", &width, &height, &end) != 2) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE,
			    "'%s' is no mode: write WIDTHxHEIGHT in pixels, such as 1920x1080",
			    ctl->argv[1]);
		return 1;
	}
	path = client_vgpu_path(ctl->bus, ctl->argv[0], error);
	if (!path)
		return 1;
	answer = client_call(ctl->bus, path, CLIENT_VGPU, "Resize",
			     g_variant_new("(uu)", width, height), error);
	return answer ? 0 : 1;
}
