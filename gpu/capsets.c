// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/capsets.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPSET_BYTES_MAX	65536u

/* The file: count, then each set's numbers and data. */
struct capset_head {
	uint32_t id;
	uint32_t version;
	uint32_t bytes;
};

bool capsets_known(const struct capsets *capsets)
{
	return __atomic_load_n(&capsets->known, __ATOMIC_ACQUIRE);
}

void capsets_publish(struct capsets *capsets)
{
	__atomic_store_n(&capsets->known, true, __ATOMIC_RELEASE);
}

static uint32_t capsets_info(const struct capsets *capsets, struct command *command)
{
	const struct virtio_gpu_get_capset_info *request = command->request;
	struct virtio_gpu_resp_capset_info *info;
	uint32_t index;

	if (command->request_bytes < sizeof(*request))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	index = le32toh(request->capset_index);
	if (index >= capsets->count)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	info = command_response(command, sizeof(*info));
	if (!info)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	info->capset_id = htole32(capsets->sets[index].id);
	info->capset_max_version = htole32(capsets->sets[index].version);
	info->capset_max_size = htole32(capsets->sets[index].bytes);
	return VIRTIO_GPU_RESP_OK_CAPSET_INFO;
}

static uint32_t capsets_data(const struct capsets *capsets, struct command *command)
{
	const struct virtio_gpu_get_capset *request = command->request;
	struct virtio_gpu_resp_capset *response;
	const struct capset *set = NULL;

	if (command->request_bytes < sizeof(*request))
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	for (unsigned int i = 0; i < capsets->count; i++) {
		if (capsets->sets[i].id == le32toh(request->capset_id))
			set = &capsets->sets[i];
	}
	if (!set || !set->data || le32toh(request->capset_version) > set->version)
		return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
	response = command_response(command, sizeof(*response) + set->bytes);
	if (!response)
		return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	memcpy(response->capset_data, set->data, set->bytes);
	return VIRTIO_GPU_RESP_OK_CAPSET;
}

void capsets_answer(const struct capsets *capsets, struct command *command)
{
	command->answer = command->header.type == VIRTIO_GPU_CMD_GET_CAPSET ?
				  capsets_data(capsets, command) : capsets_info(capsets, command);
}

static int write_all(int fd, const void *bytes, size_t length)
{
	ssize_t written = write(fd, bytes, length);

	if (written < 0)
		return -errno;
	return (size_t)written == length ? 0 : -ENOSPC;
}

int capsets_save(const struct capsets *capsets)
{
	uint32_t count = capsets->count;
	int fd = memfd_create("octavo-capsets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ret;

	if (fd < 0)
		return -errno;
	ret = write_all(fd, &count, sizeof(count));
	for (unsigned int i = 0; i < count && !ret; i++) {
		const struct capset *set = &capsets->sets[i];
		struct capset_head head = { set->id, set->version, set->data ? set->bytes : 0 };

		ret = write_all(fd, &head, sizeof(head));
		if (!ret && head.bytes)
			ret = write_all(fd, set->data, head.bytes);
	}
	if (!ret && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		ret = -errno;
	if (ret) {
		close(fd);
		return ret;
	}
	return fd;
}

static bool read_all(int fd, void *bytes, size_t length, off_t *at)
{
	ssize_t got = pread(fd, bytes, length, *at);

	*at += (off_t)length;
	return got >= 0 && (size_t)got == length;
}

int capsets_load(struct capsets *capsets, int fd)
{
	struct capsets loaded = { .known = false };
	uint32_t count;
	off_t at = 0;

	if (!read_all(fd, &count, sizeof(count), &at) || count > CAPSETS_MAX)
		return -EINVAL;
	for (; loaded.count < count; loaded.count++) {
		struct capset *set = &loaded.sets[loaded.count];
		struct capset_head head;

		if (!read_all(fd, &head, sizeof(head), &at) || head.bytes > CAPSET_BYTES_MAX)
			goto fail;
		*set = (struct capset){ head.id, head.version, head.bytes, malloc(head.bytes + 1) };
		if (!set->data || !read_all(fd, set->data, head.bytes, &at)) {
			free(set->data);
			goto fail;
		}
	}
	*capsets = loaded;
	capsets_publish(capsets);
	return 0;

fail:
	while (loaded.count--)
		free(loaded.sets[loaded.count].data);
	return -EINVAL;
}
