// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/control.h"
#include "gpu/cursor.h"
#include "tests/unit/fake_guest.h"
#include "tests/unit/suite.h"

#define REQUEST		0x200000	/* where the driver puts its requests */
#define ANSWER		0x280000
#define PIXELS		0x300000

static struct fake_guest fake;
static struct fake_driver driver;
static struct queue queue;
static struct console console;
static struct gpu gpu;
static uint32_t *plane;
static union {
	struct virtio_gpu_ctrl_hdr header;
	struct virtio_gpu_resp_display_info display;
	struct virtio_gpu_resp_edid edid;
} answer;
static uint32_t answer_bytes;

static void resize(void *context, uint32_t width, uint32_t height, uint32_t stride)
{
	(void)context;
	(void)width;
	(void)height;
	(void)stride;
}

static void start(void)
{
	static const struct console_ops ops = { .resize = resize };
	struct gpu_setup setup = { .heads = 2, .width = 1280, .height = 800 };

	gpu_default_limits(&setup.limits, 64 << 20);
	setup.limits.resources = 100;
	setup.limits.backing_entries = 1000;
	setup.limits.total_entries = 1500;
	plane = calloc((size_t)CONSOLE_WIDTH_MAX * CONSOLE_HEIGHT_MAX, 4);
	fake_guest_create(&fake);
	fake_driver_create(&driver, &fake, &queue, 0, 64, true);
	console_create(&console, plane, &ops, NULL);
	console_watch(&console, true);
	gpu_create(&gpu, &fake.guest, &console, &setup);
}

static void stop(void)
{
	gpu_destroy(&gpu);
	console_destroy(&console);
	queue_destroy(&queue);
	fake_guest_destroy(&fake);
	free(plane);
}

/* Sends a request over the ring; the type of its answer, or 0 when it gave none. */
static uint32_t send(const void *request, size_t bytes)
{
	struct vring_used_elem elem;
	struct command *command;

	memset(&answer, 0, sizeof(answer));
	memset(fake.guest.base + ANSWER, 0, sizeof(answer));
	memcpy(fake.guest.base + REQUEST, request, bytes);
	fake_request(&driver, REQUEST, (uint32_t)bytes, ANSWER, sizeof(answer));
	while (command_pop(&queue, &command) == 1) {
		control_run(&gpu, command);
		command_finish(command);
	}
	CU_ASSERT_FATAL(fake_used(&driver, &elem));
	answer_bytes = elem.len;
	memcpy(&answer, fake.guest.base + ANSWER, sizeof(answer));
	return answer.header.type;
}

#define SEND(request)	send(&(request), sizeof(request))

static uint32_t create(uint32_t id, uint32_t width, uint32_t height)
{
	struct virtio_gpu_resource_create_2d request = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
		.resource_id = id,
		.format = VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
		.width = width,
		.height = height,
	};

	return SEND(request);
}

static uint32_t unref(uint32_t id)
{
	struct virtio_gpu_resource_unref request = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_UNREF, .resource_id = id,
	};

	return SEND(request);
}

/* Attaches @bytes of guest memory at PIXELS in pieces of @piece. */
static uint32_t attach(uint32_t id, uint32_t bytes, uint32_t piece)
{
	static struct {
		struct virtio_gpu_resource_attach_backing head;
		struct virtio_gpu_mem_entry entries[1200];
	} request;
	uint32_t count = (bytes + piece - 1) / piece;

	request.head = (struct virtio_gpu_resource_attach_backing){
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		.resource_id = id,
		.nr_entries = count,
	};
	/* backwards, so that no two can be joined */
	for (uint32_t i = 0; i < count; i++)
		request.entries[i] = (struct virtio_gpu_mem_entry){
			.addr = PIXELS + (uint64_t)(count - 1 - i) * piece, .length = piece,
		};
	return send(&request, sizeof(request.head) + count * sizeof(request.entries[0]));
}

static uint32_t detach(uint32_t id)
{
	struct virtio_gpu_resource_detach_backing request = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING, .resource_id = id,
	};

	return SEND(request);
}

static uint32_t transfer(uint32_t id, struct virtio_gpu_rect rect, uint64_t offset)
{
	struct virtio_gpu_transfer_to_host_2d request = {
		.hdr.type = VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
		.r = rect,
		.offset = offset,
		.resource_id = id,
	};

	return SEND(request);
}

static uint32_t flush(uint32_t id, struct virtio_gpu_rect rect)
{
	struct virtio_gpu_resource_flush request = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_FLUSH, .r = rect, .resource_id = id,
	};

	return SEND(request);
}

static uint32_t set_scanout(uint32_t head, uint32_t id, struct virtio_gpu_rect rect)
{
	struct virtio_gpu_set_scanout request = {
		.hdr.type = VIRTIO_GPU_CMD_SET_SCANOUT,
		.r = rect,
		.scanout_id = head,
		.resource_id = id,
	};

	return SEND(request);
}

static void test_display(void)
{
	struct virtio_gpu_ctrl_hdr info = { .type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO };
	struct virtio_gpu_cmd_get_edid edid = { .hdr.type = VIRTIO_GPU_CMD_GET_EDID, .scanout = 1 };

	start();
	CU_ASSERT_EQUAL(SEND(info), VIRTIO_GPU_RESP_OK_DISPLAY_INFO);
	CU_ASSERT_EQUAL(answer_bytes, sizeof(answer.display));
	CU_ASSERT_EQUAL(answer.display.pmodes[0].enabled, 1);
	CU_ASSERT_EQUAL(answer.display.pmodes[1].enabled, 1);
	CU_ASSERT_EQUAL(answer.display.pmodes[1].r.x, 1280);
	CU_ASSERT_EQUAL(answer.display.pmodes[2].enabled, 0);
	CU_ASSERT_EQUAL(answer.display.pmodes[0].r.height, 800);
	gpu_set_mode(&gpu, 1920, 1080);
	CU_ASSERT_EQUAL(SEND(info), VIRTIO_GPU_RESP_OK_DISPLAY_INFO);
	CU_ASSERT_EQUAL(answer.display.pmodes[0].r.width, 1920);
	CU_ASSERT_EQUAL(SEND(edid), VIRTIO_GPU_RESP_OK_EDID);
	CU_ASSERT_EQUAL(answer.edid.size, 256);
	CU_ASSERT_EQUAL(answer.edid.edid[54 + 2], 1920 & 0xff);
	edid.scanout = 2;
	CU_ASSERT_EQUAL(SEND(edid), VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID);
	stop();
}

static void test_fence(void)
{
	struct virtio_gpu_ctrl_hdr info = {
		.type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO,
		.flags = VIRTIO_GPU_FLAG_FENCE,
		.fence_id = 0x123456789,
		.ctx_id = 7,
	};

	start();
	SEND(info);
	CU_ASSERT_EQUAL(answer.header.flags, VIRTIO_GPU_FLAG_FENCE);
	CU_ASSERT_EQUAL(answer.header.fence_id, 0x123456789);
	CU_ASSERT_EQUAL(answer.header.ctx_id, 7);
	info.type = 0x999;	/* errors are fenced too */
	CU_ASSERT_EQUAL(SEND(info), VIRTIO_GPU_RESP_ERR_UNSPEC);
	CU_ASSERT_EQUAL(answer.header.fence_id, 0x123456789);
	info.flags = 0;
	SEND(info);
	CU_ASSERT_EQUAL(answer.header.fence_id, 0);
	stop();
}

static void test_create(void)
{
	struct virtio_gpu_resource_create_2d odd = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D, .resource_id = 9, .format = 5,
		.width = 1, .height = 1,
	};

	start();
	CU_ASSERT_EQUAL(create(1, 64, 64), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(create(1, 64, 64), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	CU_ASSERT_EQUAL(create(0, 64, 64), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	CU_ASSERT_EQUAL(create(2, 0, 64), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(create(2, 64, SURFACE_SIDE_MAX + 1), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(SEND(odd), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(unref(2), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	CU_ASSERT_EQUAL(unref(1), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(unref(1), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	CU_ASSERT_EQUAL(gpu.resources.bytes, 0);
	CU_ASSERT_EQUAL(gpu.resources.count, 0);
	stop();
}

static void test_limits(void)
{
	start();
	/* 64 MiB is what the vGPU has: 3840x2160 takes half of it */
	CU_ASSERT_EQUAL(create(1, 3840, 2160), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(create(2, 3840, 2160), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(create(3, 3840, 2160), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(create(3, 16384, 16384), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(unref(1), VIRTIO_GPU_RESP_OK_NODATA);
	for (uint32_t id = 100; id < 199; id++)
		CU_ASSERT_EQUAL(create(id, 1, 1), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(create(199, 1, 1), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	/* entries of one, and of all */
	CU_ASSERT_EQUAL(attach(100, 1001 * 4096, 4096), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(attach(100, 1000 * 4096, 4096), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(attach(101, 501 * 4096, 4096), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	CU_ASSERT_EQUAL(detach(100), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(attach(101, 501 * 4096, 4096), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(gpu.resources.entries, 501);
	gpu_reset(&gpu);
	CU_ASSERT_EQUAL(gpu.resources.entries, 0);
	CU_ASSERT_EQUAL(gpu.resources.bytes, 0);
	stop();
}

static void test_backing(void)
{
	struct virtio_gpu_resource_attach_backing lie = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		.resource_id = 1,
		.nr_entries = 1,
	};

	start();
	CU_ASSERT_EQUAL(attach(1, 4096, 4096), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	create(1, 32, 32);
	CU_ASSERT_EQUAL(detach(1), VIRTIO_GPU_RESP_ERR_UNSPEC);
	CU_ASSERT_EQUAL(transfer(1, (struct virtio_gpu_rect){ 0, 0, 1, 1 }, 0),
			VIRTIO_GPU_RESP_ERR_UNSPEC);
	CU_ASSERT_EQUAL(SEND(lie), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	lie.nr_entries = UINT32_MAX;
	CU_ASSERT_EQUAL(SEND(lie), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(attach(1, 4096, 4096), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(attach(1, 4096, 4096), VIRTIO_GPU_RESP_ERR_UNSPEC);
	CU_ASSERT_EQUAL(detach(1), VIRTIO_GPU_RESP_OK_NODATA);
	stop();
}

static void test_picture(void)
{
	enum { WIDTH = 100, HEIGHT = 60, BYTES = WIDTH * HEIGHT * 4, PIECE = 1000 };
	struct virtio_gpu_rect all = { 0, 0, WIDTH, HEIGHT };
	uint32_t count = BYTES / PIECE;

	start();
	create(1, WIDTH, HEIGHT);
	attach(1, BYTES, PIECE);
	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
		uint32_t at = i * 4, piece = at / PIECE;

		memcpy(fake.guest.base + PIXELS + (count - 1 - piece) * PIECE + at % PIECE, &i, 4);
	}
	CU_ASSERT_EQUAL(set_scanout(0, 1, all), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(transfer(1, (struct virtio_gpu_rect){ 10, 20, 30, 5 },
				 (20 * WIDTH + 10) * 4), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(flush(1, all), VIRTIO_GPU_RESP_OK_NODATA);
	for (uint32_t y = 0; y < HEIGHT; y++) {
		for (uint32_t x = 0; x < WIDTH; x++) {
			bool in = x >= 10 && x < 40 && y >= 20 && y < 25;

			CU_ASSERT_EQUAL_FATAL(plane[y * WIDTH + x], in ? y * WIDTH + x : 0);
		}
	}
	CU_ASSERT_EQUAL(transfer(1, all, 0), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(flush(1, all), VIRTIO_GPU_RESP_OK_NODATA);
	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
		CU_ASSERT_EQUAL_FATAL(plane[i], i);
	/* destroyed while it is shown */
	CU_ASSERT_EQUAL(unref(1), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(plane[5], 0);
	stop();
}

static void test_edges(void)
{
	struct virtio_gpu_rect all = { 0, 0, 32, 32 };

	start();
	create(1, 32, 32);
	attach(1, 4096, 4096);
	CU_ASSERT_EQUAL(transfer(1, all, 0), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(transfer(1, all, 1), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(transfer(1, all, UINT64_MAX), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(transfer(1, (struct virtio_gpu_rect){ 0, 0, 1, 32 }, UINT64_MAX - 127),
			VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(transfer(1, (struct virtio_gpu_rect){ 1, 0, 32, 1 }, 0),
			VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(transfer(1, (struct virtio_gpu_rect){ UINT32_MAX, 0, 2, 1 }, 0),
			VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(flush(1, (struct virtio_gpu_rect){ 0, 0, 32, 33 }),
			VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(flush(2, all), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	CU_ASSERT_EQUAL(set_scanout(0, 2, all), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	CU_ASSERT_EQUAL(set_scanout(2, 1, all), VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID);
	CU_ASSERT_EQUAL(set_scanout(0, 1, (struct virtio_gpu_rect){ 0, 0, 0, 32 }),
			VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(set_scanout(0, 1, (struct virtio_gpu_rect){ 16, 0, 17, 32 }),
			VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	CU_ASSERT_EQUAL(set_scanout(1, 1, all), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(set_scanout(1, 0, all), VIRTIO_GPU_RESP_OK_NODATA);
	stop();
}

static void test_memlock(void)
{
	struct virtio_gpu_rect all = { 0, 0, 32, 32 };

	start();
	create(1, 32, 32);
	attach(1, 4096, 4096);
	fake.hole = PIXELS;
	fake.hole_bytes = 4096;
	fake.hole_error = -ENOMEM;
	CU_ASSERT_EQUAL(transfer(1, all, 0), VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY);
	fake.hole_error = -EFAULT;
	CU_ASSERT_EQUAL(transfer(1, all, 0), VIRTIO_GPU_RESP_ERR_UNSPEC);
	fake.hole_bytes = 0;
	CU_ASSERT_EQUAL(transfer(1, all, 0), VIRTIO_GPU_RESP_OK_NODATA);
	stop();
}

static void test_short(void)
{
	static const uint32_t types[] = {
		VIRTIO_GPU_CMD_GET_EDID, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
		VIRTIO_GPU_CMD_RESOURCE_UNREF, VIRTIO_GPU_CMD_SET_SCANOUT,
		VIRTIO_GPU_CMD_RESOURCE_FLUSH, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
		VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
	};
	struct virtio_gpu_ctrl_hdr header = { .flags = VIRTIO_GPU_FLAG_FENCE };
	struct vring_used_elem elem;
	struct command *command;

	start();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		header.type = types[i];
		CU_ASSERT_EQUAL(SEND(header), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	}
	CU_ASSERT_EQUAL(send(&header, 3), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	/* no room, or too little, for the answer */
	fake_request(&driver, REQUEST, sizeof(header), 0, 0);
	CU_ASSERT_EQUAL_FATAL(command_pop(&queue, &command), 1);
	control_run(&gpu, command);
	CU_ASSERT_EQUAL(command_finish(command), 0);
	CU_ASSERT_FATAL(fake_used(&driver, &elem));
	CU_ASSERT_EQUAL(elem.len, 0);
	fake_request(&driver, REQUEST, sizeof(header), ANSWER, 8);
	CU_ASSERT_EQUAL_FATAL(command_pop(&queue, &command), 1);
	control_run(&gpu, command);
	CU_ASSERT_EQUAL(command_finish(command), 0);
	CU_ASSERT_FATAL(fake_used(&driver, &elem));
	CU_ASSERT_EQUAL(elem.len, 8);
	/* a request in memory that is not there, an answer likewise */
	fake_request(&driver, FAKE_BYTES, sizeof(header), ANSWER, 24);
	CU_ASSERT_EQUAL(command_pop(&queue, &command), 0);
	CU_ASSERT_FATAL(fake_used(&driver, &elem));
	fake_request(&driver, REQUEST, sizeof(header), UINT64_MAX - 3, 24);
	CU_ASSERT_EQUAL_FATAL(command_pop(&queue, &command), 1);
	CU_ASSERT_EQUAL(command_finish(command), 0);
	CU_ASSERT_FATAL(fake_used(&driver, &elem));
	CU_ASSERT_EQUAL(elem.len, 0);
	/* more than any request needs */
	fake_request(&driver, REQUEST, COMMAND_BYTES_MAX + 1, ANSWER, 24);
	CU_ASSERT_EQUAL(command_pop(&queue, &command), 0);
	CU_ASSERT_FALSE(queue.broken);
	stop();
}

static uint32_t cursor(const struct virtio_gpu_update_cursor *request, size_t bytes)
{
	struct command *command;
	uint32_t result;

	memcpy(fake.guest.base + REQUEST, request, bytes);
	fake_request(&driver, REQUEST, (uint32_t)bytes, 0, 0);
	CU_ASSERT_EQUAL_FATAL(command_pop(&queue, &command), 1);
	cursor_run(&gpu, command);
	result = command->answer;
	command_finish(command);
	return result;
}

static void test_cursor(void)
{
	struct virtio_gpu_update_cursor request = {
		.hdr.type = VIRTIO_GPU_CMD_UPDATE_CURSOR,
		.pos = { .scanout_id = 0, .x = 10, .y = 10 },
		.resource_id = 5,
	};

	start();
	CU_ASSERT_EQUAL(cursor(&request, sizeof(request)), VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID);
	create(5, 64, 64);
	CU_ASSERT_EQUAL(cursor(&request, sizeof(request)), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT(console.cursor.visible);
	CU_ASSERT_EQUAL(console.cursor.x, 10);
	request.hdr.type = VIRTIO_GPU_CMD_MOVE_CURSOR;
	request.pos.x = (uint32_t)-3;
	CU_ASSERT_EQUAL(cursor(&request, sizeof(request)), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_EQUAL(console.cursor.x, -3);
	/* the cursor outlives its resource */
	unref(5);
	CU_ASSERT(console.cursor.visible);
	request.pos.scanout_id = 2;
	CU_ASSERT_EQUAL(cursor(&request, sizeof(request)), VIRTIO_GPU_RESP_ERR_INVALID_SCANOUT_ID);
	CU_ASSERT_EQUAL(cursor(&request, 24), VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER);
	request.pos.scanout_id = 0;
	request.hdr.type = VIRTIO_GPU_CMD_UPDATE_CURSOR;
	request.resource_id = 0;
	CU_ASSERT_EQUAL(cursor(&request, sizeof(request)), VIRTIO_GPU_RESP_OK_NODATA);
	CU_ASSERT_FALSE(console.cursor.visible);
	stop();
}

SUITE_RUN("control",
	  { "display info and EDID tell the mode of every head", test_display },
	  { "a fence comes back with the answer, also of an error", test_fence },
	  { "resources are made and destroyed once", test_create },
	  { "every limit is OUT_OF_MEMORY and is given back", test_limits },
	  { "backing is attached once and only as long as the request", test_backing },
	  { "what a guest draws is what the console shows, piece by piece", test_picture },
	  { "rectangles and offsets outside are refused", test_edges },
	  { "memory that cannot be pinned is OUT_OF_MEMORY, missing memory UNSPEC", test_memlock },
	  { "short requests and short answers do no harm", test_short },
	  { "the cursor is set, moved and hidden", test_cursor })
