// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl's commands that change something: create, remove, resize */
#include <stdio.h>

#include "tools/client.h"
#include "tools/octavoctl.h"
#include "tools/output.h"

int change_create(struct octavoctl *ctl, GError **error)
{
	g_autoptr(GVariant) answer = client_call(
		ctl->bus, CLIENT_PATH, CLIENT_MANAGER, "Create",
		g_variant_new("(sssb)", ctl->argv[0], ctl->gpu ? ctl->gpu : "",
			      ctl->uuid ? ctl->uuid : "", ctl->persistent),
		error);
	g_autoptr(GVariant) vgpu = NULL;
	const char *uuid;

	if (!answer)
		return 1;
	g_variant_get(answer, "(&s&o)", &uuid, NULL);
	if (!ctl->json) {
		puts(uuid);
		return 0;
	}
	vgpu = client_vgpu(ctl->bus, uuid, error);
	if (!vgpu)
		return 1;
	output_json(vgpu);
	return 0;
}

int change_remove(struct octavoctl *ctl, GError **error)
{
	g_autofree char *path = client_vgpu_path(ctl->bus, ctl->argv[0], error);
	g_autoptr(GVariant) answer = NULL;

	if (!path)
		return 1;
	answer = client_call(ctl->bus, path, CLIENT_VGPU, "Remove",
			     g_variant_new("(b)", ctl->persistent), error);
	return answer ? 0 : 1;
}

static int change_gpu(struct octavoctl *ctl, const char *method, GVariant *arguments, GError **error)
{
	g_autoptr(GVariant) owned = g_variant_ref_sink(arguments);
	g_autofree char *path = client_gpu_path(ctl->bus, ctl->argv[0], error);
	g_autoptr(GVariant) answer = NULL;

	if (path)
		answer = client_call(ctl->bus, path, CLIENT_GPU, method, owned, error);
	return answer ? 0 : 1;
}

int change_policy(struct octavoctl *ctl, GError **error)
{
	return change_gpu(ctl, "SetPolicy", g_variant_new("(s)", ctl->argv[1]), error);
}

int change_slice(struct octavoctl *ctl, GError **error)
{
	char *end;
	double ms = g_ascii_strtod(ctl->argv[1], &end);

	if (end == ctl->argv[1] || *end || !(ms > 0) || ms > 1000) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE,
			    "'%s' is no length of a slice: write milliseconds, 1 to 30", ctl->argv[1]);
		return 1;
	}
	return change_gpu(ctl, "SetSlice", g_variant_new("(u)", (guint32)(ms * 1000)), error);
}

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
