// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/snapshot.h"

static void snapshot_clear_gpu(void *data)
{
	g_free(((struct snapshot_gpu *)data)->slices);
}

struct snapshot *snapshot_new(void)
{
	struct snapshot *snapshot = g_new0(struct snapshot, 1);

	snapshot->gpus = g_array_new(FALSE, TRUE, sizeof(struct snapshot_gpu));
	g_array_set_clear_func(snapshot->gpus, snapshot_clear_gpu);
	snapshot->vgpus = g_array_new(FALSE, TRUE, sizeof(struct snapshot_vgpu));
	return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	g_array_unref(snapshot->gpus);
	g_array_unref(snapshot->vgpus);
	g_free(snapshot);
}

uint32_t snapshot_promise(enum conf_policy policy, uint32_t eighths, uint32_t open)
{
	switch (policy) {
	case CONF_POLICY_ELASTIC:
	case CONF_POLICY_FIXED_SHARE:
		return eighths * POLICY_WHOLE / OCTAVO_EIGHTHS;
	case CONF_POLICY_EQUAL_SHARE:
		return POLICY_WHOLE / MAX(open, 1);
	default:
		return 0;
	}
}

const char *snapshot_type_name(uint32_t eighths)
{
	static const char *const names[OCTAVO_EIGHTHS] = { [1] = "1/8", [2] = "1/4", [4] = "1/2" };

	return eighths < OCTAVO_EIGHTHS && names[eighths] ? names[eighths] : "";
}
