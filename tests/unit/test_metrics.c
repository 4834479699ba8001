// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/metrics.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

#include "daemon/status.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/suite.h"

#define NOW	(1060ull * 1000000000)
#define CAD	"uuid=\"2f0b9d17-88c1-4a7e-b0f6-52f3f1d0be02\",gpu=\"0000:03:00.0\",type=\"1/4\",vm=\"cad-lisa\""
#define DESK	"uuid=\"3d7e2a90-5b6f-49f2-8c1d-9a60e2c4d703\",gpu=\"0000:03:00.0\",type=\"1/8\",vm=\"desk \\\"Ö\\\"\""
#define LATE	"uuid=\"5be82d46-1f09-4c8a-9e72-07d95a3b1c05\",gpu=\"0000:41:00.0\",type=\"1/4\",vm=\"train-a\""
#define IDLE	"uuid=\"8e4d71c2-06fe-43d7-a95b-31a8c57f0d08\",gpu=\"0000:41:00.0\",type=\"1/8\",vm=\"\""

static char *render(const struct snapshot *snapshot)
{
	GString *text = g_string_new(NULL);

	metrics_render(snapshot, text);
	return g_string_free(text, FALSE);
}

static char *render_fake(void)
{
	struct snapshot *snapshot = fake_host(NOW, false);
	char *text = render(snapshot);

	snapshot_free(snapshot);
	return text;
}

static void must_have(const char *text, const char *line)
{
	g_autofree char *whole = g_strdup_printf("\n%s\n", line);

	if (!strstr(text, whole)) {
		CU_FAIL("line");
		printf("\n    there is no line '%s'\n", line);
	}
}

static void values(void)
{
	g_autofree char *text = render_fake();

	must_have(text, "octavo_module_state{state=\"loaded\"} 1");
	must_have(text, "octavo_module_state{state=\"absent\"} 0");
	must_have(text, "octavo_start_time_seconds 1793404800.000000000");
	must_have(text, "octavo_events_total{event=\"worker-lost\"} 3");
	must_have(text, "octavo_gpu_info{gpu=\"0000:03:00.0\",name=\"AMD Radeon RX 7800 XT\",driver=\"amdgpu\",policy=\"elastic\",renderer=\"venus\"} 1");
	must_have(text, "octavo_gpu_capacity_eighths{gpu=\"0000:03:00.0\"} 8");
	must_have(text, "octavo_gpu_used_eighths{gpu=\"0000:41:00.0\"} 5");
	must_have(text, "octavo_gpu_available_vgpus{gpu=\"0000:03:00.0\",type=\"1/8\"} 0");
	must_have(text, "octavo_gpu_available_vgpus{gpu=\"0000:41:00.0\",type=\"1/2\"} 0");
	must_have(text, "octavo_gpu_available_vgpus{gpu=\"0000:41:00.0\",type=\"1/4\"} 1");
	must_have(text, "octavo_gpu_available_vgpus{gpu=\"0000:41:00.0\",type=\"1/8\"} 3");
	must_have(text, "octavo_gpu_slice_seconds{gpu=\"0000:03:00.0\"} 0.004000000");
	must_have(text, "octavo_gpu_arbiter_realtime{gpu=\"0000:41:00.0\"} 0");
	must_have(text, "octavo_vgpu_share_ratio{" CAD "} 0.250");
	must_have(text, "octavo_vgpu_busy_seconds_total{" CAD "} 14.940000000");
	must_have(text, "octavo_vgpu_memory_limit_bytes{" CAD "} 4294967296");
	must_have(text, "octavo_vgpu_debt_seconds{" CAD "} 0.003000005");
	must_have(text, "octavo_vgpu_debt_seconds{" DESK "} -0.002000000");
	must_have(text, "octavo_vgpu_hangs_total{" LATE "} 4");
	must_have(text, "octavo_vgpu_held_off{" LATE "} 1");
	must_have(text, "octavo_vgpu_held_off{" IDLE "} 0");
	must_have(text, "octavo_vgpu_busy_seconds_total{" IDLE "} 0.000000000");
}

static void one_state_each(void)
{
	g_autofree char *text = render_fake();

	must_have(text, "octavo_vgpu_state{" IDLE ",state=\"idle\"} 1");
	must_have(text, "octavo_vgpu_state{" IDLE ",state=\"open\"} 0");
	must_have(text, "octavo_vgpu_state{" IDLE ",state=\"unserved\"} 0");
	must_have(text, "octavo_vgpu_state{" IDLE ",state=\"needs-reset\"} 0");
	must_have(text, "octavo_gpu_state{gpu=\"0000:03:00.0\",state=\"registered\"} 1");
	must_have(text, "octavo_gpu_state{gpu=\"0000:03:00.0\",state=\"refused\"} 0");
}

/* Each family once, HELP and TYPE ahead of its samples, _total for counters and for them only. */
static void naming_rules(void)
{
	g_autofree char *text = render_fake();
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	g_autoptr(GHashTable) seen =
		g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	g_autofree char *family = NULL;
	unsigned int samples = 0;

	for (unsigned int i = 0; *lines[i]; i++) {
		g_auto(GStrv) words = g_strsplit(lines[i], " ", 4);

		if (g_str_has_prefix(lines[i], "# HELP ")) {
			g_free(family);
			family = g_strdup(words[2]);
			CU_ASSERT_TRUE(g_str_has_prefix(family, "octavo_"));
			CU_ASSERT_TRUE(g_hash_table_add(seen, g_strdup(family)));
		} else if (g_str_has_prefix(lines[i], "# TYPE ")) {
			CU_ASSERT_STRING_EQUAL(words[2], family);
			CU_ASSERT_EQUAL(g_str_equal(words[3], "counter"),
					g_str_has_suffix(family, "_total"));
		} else {
			size_t length = strcspn(lines[i], "{ ");

			CU_ASSERT_EQUAL(strlen(family), length);
			CU_ASSERT_EQUAL(strncmp(lines[i], family, length), 0);
			samples++;
		}
	}
	CU_ASSERT_TRUE(samples > FAKE_HOST_VGPUS * 25);
}

static void escapes(void)
{
	GString *text = g_string_new(NULL);

	metrics_label(text, "vm", "a\\b\"c\nd{}=,");
	CU_ASSERT_STRING_EQUAL(text->str, "vm=\"a\\\\b\\\"c\\nd{}=,\"");
	g_string_truncate(text, 0);
	metrics_label(text, "vm", "\xff\xc3");
	CU_ASSERT_TRUE(g_utf8_validate(text->str, -1, NULL));
	g_string_free(text, TRUE);
}

static void nothing_there(void)
{
	struct snapshot *snapshot = snapshot_new();
	g_autofree char *text = NULL;

	snapshot->host = "";
	snapshot->version = "1";
	snapshot->module = "absent";
	text = render(snapshot);
	must_have(text, "octavo_module_state{state=\"absent\"} 1");
	CU_ASSERT_PTR_NULL(strstr(text, "octavo_gpu"));
	snapshot_free(snapshot);
}

/* A GPU that is not registered has nothing to hand out, whatever its vGPUs of before have. */
static void unregistered_has_no_capacity(void)
{
	struct snapshot *snapshot = fake_host(NOW, false);
	g_autofree char *text = NULL;

	g_array_index(snapshot->gpus, struct snapshot_gpu, 1).state = GPU_REFUSED;
	text = render(snapshot);
	must_have(text, "octavo_gpu_capacity_eighths{gpu=\"0000:41:00.0\"} 0");
	must_have(text, "octavo_gpu_available_vgpus{gpu=\"0000:41:00.0\",type=\"1/8\"} 0");
	snapshot_free(snapshot);
}

static void promises(void)
{
	CU_ASSERT_EQUAL(snapshot_promise(CONF_POLICY_ELASTIC, 1, 8), 125);
	CU_ASSERT_EQUAL(snapshot_promise(CONF_POLICY_FIXED_SHARE, 4, 2), 500);
	CU_ASSERT_EQUAL(snapshot_promise(CONF_POLICY_EQUAL_SHARE, 4, 3), 333);
	CU_ASSERT_EQUAL(snapshot_promise(CONF_POLICY_EQUAL_SHARE, 4, 0), 1000);
	CU_ASSERT_EQUAL(snapshot_promise(CONF_POLICY_BEST_EFFORT, 4, 3), 0);
	CU_ASSERT_STRING_EQUAL(snapshot_type_name(4), "1/2");
	CU_ASSERT_STRING_EQUAL(snapshot_type_name(3), "");
	CU_ASSERT_STRING_EQUAL(snapshot_type_name(8), "");
}

static void json(void)
{
	struct snapshot *snapshot = fake_host(NOW, true);
	g_autofree char *text = NULL;
	g_autoptr(JsonParser) parser = json_parser_new();
	JsonObject *root, *object;
	JsonArray *slices, *slice;

	g_array_index(snapshot->vgpus, struct snapshot_vgpu, 3).vm = "\xff";
	text = status_render(snapshot);
	CU_ASSERT_TRUE_FATAL(json_parser_load_from_data(parser, text, -1, NULL));
	root = json_node_get_object(json_parser_get_root(parser));
	CU_ASSERT_STRING_EQUAL(json_object_get_string_member(root, "module"), "loaded");
	CU_ASSERT_EQUAL(json_array_get_length(json_object_get_array_member(root, "gpus")), 2);
	CU_ASSERT_EQUAL(json_array_get_length(json_object_get_array_member(root, "vgpus")),
			FAKE_HOST_VGPUS);
	object = json_array_get_object_element(json_object_get_array_member(root, "vgpus"), 1);
	CU_ASSERT_STRING_EQUAL(json_object_get_string_member(object, "vm"), "cad-lisa");
	CU_ASSERT_EQUAL(json_object_get_int_member(object, "busy_us"), 14940000);
	CU_ASSERT_EQUAL(json_object_get_double_member(object, "share"), 0.25);
	object = json_array_get_object_element(json_object_get_array_member(root, "gpus"), 0);
	slices = json_object_get_array_member(object, "slices");
	CU_ASSERT_EQUAL_FATAL(json_array_get_length(slices), STATUS_SPAN_MS / 4 + 1);
	slice = json_array_get_array_element(slices, STATUS_SPAN_MS / 4);
	CU_ASSERT_EQUAL(json_array_get_int_element(slice, 0), 3);
	CU_ASSERT_EQUAL(json_array_get_int_element(slice, 1), 4000);
	CU_ASSERT_EQUAL(json_array_get_int_element(slice, 2), 4000);
	object = json_array_get_object_element(json_object_get_array_member(root, "events"), 0);
	CU_ASSERT_STRING_EQUAL(json_object_get_string_member(object, "event"), "worker-lost");
	snapshot_free(snapshot);
}

/* Slices of a vGPU that is gone, and one that ended after the snapshot's time. */
static void json_odd_slices(void)
{
	struct snapshot *snapshot = fake_host(NOW, true);
	struct snapshot_gpu *gpu = &g_array_index(snapshot->gpus, struct snapshot_gpu, 0);
	g_autofree char *text = NULL;

	g_strlcpy(gpu->slices[0].name, "gone", sizeof(gpu->slices[0].name));
	gpu->slices[0].slice.begin_ns = NOW + 5000000;
	gpu->n_slices = 1;
	text = status_render(snapshot);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"slices\":[[-1,0,4000,0]]"));
	snapshot_free(snapshot);
}

SUITE_RUN("metrics",
	  { "every value is written with its unit", values },
	  { "a state is 1 for the one that holds and 0 for the others", one_state_each },
	  { "names, types and help follow Prometheus' rules", naming_rules },
	  { "label values are escaped and UTF-8", escapes },
	  { "a host without GPUs has its own metrics only", nothing_there },
	  { "a GPU that is not registered has nothing to hand out", unregistered_has_no_capacity },
	  { "what is promised depends on the policy", promises },
	  { "the status is JSON with slices, memory and events", json },
	  { "slices of nobody and of the future are shown as such", json_odd_slices })
