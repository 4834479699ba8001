// SPDX-License-Identifier: LGPL-2.1-or-later
/* host.c - parents, vGPUs and control events */
#include "hostile.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HOST_VRAM	(512ull << 20)

int type_write(const char *type, const char *file, const char *text)
{
	char path[640];
	glob_t found;
	ssize_t done;
	int fd, error;

	snprintf(path, sizeof(path), "%s/*-%s/%s", host.types, type, file);
	if (glob(path, 0, NULL, &found)) {
		errno = ENOENT;
		return -1;
	}
	fd = open(found.gl_pathv[0], O_WRONLY);
	globfree(&found);
	if (fd < 0)
		return -1;
	done = write(fd, text, strlen(text));
	error = errno;
	close(fd);
	errno = error;
	return done < 0 ? -1 : 0;
}

int type_available(const char *type)
{
	char path[640], text[32] = "";
	glob_t found;
	int fd;

	snprintf(path, sizeof(path), "%s/*-%s/available_instances", host.types, type);
	if (glob(path, 0, NULL, &found))
		return -1;
	fd = open(found.gl_pathv[0], O_RDONLY);
	globfree(&found);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	return text[0] ? atoi(text) : -1;
}

void uuid_text(const uint8_t uuid[16], char text[37])
{
	snprintf(text, 37,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 uuid[0], uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8],
		 uuid[9], uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]);
}

void uuid_make(unsigned int n, uint8_t uuid[16])
{
	static const uint8_t base[16] = { 0x0c, 0x7a, 0x40, 0x05, 0x11, 0x22, 0x43, 0x44,
					  0x85, 0x66, 0x77, 0x88, 0x99, 0xaa };

	memcpy(uuid, base, 16);
	uuid[14] = (uint8_t)(n >> 8);
	uuid[15] = (uint8_t)n;
}

int vgpu_create(const char *type, const uint8_t uuid[16])
{
	char text[37];

	uuid_text(uuid, text);
	return type_write(type, "create", text);
}

int vgpu_remove(const uint8_t uuid[16])
{
	char text[37], path[128];
	int fd, ret, error;

	uuid_text(uuid, text);
	snprintf(path, sizeof(path), "/sys/bus/mdev/devices/%s/remove", text);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -1;
	ret = write(fd, "1", 1) == 1 ? 0 : -1;
	error = errno;
	close(fd);
	errno = error;
	return ret;
}

int vgpu_info(const uint8_t uuid[16], struct octavo_vgpu *out)
{
	struct octavo_vgpu_list entry = { .index = 0 };

	for (; !ioctl(host.control, OCTAVO_VGPU_LIST, &entry); entry.index++) {
		if (memcmp(entry.vgpu.uuid, uuid, 16))
			continue;
		*out = entry.vgpu;
		return 0;
	}
	return -1;
}

bool control_wait(uint32_t type, const uint8_t uuid[16], struct octavo_control_event *event, int ms)
{
	struct pollfd p = { .fd = host.control, .events = POLLIN };

	while (poll(&p, 1, ms) == 1) {
		if (read(host.control, event, sizeof(*event)) != sizeof(*event))
			return false;
		if (event->type == type && (!uuid || !memcmp(event->uuid, uuid, 16)))
			return true;
	}
	return false;
}

void control_drain(void)
{
	struct pollfd p = { .fd = host.control, .events = POLLIN };
	struct octavo_control_event event;

	while (poll(&p, 1, 0) == 1)
		if (read(host.control, &event, sizeof(event)) < 0)
			return;
}

void host_setup(const char *parent)
{
	unsigned int domain, bus, slot, function;

	snprintf(host.parent, sizeof(host.parent), "%s", parent);
	snprintf(host.types, sizeof(host.types), "/sys/bus/pci/devices/%s/mdev_supported_types",
		 parent);
	if (sscanf(parent, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		give_up("'%s' is no PCI address", parent);
	host.control = open("/dev/octavo", O_RDWR | O_CLOEXEC);
	if (host.control < 0)
		give_up("cannot open /dev/octavo; is the module loaded and octavod stopped?");
	host.wish = (struct octavo_parent) {
		.domain = domain,
		.bus = (uint8_t)bus,
		.devfn = (uint8_t)(slot << 3 | function),
		.heads = 1,
		.vram_bytes = HOST_VRAM,
	};
	if (ioctl(host.control, OCTAVO_PARENT_ADD, &host.wish))
		give_up("cannot add %s as a parent", parent);
	if (host.wish.state != OCTAVO_PARENT_REGISTERED)
		give_up("%s is not registered: state %u, error %u", parent, host.wish.state,
			host.wish.error);
}

void host_teardown(void)
{
	struct octavo_parent wish = host.wish;

	wish.flags = 0;
	check_errno(ioctl(host.control, OCTAVO_PARENT_REMOVE, &wish), 0, "the parent goes");
	check(access(host.types, F_OK) < 0, "and its types with it");
	close(host.control);
}
