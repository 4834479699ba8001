// SPDX-License-Identifier: LGPL-2.1-or-later
#include "vfio/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int session_ioctl(const struct session *session, unsigned long request, void *argument)
{
	int ret;

	do
		ret = ioctl(session->fd, request, argument);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

static int session_pin(void *context, uint64_t iova, uint64_t length, bool write)
{
	struct session *session = context;
	struct octavo_guest_range range = {
		.generation = session->generation,
		.flags = write ? OCTAVO_GUEST_WRITE : 0,
		.iova = iova,
		.length = length,
	};

	return session_ioctl(session, OCTAVO_GUEST_PIN, &range);
}

static void session_drop(void *context, uint64_t iova, uint64_t length)
{
	struct session *session = context;
	struct octavo_guest_range range = {
		.generation = session->generation,
		.iova = iova,
		.length = length,
	};

	session_ioctl(session, OCTAVO_GUEST_DROP, &range);
}

static uint64_t session_errors(void *context)
{
	const struct session *session = context;

	return __atomic_load_n(&session->status->guest_errors, __ATOMIC_ACQUIRE);
}

static const struct guest_ops session_guest_ops = {
	.pin = session_pin,
	.drop = session_drop,
	.errors = session_errors,
};

static int session_map(struct session *session)
{
	void *window, *status, *console;

	window = mmap(NULL, OCTAVO_GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		      session->fd, 0);
	if (window == MAP_FAILED)
		return -errno;
	session->guest = (struct guest){
		.base = window,
		.bytes = OCTAVO_GUEST_BYTES,
		.ops = &session_guest_ops,
		.context = session,
	};
	/* a dump of the worker must not hold its guest's memory, nor fault it all in */
	madvise(window, OCTAVO_GUEST_BYTES, MADV_DONTDUMP);

	status = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, session->fd,
		      (off_t)OCTAVO_MMAP_STATUS);
	if (status == MAP_FAILED)
		return -errno;
	session->status = status;

	console = mmap(NULL, OCTAVO_CONSOLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, session->fd,
		       (off_t)OCTAVO_MMAP_CONSOLE);
	if (console == MAP_FAILED)
		return -errno;
	session->console = console;
	return 0;
}

int session_init(struct session *session, int fd)
{
	int ret;

	memset(session, 0, sizeof(*session));
	session->fd = fd;
	ret = session_ioctl(session, OCTAVO_GET_ABI, NULL);
	if (ret < 0)
		return ret;
	if (ret != OCTAVO_ABI_VERSION)
		return -EPROTO;
	ret = fcntl(fd, F_SETFL, O_NONBLOCK);
	if (ret < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	ret = session_info(session, &session->info);
	if (!ret)
		ret = session_map(session);
	if (ret)
		session_finish(session);
	return ret;
}

void session_finish(struct session *session)
{
	if (session->guest.base)
		munmap(session->guest.base, OCTAVO_GUEST_BYTES);
	if (session->status)
		munmap((void *)(uintptr_t)session->status, (size_t)sysconf(_SC_PAGESIZE));
	if (session->console)
		munmap(session->console, OCTAVO_CONSOLE_BYTES);
	memset(session, 0, sizeof(*session));
	session->fd = -1;
}

int session_info(struct session *session, struct octavo_session_info *info)
{
	memset(info, 0, sizeof(*info));
	return session_ioctl(session, OCTAVO_SESSION_INFO, info);
}

int session_offer(struct session *session, uint64_t features, uint32_t scanouts, uint32_t capsets)
{
	struct octavo_offer offer = {
		.features = features, .num_scanouts = scanouts, .num_capsets = capsets,
	};

	return session_ioctl(session, OCTAVO_OFFER, &offer);
}

int session_ready(struct session *session)
{
	return session_ioctl(session, OCTAVO_READY, NULL);
}

int session_reset_ack(struct session *session, uint32_t generation)
{
	struct octavo_generation argument = { .generation = generation };
	int ret = session_ioctl(session, OCTAVO_RESET_ACK, &argument);

	if (!ret)
		session->generation = generation;
	return ret;
}

int session_fail(struct session *session)
{
	struct octavo_generation argument = { .generation = session->generation };

	return session_ioctl(session, OCTAVO_FAIL, &argument);
}

int session_config_event(struct session *session, uint32_t events)
{
	struct octavo_config_event argument = {
		.generation = session->generation, .events = events,
	};

	return session_ioctl(session, OCTAVO_CONFIG_EVENT, &argument);
}

int session_queue_get(struct session *session, uint32_t index, struct octavo_queue *queue)
{
	*queue = (struct octavo_queue){ .index = index, .generation = session->generation };
	return session_ioctl(session, OCTAVO_QUEUE_GET, queue);
}

int session_kick_set(struct session *session, uint32_t index, int eventfd)
{
	struct octavo_kick kick = { .index = index, .fd = eventfd };

	return session_ioctl(session, OCTAVO_KICK_SET, &kick);
}

int session_interrupt(struct session *session, uint32_t index)
{
	struct octavo_interrupt interrupt = {
		.generation = session->generation, .index = index,
	};

	return session_ioctl(session, OCTAVO_INTERRUPT, &interrupt);
}

int session_console_set(struct session *session, uint32_t width, uint32_t height, uint32_t stride)
{
	struct octavo_console console = {
		.generation = session->generation,
		.width = width,
		.height = height,
		.stride = stride,
	};

	return session_ioctl(session, OCTAVO_CONSOLE_SET, &console);
}

int session_events(struct session *session, struct octavo_event *events, unsigned int max)
{
	ssize_t bytes;

	do
		bytes = read(session->fd, events, max * sizeof(*events));
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return -errno;
	return (int)((size_t)bytes / sizeof(*events));
}
