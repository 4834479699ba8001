// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The device with the host's real renderer and a guest that is an array: what a driver's requests
 * bring about in OpenGL, in render processes and in the window.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu/log.h"
#include "gpu/renderer.h"
#include "tests/unit/fake_guest.h"
#include "tests/unit/suite.h"

#define REQUEST		0x200000	/* where the driver puts its requests, SLOT_BYTES each */
#define SLOT_BYTES	0x10000
#define SLOTS		32
#define ANSWERS		0x600000
#define ANSWER_BYTES	0x1000
#define PIXELS		0x800000
#define WAIT_MS		20000

#define SIDE		64

/* The drivers' own leaks are not ours to report. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libEGL_mesa\nleak:libgallium\nleak:libvirglrenderer\nleak:libLLVM\n";
}

static struct fake_guest fake;
static struct fake_driver driver;
static struct queue queue;
static struct console console;
static struct gpu gpu;
static struct renderer renderer;
static uint32_t *plane;
static int answered_fd;
static unsigned int slot;
static struct window_mapping *shown;
static uint64_t shown_offset;
static int gate_fd;
static struct gate *gate;		/* as the arbiter has it */

static void resize(void *context, uint32_t width, uint32_t height, uint32_t stride)
{
	(void)context;
	(void)width;
	(void)height;
	(void)stride;
}

static void answered(void *context)
{
	uint64_t one = 1;

	(void)context;
	queue_signal(&queue);
	CU_ASSERT(write(answered_fd, &one, sizeof(one)) == sizeof(one));
}

static int show(void *context, struct window_mapping *mapping, uint64_t offset, uint32_t caching)
{
	(void)context;
	if (offset % 4096)
		return -EINVAL;
	mapping->offset = offset;
	mapping->caching = caching;
	mapping->shown = true;
	shown = mapping;
	shown_offset = offset;
	return 0;
}

static int hide(void *context, struct window_mapping *mapping)
{
	(void)context;
	mapping->shown = false;
	shown = NULL;
	return 0;
}

/* One device for all tests: virglrenderer can be started once in a process. */
static void start(void)
{
	static const struct console_ops console_ops = { .resize = resize };
	static const struct renderer_ops ops = {
		.answered = answered, .show = show, .hide = hide,
	};
	struct gpu_setup setup = { .heads = 1, .width = 1280, .height = 800 };
	struct renderer_options options = { .capsets = RENDERER_VIRGL | RENDERER_VENUS };

	if (plane)
		return;
	log_verbose = getenv("VERBOSE") != NULL;
	gate_fd = gate_create(0);
	CU_ASSERT_FATAL(gate_fd >= 0);
	gate = gate_own(gate_fd, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(gate);
	options.gate_fd = gate_fd;
	gpu_default_limits(&setup.limits, 256 << 20);
	plane = calloc((size_t)CONSOLE_WIDTH_MAX * CONSOLE_HEIGHT_MAX, 4);
	answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fake_guest_create(&fake);
	fake_driver_create(&driver, &fake, &queue, 0, 256, true);
	console_create(&console, plane, &console_ops, NULL);
	console_watch(&console, true);
	gpu_create(&gpu, &fake.guest, &console, &setup);
	CU_ASSERT_FATAL(renderer_start(&renderer, &gpu, &ops, NULL, &options) == 0);
}

/* Sends a request; its answer will be at the returned address. */
static void *send(const void *request, size_t bytes, const void *more, size_t more_bytes)
{
	unsigned int at = slot++ % SLOTS;
	uint8_t *to = fake.guest.base + REQUEST + (uint64_t)at * SLOT_BYTES;
	uint8_t *answer = fake.guest.base + ANSWERS + (uint64_t)at * ANSWER_BYTES;
	struct command *command;

	CU_ASSERT_FATAL(bytes + more_bytes <= SLOT_BYTES);
	memset(answer, 0, ANSWER_BYTES);
	memcpy(to, request, bytes);
	if (more_bytes)
		memcpy(to + bytes, more, more_bytes);
	fake_request(&driver, REQUEST + (uint64_t)at * SLOT_BYTES, (uint32_t)(bytes + more_bytes),
		     ANSWERS + (uint64_t)at * ANSWER_BYTES, ANSWER_BYTES);
	while (command_pop(&queue, &command) == 1)
		renderer_submit(&renderer, command);
	return answer;
}

/* Waits until @answer has come; its type, 0 when it has not after WAIT_MS. */
static uint32_t await(const void *answer)
{
	const volatile struct virtio_gpu_ctrl_hdr *header = answer;
	uint64_t count;

	while (!header->type) {
		struct pollfd poll_fd = { .fd = answered_fd, .events = POLLIN };

		if (poll(&poll_fd, 1, WAIT_MS) <= 0)
			return 0;
		if (read(answered_fd, &count, sizeof(count)) < 0)
			return 0;
	}
	return header->type;
}

static uint32_t ask(const void *request, size_t bytes)
{
	return await(send(request, bytes, NULL, 0));
}

#define ASK(request)	ask(&(request), sizeof(request))

static uint32_t context_make(uint32_t id, uint32_t capset)
{
	struct virtio_gpu_ctx_create request = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = id },
		.nlen = 4,
		.context_init = capset,
		.debug_name = "test",
	};

	return ASK(request);
}

static uint32_t context_end(uint32_t id)
{
	struct virtio_gpu_ctx_destroy request = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_DESTROY, .ctx_id = id },
	};

	return ASK(request);
}

static uint32_t resource_make(uint32_t id, uint32_t width, uint32_t height)
{
	struct virtio_gpu_resource_create_3d request = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_3D,
		.resource_id = id,
		.target = 2,			/* PIPE_TEXTURE_2D */
		.format = VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM,
		.bind = 1 << 1 | 1 << 18,	/* render target, scanout */
		.width = width,
		.height = height,
		.depth = 1,
		.array_size = 1,
	};

	return ASK(request);
}

static uint32_t resource_attach_context(uint32_t id, uint32_t context)
{
	struct virtio_gpu_ctx_resource request = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, .ctx_id = context },
		.resource_id = id,
	};

	return ASK(request);
}

static uint32_t backing_attach(uint32_t id, uint64_t iova, uint32_t bytes)
{
	struct {
		struct virtio_gpu_resource_attach_backing head;
		struct virtio_gpu_mem_entry entry;
	} request = {
		.head = {
			.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
			.resource_id = id,
			.nr_entries = 1,
		},
		.entry = { .addr = iova, .length = bytes },
	};

	return ASK(request);
}

static uint32_t unref(uint32_t id)
{
	struct virtio_gpu_resource_unref request = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF, .resource_id = id,
	};

	return ASK(request);
}

/* Commands of the virgl protocol: resource @id becomes the target and is cleared. */
static void *clear(uint32_t context, uint32_t id, float red, float green, float blue,
		   uint64_t fence_id)
{
	uint32_t words[32], count = 0;
	float colors[4] = { red, green, blue, 1.0f };
	struct virtio_gpu_cmd_submit request = {
		.hdr = {
			.type = VIRTIO_GPU_CMD_SUBMIT_3D,
			.ctx_id = context,
			.flags = fence_id ? VIRTIO_GPU_FLAG_FENCE : 0,
			.fence_id = fence_id,
		},
	};

	words[count++] = 1 | 8 << 8 | 5 << 16;	/* CREATE_OBJECT, SURFACE, 5 words */
	words[count++] = 100 + id;
	words[count++] = id;
	words[count++] = VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM;
	words[count++] = 0;
	words[count++] = 0;
	words[count++] = 5 | 3 << 16;		/* SET_FRAMEBUFFER_STATE */
	words[count++] = 1;
	words[count++] = 0;
	words[count++] = 100 + id;
	words[count++] = 7 | 8 << 16;		/* CLEAR */
	words[count++] = 4;			/* the first color buffer */
	memcpy(&words[count], colors, sizeof(colors));
	count += 4;
	words[count++] = 0;
	words[count++] = 0;
	words[count++] = 0;
	words[count++] = 3 | 8 << 8 | 1 << 16;	/* DESTROY_OBJECT */
	words[count++] = 100 + id;
	request.size = count * 4;
	return send(&request, sizeof(request), words, count * 4);
}

static uint32_t transfer_from_host(uint32_t id, uint32_t context)
{
	struct virtio_gpu_transfer_host_3d request = {
		.hdr = {
			.type = VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D,
			.ctx_id = context,
			.flags = VIRTIO_GPU_FLAG_FENCE,
			.fence_id = 77,
		},
		.box = { .w = SIDE, .h = SIDE, .d = 1 },
		.resource_id = id,
		.stride = SIDE * 4,
	};

	return ASK(request);
}

/* ------------------------------------------------------------------------------------------------
 */

static void capsets_are_told(void)
{
	static const uint32_t ids[] = { 1, 2, 4 };

	start();
	for (uint32_t i = 0; i < 3; i++) {
		struct virtio_gpu_get_capset_info request = {
			.hdr.type = VIRTIO_GPU_CMD_GET_CAPSET_INFO, .capset_index = i,
		};
		struct virtio_gpu_resp_capset_info *info;
		struct virtio_gpu_resp_capset *capset;

		info = send(&request, sizeof(request), NULL, 0);
		CU_ASSERT_EQUAL(await(info), VIRTIO_GPU_RESP_OK_CAPSET_INFO);
		CU_ASSERT_EQUAL(info->capset_id, ids[i]);
		CU_ASSERT(info->capset_max_size > 0);
		capset = send(&(struct virtio_gpu_get_capset){
			.hdr.type = VIRTIO_GPU_CMD_GET_CAPSET,
			.capset_id = ids[i], .capset_version = info->capset_max_version,
		}, sizeof(struct virtio_gpu_get_capset), NULL, 0);
		CU_ASSERT_EQUAL(await(capset), VIRTIO_GPU_RESP_OK_CAPSET);
		/* an empty one would give guests a silent software renderer */
		CU_ASSERT(*(uint32_t *)capset->capset_data != 0);
	}
}

/* A context and a resource of their own, cleared and read back. */
static void draw(uint32_t context, uint32_t id)
{
	uint32_t *pixels = (uint32_t *)(fake.guest.base + PIXELS);
	struct virtio_gpu_ctrl_hdr *answer;
	unsigned int wrong = 0;

	memset(pixels, 0, SIDE * SIDE * 4);
	CU_ASSERT_EQUAL(context_make(context, 0), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(resource_make(id, SIDE, SIDE), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(resource_attach_context(id, context), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(backing_attach(id, PIXELS, SIDE * SIDE * 4), VIRTIO_GPU_RESP_OK_NODATA);
	answer = clear(context, id, 1.0f, 0.0f, 51.0f / 255, 42);
	CU_ASSERT_EQUAL(await(answer), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(answer->flags, VIRTIO_GPU_FLAG_FENCE);
	CU_ASSERT_EQUAL(answer->fence_id, 42);
	CU_ASSERT_EQUAL(transfer_from_host(id, context), VIRTIO_GPU_RESP_OK_NODATA);
	for (unsigned int i = 0; i < SIDE * SIDE; i++)
		wrong += pixels[i] != 0xffff0033;
	CU_ASSERT_EQUAL(wrong, 0);
}

static void opengl_draws_exact_pixels(void)
{
	start();
	draw(1, 10);
}

static void a_flush_shows_opengl_on_the_console(void)
{
	struct virtio_gpu_set_scanout scanout = {
		.hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT,
		.r = { .width = SIDE, .height = SIDE },
		.resource_id = 10,
	};
	struct virtio_gpu_resource_flush flush = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_FLUSH,
		.r = { .width = SIDE, .height = SIDE },
		.resource_id = 10,
	};
	unsigned int wrong = 0;

	CU_ASSERT_EQUAL(ASK(scanout), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(await(clear(1, 10, 0.0f, 1.0f, 0.0f, 43)), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(ASK(flush), VIRTIO_GPU_RESP_OK_NODATA);
	for (unsigned int i = 0; i < SIDE * SIDE; i++)
		wrong += (plane[i] & 0xffffff) != 0x00ff00;
	CU_ASSERT_EQUAL(wrong, 0);
}

static void fences_keep_their_order(void)
{
	struct virtio_gpu_ctrl_hdr *answers[16];

	/* a fenced request of the 2D part must not overtake the GPU's */
	for (uint32_t i = 0; i < 16; i++) {
		struct virtio_gpu_resource_flush flush = {
			.hdr = {
				.type = VIRTIO_GPU_CMD_RESOURCE_FLUSH,
				.flags = VIRTIO_GPU_FLAG_FENCE, .fence_id = 100 + i,
			},
			.r = { .width = 1, .height = 1 },
			.resource_id = 10,
		};

		answers[i] = i % 2 ? send(&flush, sizeof(flush), NULL, 0) :
				     clear(1, 10, 0.0f, 0.0f, 1.0f, 100 + i);
	}
	CU_ASSERT_EQUAL(await(answers[15]), VIRTIO_GPU_RESP_OK_NODATA);
	for (uint32_t i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(answers[i]->type, VIRTIO_GPU_RESP_OK_NODATA);
}

static void a_closed_gate_holds_opengl_back(void)
{
	struct virtio_gpu_ctrl_hdr *answer;
	struct gate_page *page = gate_page(gate);
	uint32_t event = atomic_load(&page->event);
	uint64_t end = gate_now_ns() + WAIT_MS * 1000000ULL;
	unsigned int waiting = 0;

	gate_set_open(gate, false);
	answer = clear(1, 10, 1.0f, 1.0f, 0.0f, 300);
	while (!waiting && gate_now_ns() < end) {
		/* an arbiter that lives; it would be told of the waiter by the event */
		atomic_fetch_add(&page->heartbeat, 1);
		for (unsigned int i = 0; i < GATE_SLOTS; i++)
			waiting += atomic_load(&page->slots[i].waiting);
		poll(NULL, 0, 1);
	}
	CU_ASSERT_EQUAL(waiting, 1);
	CU_ASSERT(atomic_load(&page->event) != event);
	CU_ASSERT_EQUAL(answer->type, 0);
	gate_set_open(gate, true);
	CU_ASSERT_EQUAL(await(answer), VIRTIO_GPU_RESP_OK_NODATA);
}

static void *blob_make(uint32_t id, uint32_t context, uint64_t blob_id, uint64_t bytes)
{
	struct virtio_gpu_resource_create_blob request = {
		.hdr = { .type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB, .ctx_id = context },
		.resource_id = id,
		.blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
		.blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE,
		.blob_id = blob_id,
		.size = bytes,
	};

	return send(&request, sizeof(request), NULL, 0);
}

static uint32_t blob_show(uint32_t id, uint64_t offset)
{
	struct virtio_gpu_resource_map_blob request = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, .resource_id = id, .offset = offset,
	};

	return ASK(request);
}

static void shared_memory_reaches_the_window(void)
{
	struct virtio_gpu_resource_unmap_blob unmap = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB, .resource_id = 20,
	};
	uint64_t charged = gpu.resources.bytes;
	unsigned int dirty = 0;

	CU_ASSERT_EQUAL(context_make(2, CAPSET_VENUS), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT(renderer.contexts->pid > 0);
	CU_ASSERT_EQUAL(await(blob_make(20, 2, 0, 1 << 20)), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(gpu.resources.bytes, charged + (1 << 20));
	CU_ASSERT_EQUAL(blob_show(20, 4096 + 1), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(blob_show(20, 2 << 20), VIRTIO_GPU_RESP_OK_MAP_INFO);
	CU_ASSERT_EQUAL(blob_show(20, 4 << 20), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_PTR_NOT_NULL_FATAL(shown);
	CU_ASSERT_EQUAL(shown_offset, 2 << 20);
	CU_ASSERT_EQUAL(shown->length, 1 << 20);
	CU_ASSERT_EQUAL((uintptr_t)shown->addr % WINDOW_ALIGNMENT, 0);
	CU_ASSERT_EQUAL(shown->caching, OCTAVO_CACHED);
	for (unsigned int i = 0; i < 1 << 20; i++)
		dirty += ((uint8_t *)shown->addr)[i];
	CU_ASSERT_EQUAL(dirty, 0);
	CU_ASSERT_EQUAL(ASK(unmap), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_PTR_NULL(shown);
	CU_ASSERT_EQUAL(ASK(unmap), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	/* destroyed while it is shown */
	CU_ASSERT_EQUAL(blob_show(20, 0), VIRTIO_GPU_RESP_OK_MAP_INFO);
	CU_ASSERT_EQUAL(unref(20), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_PTR_NULL(shown);
	CU_ASSERT_EQUAL(gpu.resources.bytes, charged);
}

static void guest_blob_needs_memory(void)
{
	struct {
		struct virtio_gpu_resource_create_blob create;
		struct virtio_gpu_mem_entry entries[2];
	} request = {
		{ .hdr = { .type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB }, .resource_id = 22,
		  .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST, .nr_entries = 2, .size = 8192 },
		{ { 4096, 4096, 0 }, { fake.guest.bytes, 4096, 0 } },
	};

	CU_ASSERT_EQUAL(await(send(&request, sizeof(request), NULL, 0)),
			VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	request.entries[1].addr = 16384;
	CU_ASSERT_EQUAL(await(send(&request, sizeof(request), NULL, 0)), VIRTIO_GPU_RESP_OK_NODATA);
}

static void limits_hold(void)
{
	struct virtio_gpu_cmd_submit submit = {
		.hdr = { .type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1 }, .size = 1 << 20,
	};

	CU_ASSERT_EQUAL(await(blob_make(21, 2, 0, 1ULL << 40)), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(await(blob_make(21, 2, 0, 0)), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(await(blob_make(21, 9, 0, 4096)), VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
	CU_ASSERT_EQUAL(resource_make(30, UINT32_MAX, 2), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(resource_make(30, 16384, 16384), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(resource_make(10, 4, 4), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	CU_ASSERT_EQUAL(context_make(1, 0), VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
	CU_ASSERT_EQUAL(context_make(0, 0), VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
	CU_ASSERT_EQUAL(context_make(3, 6), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(ASK(submit), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	submit.hdr.ctx_id = 99;
	CU_ASSERT_EQUAL(ASK(submit), VIRTIO_GPU_RESP_ERR_INVALID_CONTEXT_ID);
}

static void a_killed_render_process_costs_its_context_only(void)
{
	uint32_t words[2] = { 0, 0 };
	struct virtio_gpu_cmd_submit submit = {
		.hdr = {
			.type = VIRTIO_GPU_CMD_SUBMIT_3D,
			.ctx_id = 2,
			.flags = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX,
			.fence_id = 7,
		},
	};
	struct virtio_gpu_ctrl_hdr *answer;
	pid_t pid = renderer.contexts->pid;

	CU_ASSERT_FATAL(pid > 0 && renderer.contexts->id == 2);
	CU_ASSERT_EQUAL(kill(pid, SIGKILL), 0);
	/* sooner or later every request of it fails, and none hangs */
	for (int i = 0; i < 10000; i++) {
		submit.size = 8;
		answer = send(&submit, sizeof(submit), words, sizeof(words));
		CU_ASSERT_FATAL(await(answer) != 0);
		CU_ASSERT_EQUAL(answer->fence_id, 7);
		if (renderer.contexts->lost)
			break;
	}
	CU_ASSERT(renderer.contexts->lost);
	CU_ASSERT_EQUAL(await(send(&submit, sizeof(submit), words, sizeof(words))),
			VIRTIO_GPU_RESP_ERR_UNSPEC);
	CU_ASSERT_EQUAL(context_end(2), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(context_make(2, CAPSET_VENUS), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(await(blob_make(20, 2, 0, 4096)), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(await(clear(1, 10, 0.0f, 0.0f, 0.0f, 44)), VIRTIO_GPU_RESP_OK_NODATA);
}

/* Requests of every 3D type with random fields; what they name exists half of the time. */
static void random_requests_get_answers(void)
{
	uint32_t words[64];
	unsigned int silent = 0;

	srandom(4711);
	for (int i = 0; i < 3000; i++) {
		struct virtio_gpu_ctrl_hdr *header = (void *)words;

		for (unsigned int j = 0; j < 64; j++)
			words[j] = random() % 4 ? (uint32_t)random() % 64 : (uint32_t)random();
		header->type = (random() % 2 ? VIRTIO_GPU_CMD_GET_DISPLAY_INFO :
					       VIRTIO_GPU_CMD_CTX_CREATE) + (uint32_t)random() % 14;
		header->ctx_id = 40 + (uint32_t)random() % 4;
		header->flags = (uint32_t)random() % 4;
		/* commands of a context that lives here are virglrenderer's to check, not ours */
		if (header->type == VIRTIO_GPU_CMD_SUBMIT_3D)
			words[6] = 0;
		if (!await(send(words, (size_t)random() % sizeof(words) + 1, NULL, 0)))
			silent++;
		CU_ASSERT_FATAL(silent == 0);
	}
	/* and it works on */
	draw(1000, 100000);
}

/* The last one: nothing of the render server is left. */
static void the_render_server_ends(void)
{
	pid_t pid = renderer.server.pid;

	CU_ASSERT_FATAL(pid > 0);
	renderer_stop(&renderer);
	CU_ASSERT(kill(-pid, 0) < 0 && errno == ESRCH);
}

SUITE_RUN("renderer",
	{ "three capsets are told, none of them empty", capsets_are_told },
	{ "OpenGL draws exact pixels", opengl_draws_exact_pixels },
	{ "a flush shows OpenGL on the console", a_flush_shows_opengl_on_the_console },
	{ "fences keep their order", fences_keep_their_order },
	{ "a closed gate holds OpenGL back", a_closed_gate_holds_opengl_back },
	{ "shared memory of a Vulkan context reaches the window", shared_memory_reaches_the_window },
	{ "a blob of guest memory needs that memory", guest_blob_needs_memory },
	{ "limits hold", limits_hold },
	{ "a killed render process costs its context only",
	  a_killed_render_process_costs_its_context_only },
	{ "random requests get answers", random_requests_get_answers },
	{ "the render server ends with the renderer", the_render_server_ends })
