// SPDX-License-Identifier: GPL-2.0-only
/*
 * session.c - the session fd, a worker's side of the interface
 *
 * Each session has an inode, hence an address space, of its own: taking pages out of its mappings
 * reaches no other session.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <uapi/linux/virtio_config.h>
#include <uapi/linux/virtio_gpu.h>
#include <uapi/linux/virtio_ring.h>

#include "vgpu.h"

/* The transport features that the registers and the worker's queues can do. */
#define TRANSPORT_FEATURES	(BIT_ULL(VIRTIO_RING_F_INDIRECT_DESC) | \
				 BIT_ULL(VIRTIO_RING_F_EVENT_IDX) | \
				 BIT_ULL(VIRTIO_F_VERSION_1) | BIT_ULL(VIRTIO_F_ACCESS_PLATFORM))
#define TRANSPORT_MASK		GENMASK_ULL(VIRTIO_TRANSPORT_F_END - 1, VIRTIO_TRANSPORT_F_START)

int epoch_check(const struct octavo_epoch *epoch, const struct octavo_session *session,
		u32 generation)
{
	if (epoch->session != session)
		return -ENODEV;
	if (!epoch->live || epoch->generation != generation)
		return -ESTALE;
	return 0;
}

/* As epoch_check(), for what vgpu->lock protects. */
static int session_check(struct octavo_session *session, u32 generation)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;

	lockdep_assert_held(&vgpu->lock);
	return vgpu->acked && vgpu->generation == generation ? 0 : -ESTALE;
}

/* ------------------------------------------------------------------------------------------------
 * ioctls; those below are called with vgpu->lock held and the session known to be current
 */

static int session_info(struct octavo_session *session, struct octavo_session_info *info)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;

	vgpu_describe(vgpu, &info->vgpu);
	info->console_bytes = OCTAVO_CONSOLE_BYTES;
	info->flags = READ_ONCE(vgpu->console.watched) ? OCTAVO_SESSION_CONSOLE : 0;
	info->events_read = vgpu->regs.events_read;
	info->offered_features = vgpu->offered ? vgpu->offered_features : 0;
	info->num_capsets = vgpu->num_capsets;
	return 0;
}

static int session_offer(struct octavo_session *session, const struct octavo_offer *offer)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;
	u64 transport = offer->features & TRANSPORT_MASK;

	if (!(offer->features & BIT_ULL(VIRTIO_F_VERSION_1)) || (transport & ~TRANSPORT_FEATURES))
		return -EINVAL;
	if (!offer->num_scanouts || offer->num_scanouts > vgpu->heads)
		return -EINVAL;
	if ((vgpu->regs.status & VIRTIO_CONFIG_S_FEATURES_OK) &&
	    (offer->features != vgpu->offered_features ||
	     offer->num_scanouts != vgpu->num_scanouts || offer->num_capsets != vgpu->num_capsets))
		return -EBUSY;
	vgpu->offered = true;
	vgpu->offered_features = offer->features;
	vgpu->num_scanouts = offer->num_scanouts;
	vgpu->num_capsets = offer->num_capsets;
	vgpu->regs.config_generation++;
	return 0;
}

static int session_ready(struct octavo_session *session)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;

	if (!vgpu->offered)
		return -EINVAL;
	WRITE_ONCE(vgpu->ready, true);
	wake_up(&vgpu->ready_wait);
	vgpu_tell_state(vgpu);
	return 0;
}

static int session_acknowledge(struct octavo_session *session,
			       const struct octavo_generation *generation)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;

	if (generation->reserved)
		return -EINVAL;
	/* An orphaned generation belongs to a worker that is dead. */
	if (vgpu->generation != generation->generation || vgpu->orphaned)
		return -ESTALE;
	vgpu_acknowledge(vgpu);
	return 0;
}

static int session_fail(struct octavo_session *session, const struct octavo_generation *generation)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;
	int ret;

	if (generation->reserved)
		return -EINVAL;
	ret = session_check(session, generation->generation);
	if (ret)
		return ret;
	vgpu->regs.status |= VIRTIO_CONFIG_S_NEEDS_RESET;
	vgpu->regs.config_generation++;
	irq_config(vgpu);
	vgpu_tell_state(vgpu);
	return 0;
}

static int session_config_event(struct octavo_session *session,
				const struct octavo_config_event *event)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;
	int ret;

	if (!event->events || (event->events & ~VIRTIO_GPU_EVENT_DISPLAY))
		return -EINVAL;
	ret = session_check(session, event->generation);
	if (ret)
		return ret;
	vgpu->regs.events_read |= event->events;
	vgpu->regs.config_generation++;
	irq_config(vgpu);
	return 0;
}

static int session_queue(struct octavo_session *session, struct octavo_queue *queue)
{
	struct octavo_registers *regs = &session->vgpu->regs;
	int ret;

	if (queue->index >= OCTAVO_QUEUES)
		return -EINVAL;
	ret = session_check(session, queue->generation);
	if (ret)
		return ret;
	queue->size = regs->queue[queue->index].size;
	queue->enabled = regs->queue[queue->index].enabled;
	queue->desc = regs->queue[queue->index].desc;
	queue->driver = regs->queue[queue->index].driver;
	queue->device = regs->queue[queue->index].device;
	return 0;
}

union session_data {
	struct octavo_session_info info;
	struct octavo_offer offer;
	struct octavo_generation generation;
	struct octavo_config_event config;
	struct octavo_queue queue;
	struct octavo_kick kick;
	struct octavo_interrupt interrupt;
	struct octavo_window window;
	struct octavo_guest_range range;
	struct octavo_console console;
};

static int session_ioctl_locked(struct octavo_session *session, unsigned int cmd,
				union session_data *data)
{
	if (!session->open_id || session->vgpu->session != session)
		return -ENODEV;
	switch (cmd) {
	case OCTAVO_SESSION_INFO:
		return session_info(session, &data->info);
	case OCTAVO_OFFER:
		return session_offer(session, &data->offer);
	case OCTAVO_READY:
		return session_ready(session);
	case OCTAVO_RESET_ACK:
		return session_acknowledge(session, &data->generation);
	case OCTAVO_FAIL:
		return session_fail(session, &data->generation);
	case OCTAVO_CONFIG_EVENT:
		return session_config_event(session, &data->config);
	case OCTAVO_QUEUE_GET:
		return session_queue(session, &data->queue);
	case OCTAVO_KICK_SET:
		return irq_kick_set(session->vgpu, &data->kick);
	default:
		return -ENOTTY;
	}
}

/* Those that have a lock of their own and must not wait for registers or a reset in progress. */
static int session_ioctl_unlocked(struct octavo_session *session, unsigned int cmd,
				  union session_data *data)
{
	struct octavo_vgpu_device *vgpu = session->vgpu;

	switch (cmd) {
	case OCTAVO_INTERRUPT:
		return irq_queue(vgpu, session, &data->interrupt);
	case OCTAVO_WINDOW_MAP:
		return window_map(vgpu, session, &data->window);
	case OCTAVO_WINDOW_UNMAP:
		return window_unmap(vgpu, session, &data->window);
	case OCTAVO_GUEST_PIN:
		return guest_pin(vgpu, session, &data->range);
	case OCTAVO_GUEST_DROP:
		return guest_drop(vgpu, session, &data->range);
	case OCTAVO_CONSOLE_SET:
		return console_set(vgpu, session, &data->console);
	default:
		return -ENOIOCTLCMD;
	}
}

static long session_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct octavo_session *session = file->private_data;
	void __user *user = (void __user *)arg;
	union session_data data = {};
	int ret;

	switch (cmd) {
	case OCTAVO_GET_ABI:
		return OCTAVO_ABI_VERSION;
	case OCTAVO_SESSION_INFO:
	case OCTAVO_OFFER:
	case OCTAVO_READY:
	case OCTAVO_RESET_ACK:
	case OCTAVO_FAIL:
	case OCTAVO_CONFIG_EVENT:
	case OCTAVO_QUEUE_GET:
	case OCTAVO_KICK_SET:
	case OCTAVO_INTERRUPT:
	case OCTAVO_WINDOW_MAP:
	case OCTAVO_WINDOW_UNMAP:
	case OCTAVO_GUEST_PIN:
	case OCTAVO_GUEST_DROP:
	case OCTAVO_CONSOLE_SET:
		break;
	default:
		return -ENOTTY;
	}
	if ((_IOC_DIR(cmd) & _IOC_WRITE) && copy_from_user(&data, user, _IOC_SIZE(cmd)))
		return -EFAULT;
	WRITE_ONCE(session->pid, (u32)task_tgid_nr(current));

	ret = session_ioctl_unlocked(session, cmd, &data);
	if (ret == -ENOIOCTLCMD) {
		mutex_lock(&session->vgpu->lock);
		ret = session_ioctl_locked(session, cmd, &data);
		mutex_unlock(&session->vgpu->lock);
	}
	if (!ret && (_IOC_DIR(cmd) & _IOC_READ) && copy_to_user(user, &data, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	return ret;
}

/* ------------------------------------------------------------------------------------------------
 * The file
 */

static ssize_t session_read(struct file *file, char __user *buf, size_t count, loff_t *ppos)
{
	struct octavo_session *session = file->private_data;

	return events_read(session->vgpu, session, buf, count, file->f_flags & O_NONBLOCK);
}

static __poll_t session_poll(struct file *file, struct poll_table_struct *table)
{
	struct octavo_session *session = file->private_data;

	return events_poll(session->vgpu, session, file, table);
}

static vm_fault_t session_status_fault(struct vm_fault *vmf)
{
	struct octavo_session *session = vmf->vma->vm_private_data;

	get_page(session->status_page);
	vmf->page = session->status_page;
	return 0;
}

static const struct vm_operations_struct session_status_vm_ops = {
	.fault = session_status_fault,
};

static int session_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct octavo_session *session = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 length = vma->vm_end - vma->vm_start;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vma->vm_private_data = session;

	if (offset < OCTAVO_GUEST_BYTES) {
		if (length > OCTAVO_GUEST_BYTES - offset)
			return -EINVAL;
		vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
		vma->vm_ops = &guest_vm_ops;
		return 0;
	}
	if (offset == OCTAVO_MMAP_STATUS) {
		if (length != PAGE_SIZE)
			return -EINVAL;
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY, VM_MAYWRITE);
		vma->vm_ops = &session_status_vm_ops;
		return 0;
	}
	if (offset < OCTAVO_MMAP_CONSOLE || offset >= OCTAVO_MMAP_CONSOLE + OCTAVO_CONSOLE_BYTES ||
	    length > OCTAVO_MMAP_CONSOLE + OCTAVO_CONSOLE_BYTES - offset)
		return -EINVAL;
	return console_mmap(session->vgpu, session, vma);
}

static void session_free(struct octavo_session *session)
{
	if (session->status_page)
		__free_page(session->status_page);
	if (session->scratch)
		__free_page(session->scratch);
	kfree(session);
}

static int session_release(struct inode *inode, struct file *file)
{
	struct octavo_session *session = file->private_data;
	struct octavo_vgpu_device *vgpu = session->vgpu;

	vgpu_session_detach(vgpu, session);
	session_free(session);
	vgpu_put(vgpu);
	return 0;
}

static const struct file_operations session_fops = {
	.owner = THIS_MODULE,
	.release = session_release,
	.read = session_read,
	.poll = session_poll,
	.unlocked_ioctl = session_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = session_mmap,
};

static struct octavo_session *session_alloc(struct octavo_vgpu_device *vgpu)
{
	struct octavo_session *session;

	session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);
	if (!session)
		return NULL;
	session->vgpu = vgpu;
	session->pid = (u32)task_tgid_nr(current);
	session->scratch = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	session->status_page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!session->scratch || !session->status_page) {
		session_free(session);
		return NULL;
	}
	session->status = page_address(session->status_page);
	return session;
}

int session_open(const struct octavo_session_open *request)
{
	struct octavo_session *session;
	struct octavo_vgpu_device *vgpu;
	struct file *file;
	int fd, ret;

	vgpu = vgpu_find(request->uuid);
	if (!vgpu)
		return -ENOENT;
	session = session_alloc(vgpu);
	if (!session) {
		ret = -ENOMEM;
		goto err_vgpu;
	}
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		ret = fd;
		goto err_session;
	}
	file = anon_inode_create_getfile("[octavo-session]", &session_fops, session, O_RDWR, NULL);
	if (IS_ERR(file)) {
		ret = (int)PTR_ERR(file);
		goto err_fd;
	}
	/* from here on the file's release frees session and reference */
	session->file = file;
	mutex_lock(&vgpu->lock);
	if (!request->session || vgpu->open_id != request->session) {
		ret = -ESTALE;
	} else if (vgpu->session) {
		ret = -EBUSY;
	} else {
		session->open_id = vgpu->open_id;
		vgpu_session_attach(vgpu, session);
		ret = 0;
	}
	mutex_unlock(&vgpu->lock);
	if (ret) {
		fput(file);
		put_unused_fd(fd);
		return ret;
	}
	fd_install(fd, file);
	return fd;

err_fd:
	put_unused_fd(fd);
err_session:
	session_free(session);
err_vgpu:
	vgpu_put(vgpu);
	return ret;
}
