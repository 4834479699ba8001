// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfio/window.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

int window_open(struct window_mapping *mapping, int fd, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t length = (bytes + page - 1) & ~(page - 1);
	uint8_t *room, *start;

	memset(mapping, 0, sizeof(*mapping));
	if (length == 0 || length > SIZE_MAX - WINDOW_ALIGNMENT)
		return -EINVAL;
	/* room for the next aligned address, then the mapping over it and the rest given back */
	room = mmap(NULL, length + WINDOW_ALIGNMENT, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return -errno;
	start = (uint8_t *)(((uintptr_t)room + WINDOW_ALIGNMENT - 1) & ~(WINDOW_ALIGNMENT - 1));
	if (mmap(start, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	    MAP_FAILED) {
		int error = errno;

		munmap(room, length + WINDOW_ALIGNMENT);
		return -error;
	}
	if (start > room)
		munmap(room, (size_t)(start - room));
	if (start < room + WINDOW_ALIGNMENT)
		munmap(start + length, (size_t)(room + WINDOW_ALIGNMENT - start));
	mapping->addr = start;
	mapping->length = length;
	return 0;
}

void window_close(struct window_mapping *mapping)
{
	if (mapping->length)
		munmap(mapping->addr, mapping->length);
	memset(mapping, 0, sizeof(*mapping));
}

static int window_ioctl(struct session *session, unsigned long request,
			const struct window_mapping *mapping)
{
	struct octavo_window window = {
		.generation = session->generation,
		.offset = mapping->offset,
		.length = mapping->length,
	};
	int ret;

	if (request == OCTAVO_WINDOW_MAP) {
		window.caching = mapping->caching;
		window.addr = (uintptr_t)mapping->addr;
	}
	do
		ret = ioctl(session->fd, request, &window);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

int window_show(struct session *session, struct window_mapping *mapping, uint64_t offset,
		uint32_t caching)
{
	int ret;

	if (mapping->shown || mapping->length == 0 || offset % (uint64_t)sysconf(_SC_PAGESIZE))
		return -EINVAL;
	mapping->offset = offset;
	mapping->caching = caching;
	ret = window_ioctl(session, OCTAVO_WINDOW_MAP, mapping);
	mapping->shown = ret == 0;
	return ret;
}

int window_hide(struct session *session, struct window_mapping *mapping)
{
	int ret;

	if (!mapping->shown)
		return -EINVAL;
	ret = window_ioctl(session, OCTAVO_WINDOW_UNMAP, mapping);
	mapping->shown = false;
	return ret;
}

int window_show_again(struct session *session, struct window_mapping *mapping)
{
	return mapping->shown ? window_ioctl(session, OCTAVO_WINDOW_MAP, mapping) : -EINVAL;
}
