// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vq_bar2 PCI-ADDRESS OTHER-ADDRESS: requests, backing and blobs that lie in a BAR2, the device's own
 * and another one's (vq.h)
 *
 * Each must give an error, of the request or of the device, and the device must serve after a reset.
 * Prints a line for each; status 0: all is as it must be.
 */
#include <linux/virtio_gpu.h>
#include <stdio.h>
#include <string.h>

#include "tests/guest-programs/vq.h"

static unsigned long kicks;
static int wrong;

static uint32_t send(uint64_t physical, size_t bytes)
{
	const struct virtio_gpu_ctrl_hdr *answer = vq_answer.bytes;
	uint64_t spent_ns;

	return vq_send(physical, (uint32_t)bytes, &kicks, &spent_ns) ? answer->type : 0;
}

static uint32_t request(const void *bytes, size_t length)
{
	memcpy(vq_request.bytes, bytes, length);
	return send(vq_request.physical, length);
}

static void expect_error(const char *what, uint32_t type)
{
	bool good = !type || type >= VIRTIO_GPU_RESP_ERR_UNSPEC;

	printf("%s: %s (0x%x)\n", what, !type ? "the device asks for a reset" :
	       good ? "an error" : "ACCEPTED", type);
	wrong += !good;
}

static void begin(void)
{
	struct virtio_gpu_ctrl_hdr hello = { .type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO };

	vq_start(true);
	if (request(&hello, sizeof(hello)) != VIRTIO_GPU_RESP_OK_DISPLAY_INFO)
		vq_die("the device does not serve after a reset");
}

static void attack(const char *whose, uint64_t bar)
{
	struct virtio_gpu_resource_create_2d create = {
		{ .type = VIRTIO_GPU_CMD_RESOURCE_CREATE_2D }, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, 32, 32,
	};
	struct {
		struct virtio_gpu_resource_attach_backing attach;
		struct virtio_gpu_mem_entry entry;
	} backing = {
		{ { .type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING }, 1, 1 }, { bar, VQ_PAGE, 0 },
	};
	struct virtio_gpu_transfer_to_host_2d transfer = {
		{ .type = VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D }, { 0, 0, 32, 32 }, 0, 1, 0,
	};
	struct {
		struct virtio_gpu_resource_create_blob create;
		struct virtio_gpu_mem_entry entry;
	} blob = {
		{ .hdr = { .type = VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB }, .resource_id = 2,
		  .blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST, .nr_entries = 1, .size = VQ_PAGE },
		{ bar, VQ_PAGE, 0 },
	};
	char what[80];
	uint32_t type;

	begin();
	if (request(&create, sizeof(create)) != VIRTIO_GPU_RESP_OK_NODATA)
		vq_die("a plain resource is refused");
	type = request(&backing, sizeof(backing));
	if (type == VIRTIO_GPU_RESP_OK_NODATA)
		type = request(&transfer, sizeof(transfer));
	snprintf(what, sizeof(what), "backing in %s BAR2", whose);
	expect_error(what, type);

	begin();
	type = request(&blob, sizeof(blob));
	snprintf(what, sizeof(what), "a blob in %s BAR2", whose);
	expect_error(what, type);

	begin();
	snprintf(what, sizeof(what), "a request in %s BAR2", whose);
	expect_error(what, send(bar, sizeof(create)));
	begin();
	vq_stop();
}

int main(int argc, char **argv)
{
	uint64_t bytes;

	if (argc != 3)
		vq_die("it takes PCI-ADDRESS OTHER-ADDRESS");
	vq_map(argv[1]);
	attack("its own", vq_bar(argv[1], 2, &bytes));
	attack("the other's", vq_bar(argv[2], 2, &bytes));
	return wrong != 0;
}
