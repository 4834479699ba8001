// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ggml_check: what a language model is made of, computed by ggml's Vulkan backend and by its CPU
 * backend, and compared
 *
 * Prints the device and a line for each operation, with the normalized mean square error between
 * the two. Status 0: all are below 1e-6. The Vulkan device is the first one, whatever its type
 * (GGML_VK_VISIBLE_DEVICES=0: by itself ggml takes no device that says it is a CPU).
 */
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_MAX 1e-6

struct operation {
	const char *name;
	struct ggml_tensor *(*make)(struct ggml_context *context, struct ggml_tensor *inputs[3]);
};

static struct ggml_tensor *make_add(struct ggml_context *c, struct ggml_tensor *in[3])
{
	in[0] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 256, 64);
	in[1] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 256, 64);
	return ggml_add(c, in[0], in[1]);
}

static struct ggml_tensor *make_mul_mat(struct ggml_context *c, struct ggml_tensor *in[3])
{
	in[0] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 128, 64);
	in[1] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 128, 16);
	return ggml_mul_mat(c, in[0], in[1]);
}

static struct ggml_tensor *make_soft_max(struct ggml_context *c, struct ggml_tensor *in[3])
{
	in[0] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 256, 32);
	return ggml_soft_max(c, in[0]);
}

static struct ggml_tensor *make_rms_norm(struct ggml_context *c, struct ggml_tensor *in[3])
{
	in[0] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 256, 32);
	return ggml_rms_norm(c, in[0], 1e-6f);
}

static struct ggml_tensor *make_rope(struct ggml_context *c, struct ggml_tensor *in[3])
{
	in[0] = ggml_new_tensor_3d(c, GGML_TYPE_F32, 64, 4, 8);
	in[1] = ggml_new_tensor_1d(c, GGML_TYPE_I32, 8);
	return ggml_rope(c, in[0], in[1], 64, 0);
}

static const struct operation operations[] = {
	{ "ADD", make_add },	       { "MUL_MAT", make_mul_mat },   { "SOFT_MAX", make_soft_max },
	{ "RMS_NORM", make_rms_norm }, { "ROPE", make_rope },
};

/* The same numbers for both backends: -1 to 1, or positions. */
static void fill(struct ggml_tensor *tensor)
{
	size_t count = (size_t)ggml_nelements(tensor);
	uint32_t *words = malloc(count * 4);

	if (!words)
		exit(1);
	for (size_t i = 0; i < count; i++) {
		float value = (float)((i * 2654435761u >> 8) & 0xffff) / 32768.0f - 1.0f;

		if (tensor->type == GGML_TYPE_I32)
			words[i] = (uint32_t)i;
		else
			memcpy(&words[i], &value, 4);
	}
	ggml_backend_tensor_set(tensor, words, 0, count * 4);
	free(words);
}

/* The operation's result, the caller's; NULL: this backend cannot do it. */
static float *compute(ggml_backend_t backend, const struct operation *operation, size_t *count)
{
	struct ggml_init_params params = {
		.mem_size = ggml_tensor_overhead() * 8 + ggml_graph_overhead(), .no_alloc = true,
	};
	struct ggml_context *context = ggml_init(params);
	struct ggml_tensor *in[3] = { NULL }, *out = operation->make(context, in);
	struct ggml_cgraph *graph = ggml_new_graph(context);
	ggml_backend_buffer_t buffer;
	float *result = NULL;

	ggml_build_forward_expand(graph, out);
	buffer = ggml_backend_alloc_ctx_tensors(context, backend);
	if (buffer && ggml_backend_supports_op(backend, out)) {
		for (int i = 0; i < 3 && in[i]; i++)
			fill(in[i]);
		*count = (size_t)ggml_nelements(out);
		if (ggml_backend_graph_compute(backend, graph) == GGML_STATUS_SUCCESS)
			result = malloc(*count * sizeof(*result));
		if (result)
			ggml_backend_tensor_get(out, result, 0, *count * sizeof(*result));
	}
	ggml_backend_buffer_free(buffer);
	ggml_free(context);
	return result;
}

static bool check(ggml_backend_t gpu, ggml_backend_t cpu, const struct operation *operation)
{
	size_t count = 0, cpu_count = 0;
	float *got = compute(gpu, operation, &count), *wanted = compute(cpu, operation, &cpu_count);
	double difference = 0, sum = 0, error;

	if (!got || !wanted || count != cpu_count) {
		printf("%s: not computed\n", operation->name);
		free(got);
		free(wanted);
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		double d = (double)got[i] - (double)wanted[i];

		difference += d * d;
		sum += (double)wanted[i] * (double)wanted[i];
	}
	error = sum > 0 ? difference / sum : 1;
	printf("%s: %s (error %.2e)\n", operation->name, error < ERROR_MAX ? "right" : "WRONG", error);
	free(got);
	free(wanted);
	return error < ERROR_MAX;
}

static ggml_backend_t open_backend(const char *registry)
{
	ggml_backend_reg_t reg = ggml_backend_reg_by_name(registry);
	ggml_backend_t backend = NULL;

	if (reg && ggml_backend_reg_dev_count(reg) > 0)
		backend = ggml_backend_dev_init(ggml_backend_reg_dev_get(reg, 0), NULL);
	if (!backend) {
		fprintf(stderr, "ggml_check: ggml has no backend '%s' with a device here\n", registry);
		exit(1);
	}
	return backend;
}

int main(void)
{
	ggml_backend_t gpu, cpu;
	bool good = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("GGML_VK_VISIBLE_DEVICES", "0", 0);
	ggml_backend_load_all();
	gpu = open_backend("Vulkan");
	cpu = open_backend("CPU");
	printf("device: %s\n", ggml_backend_dev_description(ggml_backend_get_device(gpu)));
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		good &= check(gpu, cpu, &operations[i]);
	ggml_backend_free(gpu);
	ggml_backend_free(cpu);
	return !good;
}
