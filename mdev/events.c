// SPDX-License-Identifier: GPL-2.0-only
/*
 * events.c - what the worker reads from its session fd
 *
 * Events are state: one bit and the latest value per kind, so a guest can neither grow nor overflow
 * anything. The order of reading is fixed here, RESET first and CLOSED last.
 */
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "vgpu.h"

static const u8 events_order[] = {
	OCTAVO_EVENT_RESET, OCTAVO_EVENT_MODE, OCTAVO_EVENT_CONSOLE, OCTAVO_EVENT_UNMAPPED,
	OCTAVO_EVENT_QUEUE, OCTAVO_EVENT_STATUS, OCTAVO_EVENT_CONFIG, OCTAVO_EVENT_WINDOW_LOST,
	OCTAVO_EVENT_KICK, OCTAVO_EVENT_CLOSED,
};

void events_init(struct octavo_vgpu_device *vgpu)
{
	spin_lock_init(&vgpu->events.lock);
	init_waitqueue_head(&vgpu->events.wait);
}

/*
 * A new generation, or (@announce_reset false) a new reader in an old one that it may not serve.
 * Only what does not belong to a generation stays.
 */
void events_restart(struct octavo_vgpu_device *vgpu, u32 generation, bool announce_reset)
{
	struct octavo_events *e = &vgpu->events;

	spin_lock(&e->lock);
	e->pending &= BIT(OCTAVO_EVENT_MODE) | BIT(OCTAVO_EVENT_CONSOLE);
	if (announce_reset)
		e->pending |= BIT(OCTAVO_EVENT_RESET);
	e->queues = 0;
	e->config = 0;
	/* those for a worker that died under its guest are its successor's */
	if (e->generation != generation)
		WRITE_ONCE(e->kicks, 0);
	e->generation = generation;
	e->closed = false;
	spin_unlock(&e->lock);
	wake_up_interruptible(&e->wait);
}

static void range_merge(bool pending, u64 *start, u64 *last, u64 new_start, u64 length)
{
	u64 new_last = length ? new_start + length - 1 : new_start;

	*start = pending ? min(*start, new_start) : new_start;
	*last = pending ? max(*last, new_last) : new_last;
}

void events_post(struct octavo_vgpu_device *vgpu, u32 type, u64 value, u64 start, u64 length)
{
	struct octavo_events *e = &vgpu->events;
	bool pending;

	spin_lock(&e->lock);
	pending = e->pending & BIT(type);
	switch (type) {
	case OCTAVO_EVENT_STATUS:
		e->status = (u32)value;
		break;
	case OCTAVO_EVENT_QUEUE:
		e->queues |= BIT(value);
		break;
	case OCTAVO_EVENT_CONFIG:
		e->config |= (u32)value;
		break;
	case OCTAVO_EVENT_MODE:
		e->width = (u32)start;
		e->height = (u32)length;
		break;
	case OCTAVO_EVENT_UNMAPPED:
		range_merge(pending, &e->unmapped_start, &e->unmapped_last, start, length);
		break;
	case OCTAVO_EVENT_WINDOW_LOST:
		range_merge(pending, &e->lost_start, &e->lost_last, start, length);
		break;
	}
	e->pending |= BIT(type);
	spin_unlock(&e->lock);
	wake_up_interruptible(&e->wait);
}

/* A kick that came without vgpu->lock. Callable from any context, with interrupts off as well. */
void events_kick(struct octavo_vgpu_device *vgpu, u32 queue)
{
	set_bit(queue, &vgpu->events.kicks);
	wake_up_interruptible(&vgpu->events.wait);
}

static u32 events_pending(const struct octavo_events *e)
{
	return READ_ONCE(e->pending) | (READ_ONCE(e->kicks) ? BIT(OCTAVO_EVENT_KICK) : 0);
}

/* Takes the next event; false when there is none. */
static bool events_take(struct octavo_events *e, struct octavo_event *event)
{
	unsigned int i;
	u32 type = 0, pending;

	memset(event, 0, sizeof(*event));
	spin_lock(&e->lock);
	pending = events_pending(e);
	for (i = 0; i < ARRAY_SIZE(events_order) && !type; i++)
		if (pending & BIT(events_order[i]))
			type = events_order[i];
	event->type = type;
	event->generation = e->generation;
	e->pending &= ~BIT(type);
	switch (type) {
	case OCTAVO_EVENT_STATUS:
		event->value = e->status;
		break;
	case OCTAVO_EVENT_QUEUE:
		event->value = (u64)__ffs(e->queues);
		e->queues &= e->queues - 1;
		if (e->queues)
			e->pending |= BIT(type);
		break;
	case OCTAVO_EVENT_CONFIG:
		event->value = e->config;
		e->config = 0;
		break;
	case OCTAVO_EVENT_MODE:
		event->start = e->width;
		event->length = e->height;
		break;
	case OCTAVO_EVENT_CONSOLE:
		event->value = 1;
		break;
	case OCTAVO_EVENT_UNMAPPED:
		event->start = e->unmapped_start;
		event->length = e->unmapped_last - e->unmapped_start + 1;
		break;
	case OCTAVO_EVENT_WINDOW_LOST:
		event->start = e->lost_start;
		event->length = e->lost_last - e->lost_start + 1;
		break;
	case OCTAVO_EVENT_KICK:
		event->value = (u64)__ffs(READ_ONCE(e->kicks));
		/* a full barrier: the reader looks at the ring after it, the guest wrote it before */
		test_and_clear_bit((long)event->value, &e->kicks);
		break;
	case OCTAVO_EVENT_CLOSED:
		e->closed = true;
		break;
	}
	spin_unlock(&e->lock);
	return type;
}

/* Puts back what could not be delivered, unless something newer of its kind has come. */
static void events_untake(struct octavo_vgpu_device *vgpu, const struct octavo_event *event)
{
	struct octavo_events *e = &vgpu->events;
	bool stale, newer;

	if (event->type == OCTAVO_EVENT_KICK) {
		events_kick(vgpu, (u32)event->value);
		return;
	}
	spin_lock(&e->lock);
	stale = event->generation != e->generation;
	newer = e->pending & BIT(event->type);
	if (event->type == OCTAVO_EVENT_CLOSED)
		e->closed = false;
	spin_unlock(&e->lock);
	if (stale && event->type != OCTAVO_EVENT_MODE && event->type != OCTAVO_EVENT_CONSOLE)
		return;
	if (newer && (event->type == OCTAVO_EVENT_STATUS || event->type == OCTAVO_EVENT_MODE))
		return;
	events_post(vgpu, event->type, event->value, event->start, event->length);
}

/* A session that outlived its open has had CLOSED, from whichever state replaced its own. */
static bool events_over(struct octavo_vgpu_device *vgpu, struct octavo_session *session)
{
	return READ_ONCE(vgpu->session) != session || READ_ONCE(vgpu->events.closed);
}

ssize_t events_read(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		    char __user *buf, size_t count, bool nonblock)
{
	struct octavo_events *e = &vgpu->events;
	struct octavo_event event;
	ssize_t done = 0;

	if (count < sizeof(event))
		return -EINVAL;
	while (count - (size_t)done >= sizeof(event)) {
		if (events_over(vgpu, session))
			break;
		if (!events_take(e, &event)) {
			if (done)
				break;
			if (nonblock)
				return -EAGAIN;
			if (wait_event_interruptible(e->wait, events_pending(e) ||
						     events_over(vgpu, session)))
				return -ERESTARTSYS;
			continue;
		}
		if (copy_to_user(buf + done, &event, sizeof(event))) {
			events_untake(vgpu, &event);
			return done ? done : -EFAULT;
		}
		done += (ssize_t)sizeof(event);
	}
	return done;
}

__poll_t events_poll(struct octavo_vgpu_device *vgpu, struct octavo_session *session,
		     struct file *file, struct poll_table_struct *table)
{
	poll_wait(file, &vgpu->events.wait, table);
	if (events_over(vgpu, session))
		return EPOLLIN | EPOLLHUP;
	return events_pending(&vgpu->events) ? EPOLLIN | EPOLLRDNORM : 0;
}
