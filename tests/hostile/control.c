// SPDX-License-Identifier: LGPL-2.1-or-later
/* control.c - /dev/octavo misused; vGPUs created and removed */
#include "hostile.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static void test_parents(void)
{
	struct octavo_parent wish = host.wish;
	struct octavo_parent_list list = { .index = 0 };
	unsigned int n;

	wish.heads = 0;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), EINVAL, "no heads");
	wish.heads = OCTAVO_HEADS_MAX + 1;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), EINVAL, "too many heads");
	wish = host.wish;
	wish.vram_bytes = (128ull << 20) - 1;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), EINVAL, "too little VRAM");
	wish.vram_bytes = UINT64_MAX;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), EINVAL, "all VRAM there is");
	wish = host.wish;
	wish.flags = 1;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), EINVAL, "unknown flag");
	wish.flags = 0;
	wish.reserved = 1;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), EINVAL, "reserved field");
	check_errno(ioctl(host.control, OCTAVO_PARENT_REMOVE, &wish), EINVAL, "reserved field of REMOVE");
	wish = host.wish;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), 0, "the same parent again");
	check(wish.state == OCTAVO_PARENT_REGISTERED, "and it stays registered");

	memset(&wish, 0, sizeof(wish));
	wish.domain = 0x7abc;
	wish.heads = 1;
	wish.vram_bytes = 512ull << 20;
	check_errno(ioctl(host.control, OCTAVO_PARENT_REMOVE, &wish), ENOENT, "remove of none");
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), 0, "a parent that is not there");
	check(wish.state == OCTAVO_PARENT_WAITING, "waits");
	for (n = 0; n < OCTAVO_PARENTS_MAX; n++) {
		wish.bus = (uint8_t)(n + 1);
		if (ioctl(host.control, OCTAVO_PARENT_ADD, &wish))
			break;
	}
	check(errno == E2BIG, "parents past the maximum are E2BIG (after %u)", n);
	for (; ; n--) {
		wish.bus = (uint8_t)n;
		if (ioctl(host.control, OCTAVO_PARENT_REMOVE, &wish) || !n)
			break;
	}
	check(n == 0, "and go again");
	while (!ioctl(host.control, OCTAVO_PARENT_LIST, &list))
		list.index++;
	check(errno == ENOENT && list.index >= 1, "the list ends with ENOENT");
	list.index = UINT32_MAX;
	check_errno(ioctl(host.control, OCTAVO_PARENT_LIST, &list), ENOENT, "index far out");
	list.reserved = 1;
	check_errno(ioctl(host.control, OCTAVO_PARENT_LIST, &list), EINVAL, "reserved field of LIST");
}

void test_control(void)
{
	struct octavo_control_event event;
	struct octavo_session_open open_request = { .session = 1 };
	struct octavo_session_refuse refuse = { .session = 1, .reason = "no" };
	struct octavo_vgpu_mode mode = { .width = 800, .height = 600 };
	struct octavo_vgpu_list list = { .index = 1000 };
	static const unsigned long requests[] = {
		OCTAVO_PARENT_ADD, OCTAVO_PARENT_REMOVE, OCTAVO_PARENT_LIST, OCTAVO_VGPU_LIST,
		OCTAVO_VGPU_SET_MODE, OCTAVO_SESSION_OPEN, OCTAVO_SESSION_REFUSE,
	};
	unsigned int i;

	check(ioctl(host.control, OCTAVO_GET_ABI) == OCTAVO_ABI_VERSION, "ABI version");
	check_errno(open("/dev/octavo", O_RDWR), EBUSY, "a second holder");
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		check_errno(ioctl(host.control, requests[i], NULL), EFAULT, "request %#lx of NULL",
			    requests[i]);
		check_errno(ioctl(host.control, requests[i], (void *)-4096L), EFAULT,
			    "request %#lx of a kernel address", requests[i]);
		check_errno(ioctl(host.control, requests[i] ^ (1ul << 16), &list), ENOTTY,
			    "request %#lx of another size", requests[i]);
	}
	check_errno(ioctl(host.control, OCTAVO_SESSION_INFO, &list), ENOTTY, "a session request");
	check_errno(ioctl(host.control, VFIO_GET_API_VERSION), ENOTTY, "a VFIO request");
	check_errno(ioctl(host.control, 0xffffffff, &list), ENOTTY, "request -1");
	check_errno(ioctl(host.control, OCTAVO_SESSION_OPEN, &open_request), ENOENT, "unknown vGPU");
	check_errno(ioctl(host.control, OCTAVO_SESSION_REFUSE, &refuse), ENOENT, "refuse unknown");
	refuse.reason[0] = '\0';
	check_errno(ioctl(host.control, OCTAVO_SESSION_REFUSE, &refuse), EINVAL, "empty reason");
	memset(refuse.reason, 'x', sizeof(refuse.reason));
	check_errno(ioctl(host.control, OCTAVO_SESSION_REFUSE, &refuse), EINVAL, "endless reason");
	memcpy(refuse.reason, "a\nb", 4);
	check_errno(ioctl(host.control, OCTAVO_SESSION_REFUSE, &refuse), EINVAL, "control characters");
	check_errno(ioctl(host.control, OCTAVO_VGPU_SET_MODE, &mode), ENOENT, "mode of none");
	mode.width = 801;
	check_errno(ioctl(host.control, OCTAVO_VGPU_SET_MODE, &mode), EINVAL, "odd width");
	mode.width = OCTAVO_MODE_WIDTH_MAX + 8;
	check_errno(ioctl(host.control, OCTAVO_VGPU_SET_MODE, &mode), EINVAL, "too wide");
	mode.width = 800;
	mode.height = OCTAVO_MODE_MIN - 1;
	check_errno(ioctl(host.control, OCTAVO_VGPU_SET_MODE, &mode), EINVAL, "too low");
	check_errno(ioctl(host.control, OCTAVO_VGPU_LIST, &list), ENOENT, "list past the end");

	control_drain();
	check_errno(read(host.control, &event, sizeof(event) - 1), EINVAL, "short buffer");
	fcntl(host.control, F_SETFL, O_NONBLOCK);
	check_errno(read(host.control, &event, sizeof(event)), EAGAIN, "nothing to read");
	fcntl(host.control, F_SETFL, 0);
	check_errno(write(host.control, &event, sizeof(event)), EINVAL, "write");
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, host.control, 0) == MAP_FAILED, "mmap");
	test_parents();
}

static void test_capacity(void)
{
	static const char *const types[] = { "octavo_1_2", "octavo_1_4", "octavo_1_8" };
	static const int per_gpu[] = { 2, 4, 8 };
	uint8_t uuid[16];
	int t, n;

	for (t = 0; t < 3; t++) {
		check(type_available(types[t]) == per_gpu[t], "%s: %d available", types[t],
		      per_gpu[t]);
		for (n = 0; n < per_gpu[t]; n++) {
			uuid_make((unsigned int)n, uuid);
			if (vgpu_create(types[t], uuid))
				break;
		}
		check(n == per_gpu[t], "%s: %d of %d created", types[t], n, per_gpu[t]);
		uuid_make(100, uuid);
		check_errno(vgpu_create(types[t], uuid), ENOSPC, "%s: one more", types[t]);
		check(!type_available("octavo_1_8"), "nothing left for others");
		while (n--) {
			uuid_make((unsigned int)n, uuid);
			vgpu_remove(uuid);
		}
	}
	/* a mix */
	uuid_make(1, uuid);
	check_errno(vgpu_create("octavo_1_2", uuid), 0, "1/2");
	uuid_make(2, uuid);
	check_errno(vgpu_create("octavo_1_4", uuid), 0, "+ 1/4");
	uuid_make(3, uuid);
	check_errno(vgpu_create("octavo_1_8", uuid), 0, "+ 1/8");
	check(type_available("octavo_1_2") == 0 && type_available("octavo_1_4") == 0 &&
	      type_available("octavo_1_8") == 1, "leave one 1/8");
	uuid_make(4, uuid);
	check_errno(vgpu_create("octavo_1_4", uuid), ENOSPC, "no 1/4 fits");
	check_errno(vgpu_create("octavo_1_8", uuid), 0, "1/8 fits");
	for (n = 1; n <= 4; n++) {
		uuid_make((unsigned int)n, uuid);
		check_errno(vgpu_remove(uuid), 0, "%d removed", n);
	}
	check(type_available("octavo_1_2") == 2 && type_available("octavo_1_4") == 4 &&
	      type_available("octavo_1_8") == 8, "all is free again");
}

static void *create_thread(void *data)
{
	return (void *)(intptr_t)(vgpu_create("octavo_1_4", data) ? errno : 0);
}

void test_create(void)
{
	struct octavo_control_event event;
	struct octavo_parent wish = host.wish;
	struct octavo_vgpu info;
	pthread_t threads[3];
	uint8_t uuid[16];
	int won = 0, lost = 0, i;

	test_capacity();

	control_drain();
	uuid_make(7, uuid);
	check_errno(vgpu_create("octavo_1_4", uuid), 0, "create");
	check(control_wait(OCTAVO_CONTROL_CREATED, uuid, &event, 1000), "CREATED comes");
	check_errno(vgpu_create("octavo_1_8", uuid), EEXIST, "the same UUID");
	check(!vgpu_info(uuid, &info) && info.eighths == 2 && info.state == OCTAVO_VGPU_IDLE &&
	      info.vram_bytes == host.wish.vram_bytes / 4 && info.window_bytes == 128ull << 20,
	      "listed as it was made");
	wish.heads = 2;
	check_errno(ioctl(host.control, OCTAVO_PARENT_ADD, &wish), EBUSY, "heads under a vGPU");
	check_errno(ioctl(host.control, OCTAVO_PARENT_REMOVE, &host.wish), EBUSY,
		    "parent under a vGPU");
	check_errno(vgpu_remove(uuid), 0, "remove");
	check(control_wait(OCTAVO_CONTROL_REMOVED, uuid, &event, 1000), "REMOVED comes");
	check(vgpu_info(uuid, &info), "and it is gone");
	check(type_write("octavo_1_4", "create", "not-a-uuid") < 0, "no UUID");
	check_errno(type_write("octavo_1_4", "create", "zzzzzzzz-1122-4344-8566-778899aabbcc"),
		    EINVAL, "no hexadecimal");

	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, create_thread, uuid);
	for (i = 0; i < 3; i++) {
		void *result;

		pthread_join(threads[i], &result);
		won += !result;
		lost += (intptr_t)result == EEXIST;
	}
	check(won == 1 && lost == 2, "three creates of one UUID: one wins");
	check_errno(vgpu_remove(uuid), 0, "it goes");
	check(type_available("octavo_1_8") == 8, "nothing leaked");

	/* an overflow of control events is told */
	control_drain();
	for (i = 0; i < 200; i++)
		if (vgpu_create("octavo_1_8", uuid) || vgpu_remove(uuid))
			break;
	check(i == 200, "200 creates and removes");
	check(read(host.control, &event, sizeof(event)) == sizeof(event) && event.lost,
	      "a reader that was late is told that events are lost");
	check(read(host.control, &event, sizeof(event)) == sizeof(event) && !event.lost,
	      "once");
	control_drain();
}
