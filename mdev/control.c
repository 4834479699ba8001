// SPDX-License-Identifier: GPL-2.0-only
/*
 * control.c - /dev/octavo, octavod's side of the interface
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu.h"

/* More than this waiting means that octavod does not read; it is told and lists again. */
#define CONTROL_EVENTS_MAX	256

struct control_record {
	struct list_head node;
	struct octavo_control_event event;
};

static struct {
	spinlock_t lock;
	bool present;
	bool lost;
	unsigned int count;
	struct list_head records;
	wait_queue_head_t wait;
} control = {
	.lock = __SPIN_LOCK_UNLOCKED(control.lock),
	.records = LIST_HEAD_INIT(control.records),
	.wait = __WAIT_QUEUE_HEAD_INITIALIZER(control.wait),
};

bool control_present(void)
{
	return READ_ONCE(control.present);
}

/* A guest can fail and reset its device at will: its changes of state must not fill the list. */
static bool control_told(const struct octavo_control_event *event)
{
	const struct control_record *record;

	if (event->type != OCTAVO_CONTROL_STATE)
		return false;
	list_for_each_entry(record, &control.records, node)
		if (record->event.type == OCTAVO_CONTROL_STATE &&
		    !memcmp(record->event.uuid, event->uuid, sizeof(event->uuid)))
			return true;
	return false;
}

static void control_append(const struct octavo_control_event *event)
{
	struct control_record *record;

	if (!control_present())
		return;
	record = kmalloc(sizeof(*record), GFP_KERNEL);
	if (record)
		record->event = *event;

	spin_lock(&control.lock);
	if (!control.present || control_told(event)) {
		spin_unlock(&control.lock);
		kfree(record);
		return;
	}
	if (!record || control.count >= CONTROL_EVENTS_MAX) {
		control.lost = true;
		spin_unlock(&control.lock);
		kfree(record);
	} else {
		list_add_tail(&record->node, &control.records);
		control.count++;
		spin_unlock(&control.lock);
	}
	wake_up_interruptible(&control.wait);
}

void control_post(u32 type, struct octavo_vgpu_device *vgpu, u64 session, u32 pid)
{
	struct octavo_control_event event = {
		.type = type,
		.session = session,
		.pid = pid,
		.domain = vgpu->gpu->domain,
		.bus = vgpu->gpu->bus,
		.devfn = vgpu->gpu->devfn,
	};

	uuid_from_guid(event.uuid, &vgpu->uuid);
	control_append(&event);
}

void control_post_parent(const struct octavo_gpu *gpu)
{
	struct octavo_control_event event = {
		.type = OCTAVO_CONTROL_PARENT,
		.domain = gpu->domain,
		.bus = gpu->bus,
		.devfn = gpu->devfn,
	};

	control_append(&event);
}

/* A holder that starts late hears of every open that nobody serves. */
static void control_catch_up(void)
{
	struct octavo_vgpu_device *vgpu;

	mutex_lock(&vgpus_lock);
	list_for_each_entry(vgpu, &vgpus, node) {
		mutex_lock(&vgpu->lock);
		if (vgpu->open_id && !vgpu->session)
			control_post(vgpu->waiting ? OCTAVO_CONTROL_OPENED :
				     OCTAVO_CONTROL_WORKER_GONE, vgpu, vgpu->open_id,
				     vgpu->opener_pid);
		mutex_unlock(&vgpu->lock);
	}
	mutex_unlock(&vgpus_lock);
}

static int control_open(struct inode *inode, struct file *file)
{
	bool busy;

	spin_lock(&control.lock);
	busy = control.present;
	control.present = true;
	spin_unlock(&control.lock);
	if (busy)
		return -EBUSY;
	control_catch_up();
	return nonseekable_open(inode, file);
}

static int control_release(struct inode *inode, struct file *file)
{
	struct control_record *record, *next;
	LIST_HEAD(records);

	spin_lock(&control.lock);
	control.present = false;
	control.lost = false;
	control.count = 0;
	list_splice_init(&control.records, &records);
	spin_unlock(&control.lock);
	list_for_each_entry_safe(record, next, &records, node)
		kfree(record);
	return 0;
}

/* Takes the oldest record; a loss with nothing left to carry the news waits for the next one. */
static struct control_record *control_take(void)
{
	struct control_record *record;

	spin_lock(&control.lock);
	record = list_first_entry_or_null(&control.records, struct control_record, node);
	if (record) {
		list_del(&record->node);
		control.count--;
		record->event.lost = control.lost;
		control.lost = false;
	}
	spin_unlock(&control.lock);
	return record;
}

static void control_untake(struct control_record *record)
{
	spin_lock(&control.lock);
	control.lost |= record->event.lost;
	list_add(&record->node, &control.records);
	control.count++;
	spin_unlock(&control.lock);
}

static bool control_pending(void)
{
	return !list_empty_careful(&control.records);
}

static ssize_t control_read(struct file *file, char __user *buf, size_t count, loff_t *ppos)
{
	struct control_record *record;
	ssize_t done = 0;

	if (count < sizeof(record->event))
		return -EINVAL;
	while (count - (size_t)done >= sizeof(record->event)) {
		record = control_take();
		if (!record) {
			if (done)
				break;
			if (file->f_flags & O_NONBLOCK)
				return -EAGAIN;
			if (wait_event_interruptible(control.wait, control_pending()))
				return -ERESTARTSYS;
			continue;
		}
		if (copy_to_user(buf + done, &record->event, sizeof(record->event))) {
			control_untake(record);
			return done ? done : -EFAULT;
		}
		kfree(record);
		done += (ssize_t)sizeof(record->event);
	}
	return done;
}

static __poll_t control_poll(struct file *file, struct poll_table_struct *table)
{
	poll_wait(file, &control.wait, table);
	return control_pending() ? EPOLLIN | EPOLLRDNORM : 0;
}

static int vgpu_list(struct octavo_vgpu_list *entry)
{
	struct octavo_vgpu_device *vgpu;
	u32 index = 0;
	int ret = -ENOENT;

	if (entry->reserved)
		return -EINVAL;
	mutex_lock(&vgpus_lock);
	list_for_each_entry(vgpu, &vgpus, node) {
		if (index++ != entry->index)
			continue;
		mutex_lock(&vgpu->lock);
		vgpu_describe(vgpu, &entry->vgpu);
		mutex_unlock(&vgpu->lock);
		ret = 0;
		break;
	}
	mutex_unlock(&vgpus_lock);
	return ret;
}

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	union {
		struct octavo_parent parent;
		struct octavo_parent_list parents;
		struct octavo_vgpu_list vgpus;
		struct octavo_vgpu_mode mode;
		struct octavo_session_open open;
		struct octavo_session_refuse refuse;
	} data;
	int ret;

	switch (cmd) {
	case OCTAVO_GET_ABI:
		return OCTAVO_ABI_VERSION;
	case OCTAVO_PARENT_ADD:
	case OCTAVO_PARENT_REMOVE:
	case OCTAVO_PARENT_LIST:
	case OCTAVO_VGPU_LIST:
	case OCTAVO_VGPU_SET_MODE:
	case OCTAVO_SESSION_OPEN:
	case OCTAVO_SESSION_REFUSE:
		break;
	default:
		return -ENOTTY;
	}
	memset(&data, 0, sizeof(data));
	if (copy_from_user(&data, user, _IOC_SIZE(cmd)))
		return -EFAULT;

	switch (cmd) {
	case OCTAVO_PARENT_ADD:
		ret = parent_add(&data.parent);
		break;
	case OCTAVO_PARENT_REMOVE:
		ret = parent_remove(&data.parent);
		break;
	case OCTAVO_PARENT_LIST:
		ret = parent_list(&data.parents);
		break;
	case OCTAVO_VGPU_LIST:
		ret = vgpu_list(&data.vgpus);
		break;
	case OCTAVO_VGPU_SET_MODE:
		ret = vgpu_set_mode(&data.mode);
		break;
	case OCTAVO_SESSION_OPEN:
		ret = session_open(&data.open);
		break;
	default:
		ret = vgpu_refuse(&data.refuse);
		break;
	}
	if (ret >= 0 && (_IOC_DIR(cmd) & _IOC_READ) && copy_to_user(user, &data, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	return ret;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = control_open,
	.release = control_release,
	.read = control_read,
	.poll = control_poll,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice control_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "octavo",
	.fops = &control_fops,
	.mode = 0600,
};

int control_init(void)
{
	return misc_register(&control_device);
}

void control_exit(void)
{
	misc_deregister(&control_device);
}
