// SPDX-License-Identifier: GPL-2.0-only
/*
 * vgpu.c - the life of one vGPU: create, open, reset, close, remove
 */
#define pr_fmt(fmt) "octavo: " fmt

#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <uapi/linux/virtio_config.h>

#include "trace.h"
#include "vgpu.h"

static unsigned int open_timeout_ms = 2000;
module_param(open_timeout_ms, uint, 0644);
MODULE_PARM_DESC(open_timeout_ms,
		 "How long the open of a vGPU waits for its worker; it holds locks of VFIO and QEMU meanwhile (default 2000)");

DEFINE_MUTEX(vgpus_lock);
LIST_HEAD(vgpus);

static atomic64_t opens = ATOMIC64_INIT(0);

/* Finds by the text order of the UUID and takes a reference; NULL when there is none. */
struct octavo_vgpu_device *vgpu_find(const u8 uuid[16])
{
	struct octavo_vgpu_device *vgpu;
	u8 own[16];

	mutex_lock(&vgpus_lock);
	list_for_each_entry(vgpu, &vgpus, node) {
		uuid_from_guid(own, &vgpu->uuid);
		if (memcmp(own, uuid, sizeof(own)))
			continue;
		get_device(&vgpu->vdev.device);
		mutex_unlock(&vgpus_lock);
		return vgpu;
	}
	mutex_unlock(&vgpus_lock);
	return NULL;
}

void vgpu_put(struct octavo_vgpu_device *vgpu)
{
	vfio_put_device(&vgpu->vdev);
}

static u32 vgpu_state(const struct octavo_vgpu_device *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	if (!vgpu->open_id)
		return OCTAVO_VGPU_IDLE;
	if (!vgpu->session || !vgpu->ready)
		return OCTAVO_VGPU_UNSERVED;
	if (vgpu->orphaned || (vgpu->regs.status & VIRTIO_CONFIG_S_NEEDS_RESET))
		return OCTAVO_VGPU_NEEDS_RESET;
	return OCTAVO_VGPU_OPEN;
}

/* To be called after whatever may have changed the state of an open. */
void vgpu_tell_state(struct octavo_vgpu_device *vgpu)
{
	u32 state = vgpu_state(vgpu);

	if (state == vgpu->told_state)
		return;
	vgpu->told_state = state;
	control_post(OCTAVO_CONTROL_STATE, vgpu, vgpu->open_id, 0);
}

void vgpu_describe(struct octavo_vgpu_device *vgpu, struct octavo_vgpu *out)
{
	lockdep_assert_held(&vgpu->lock);
	*out = (struct octavo_vgpu) {
		.domain = vgpu->gpu->domain,
		.bus = vgpu->gpu->bus,
		.devfn = vgpu->gpu->devfn,
		.heads = vgpu->heads,
		.eighths = vgpu->eighths,
		.state = vgpu_state(vgpu),
		.session = vgpu->open_id,
		.opener_pid = vgpu->opener_pid,
		.worker_pid = vgpu->open_id && vgpu->session ?
			      READ_ONCE(vgpu->session->pid) : 0,
		.vram_bytes = vgpu->vram_bytes,
		.window_bytes = vgpu->window_bytes,
		.width = vgpu->width,
		.height = vgpu->height,
		.generation = vgpu->generation,
		.status = vgpu->regs.status,
		.driver_features = vgpu->regs.driver_features,
		.counters = {
			.registers = (u64)atomic64_read(&vgpu->counters.registers),
			.kicks = (u64)atomic64_read(&vgpu->counters.kicks),
			.interrupts = (u64)atomic64_read(&vgpu->counters.interrupts),
			.resets = (u64)atomic64_read(&vgpu->counters.resets),
			.window_faults = (u64)atomic64_read(&vgpu->counters.window_faults),
			.window_mapped = (u64)atomic64_read(&vgpu->counters.window_mapped),
			.guest_faults = (u64)atomic64_read(&vgpu->counters.guest_faults),
			.guest_pinned = READ_ONCE(vgpu->guest.pinned),
			.guest_errors = (u64)atomic64_read(&vgpu->counters.guest_errors),
			.workers = (u64)atomic64_read(&vgpu->counters.workers),
		},
	};
	uuid_from_guid(out->uuid, &vgpu->uuid);
}

int vgpu_set_mode(const struct octavo_vgpu_mode *mode)
{
	struct octavo_vgpu_device *vgpu;

	if (mode->width < OCTAVO_MODE_MIN || mode->width > OCTAVO_MODE_WIDTH_MAX ||
	    mode->height < OCTAVO_MODE_MIN || mode->height > OCTAVO_MODE_HEIGHT_MAX ||
	    mode->width % 8)
		return -EINVAL;
	vgpu = vgpu_find(mode->uuid);
	if (!vgpu)
		return -ENOENT;
	mutex_lock(&vgpu->lock);
	vgpu->width = mode->width;
	vgpu->height = mode->height;
	if (vgpu->open_id)
		events_post(vgpu, OCTAVO_EVENT_MODE, 0, mode->width, mode->height);
	mutex_unlock(&vgpu->lock);
	vgpu_put(vgpu);
	return 0;
}

/* ------------------------------------------------------------------------------------------------
 * Generations
 */

/*
 * Begins a new generation. Everything that a worker has under way for the old one fails from here
 * on, nothing of the old one is visible to the guest any more, and no worker is waited for.
 */
void vgpu_reset(struct octavo_vgpu_device *vgpu)
{
	u32 generation = vgpu->generation + 1;

	lockdep_assert_held(&vgpu->lock);
	if (!generation)
		generation = 1;
	trace_octavo_reset(vgpu->open_id, generation);
	vgpu->generation = generation;
	vgpu->acked = false;
	vgpu->orphaned = false;
	if (vgpu->session)
		WRITE_ONCE(vgpu->session->status->generation, generation);
	irq_reset(vgpu, generation);
	registers_reset(vgpu);
	window_reset(vgpu, generation);
	guest_reset(vgpu, generation);
	console_reset(vgpu, generation);
	events_restart(vgpu, generation, true);
	atomic64_inc(&vgpu->counters.resets);
	vgpu_tell_state(vgpu);
}

/* The worker is at rest and serves the generation that begins. */
void vgpu_acknowledge(struct octavo_vgpu_device *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu->acked = true;
	irq_serve(vgpu, vgpu->session, true);
	window_serve(vgpu, vgpu->session, true);
	guest_serve(vgpu);
	console_serve(vgpu, vgpu->session, true);
}

void vgpu_session_attach(struct octavo_vgpu_device *vgpu, struct octavo_session *session)
{
	unsigned int i;

	lockdep_assert_held(&vgpu->lock);
	vgpu->session = session;
	WRITE_ONCE(session->status->generation, vgpu->generation);
	irq_serve(vgpu, session, false);
	window_serve(vgpu, session, false);
	guest_attach(vgpu, session);
	console_serve(vgpu, session, false);
	events_restart(vgpu, vgpu->generation, !vgpu->orphaned);
	if (!vgpu->orphaned) {
		/* what a predecessor may have read and taken with it */
		for (i = 0; i < OCTAVO_QUEUES; i++)
			if (vgpu->regs.queue[i].enabled)
				events_post(vgpu, OCTAVO_EVENT_QUEUE, i, 0, 0);
		if (vgpu->regs.status)
			events_post(vgpu, OCTAVO_EVENT_STATUS, vgpu->regs.status, 0, 0);
	}
	atomic64_inc(&vgpu->counters.workers);
	vgpu_tell_state(vgpu);
}

static void vgpu_session_cut(struct octavo_vgpu_device *vgpu)
{
	unsigned int i;

	vgpu->acked = false;
	irq_serve(vgpu, NULL, false);
	window_serve(vgpu, NULL, false);
	guest_detach(vgpu);
	console_serve(vgpu, NULL, false);
	for (i = 0; i < OCTAVO_QUEUES; i++)
		irq_kick_set(vgpu, &(struct octavo_kick) { .index = i, .fd = -1 });
}

/*
 * The session fd is gone. A guest that was using the device is told by DEVICE_NEEDS_RESET; stock
 * Linux guests ignore it, and the next worker serves after the guest's next reset.
 */
void vgpu_session_detach(struct octavo_vgpu_device *vgpu, struct octavo_session *session)
{
	bool gone;

	mutex_lock(&vgpu->lock);
	gone = vgpu->session == session && vgpu->open_id;
	if (vgpu->session == session)
		WRITE_ONCE(vgpu->session, NULL);
	if (gone) {
		vgpu_session_cut(vgpu);
		if (vgpu->regs.status & VIRTIO_CONFIG_S_DRIVER_OK) {
			vgpu->orphaned = true;
			vgpu->regs.status |= VIRTIO_CONFIG_S_NEEDS_RESET;
			irq_config(vgpu);
		}
		pr_warn("%pUl: worker %u is gone while process %u holds the vGPU%s\n", &vgpu->uuid,
			session->pid, vgpu->opener_pid,
			vgpu->orphaned ? "; the guest must reset the device" : "");
		vgpu->told_state = vgpu_state(vgpu);
		control_post(OCTAVO_CONTROL_WORKER_GONE, vgpu, vgpu->open_id, session->pid);
	}
	mutex_unlock(&vgpu->lock);
}

/* ------------------------------------------------------------------------------------------------
 * Open and close
 */

static void vgpu_end_open(struct octavo_vgpu_device *vgpu)
{
	u64 open_id;

	mutex_lock(&vgpu->lock);
	open_id = vgpu->open_id;
	/* before the reader is told that the end has come: nothing may follow it */
	doorbell_close(vgpu);
	if (vgpu->session) {
		vgpu_session_cut(vgpu);
		/* The reader sees CLOSED and then the end, from the session it still holds. */
		events_post(vgpu, OCTAVO_EVENT_CLOSED, 0, 0, 0);
	}
	vgpu->open_id = 0;
	vgpu->opener_pid = 0;
	vgpu->ready = false;
	vgpu->offered = false;
	vgpu->offered_features = 0;
	vgpu->num_scanouts = 0;
	vgpu->num_capsets = 0;
	vgpu->orphaned = false;
	registers_reset(vgpu);
	irq_close(vgpu);
	window_close(vgpu);
	console_close(vgpu);
	if (vgpu->session)
		vgpu->session->open_id = 0;
	vgpu->told_state = vgpu_state(vgpu);
	mutex_unlock(&vgpu->lock);
	control_post(OCTAVO_CONTROL_CLOSED, vgpu, open_id, 0);
}

static int vgpu_wait_ready(struct octavo_vgpu_device *vgpu)
{
	unsigned int timeout_ms = READ_ONCE(open_timeout_ms);
	long left;

	left = wait_event_killable_timeout(vgpu->ready_wait,
					   READ_ONCE(vgpu->ready) || READ_ONCE(vgpu->refusal[0]),
					   msecs_to_jiffies(timeout_ms) + 1);
	if (left < 0)
		return -EINTR;
	if (READ_ONCE(vgpu->ready))
		return 0;
	if (vgpu->refusal[0]) {
		pr_err("%pUl: open by %s (%d) refused by octavod: %s\n", &vgpu->uuid, current->comm,
		       task_tgid_nr(current), vgpu->refusal);
		return -ECONNREFUSED;
	}
	pr_err("%pUl: open by %s (%d) failed: no worker within %u ms; %s\n", &vgpu->uuid,
	       current->comm, task_tgid_nr(current), timeout_ms,
	       control_present() ? "see the logs of octavod and octavo-vgpu" :
	       "octavod has ended meanwhile, start it");
	return -ETIMEDOUT;
}

/*
 * Runs under VFIO's group and device-set locks, and QEMU's big lock as well, hence the short limit.
 * Without octavod it fails at once, with EIO: that is what Nova repeats once, which helps if octavod
 * is just being restarted.
 */
int vgpu_open(struct octavo_vgpu_device *vgpu)
{
	struct octavo_session *leftover;
	int ret;

	if (!control_present()) {
		pr_err("%pUl: open by %s (%d) failed: octavod is not running; start it (systemctl start octavod), then start the VM again\n",
		       &vgpu->uuid, current->comm, task_tgid_nr(current));
		return -EIO;
	}
	mutex_lock(&vgpu->lock);
	leftover = vgpu->session;
	if (leftover) {
		/* A worker of the last open that has not let go yet keeps its fd, but nothing else. */
		WRITE_ONCE(vgpu->session, NULL);
		wake_up_interruptible(&vgpu->events.wait);
	}
	ret = window_open(vgpu);
	if (ret) {
		mutex_unlock(&vgpu->lock);
		return ret;
	}
	vgpu->open_id = (u64)atomic64_inc_return(&opens);
	vgpu->opener_pid = (u32)task_tgid_nr(current);
	vgpu->refusal[0] = '\0';
	vgpu->ready = false;
	vgpu->waiting = true;
	vgpu->told_state = vgpu_state(vgpu);
	config_init(vgpu);
	vgpu_reset(vgpu);
	mutex_unlock(&vgpu->lock);
	control_post(OCTAVO_CONTROL_OPENED, vgpu, vgpu->open_id, vgpu->opener_pid);

	ret = vgpu_wait_ready(vgpu);
	mutex_lock(&vgpu->lock);
	vgpu->waiting = false;
	mutex_unlock(&vgpu->lock);
	if (ret)
		vgpu_end_open(vgpu);
	return ret;
}

void vgpu_close(struct octavo_vgpu_device *vgpu)
{
	vgpu_end_open(vgpu);
}

/* Somebody removes the vGPU while a VM holds it; called again every few seconds. */
void vgpu_request(struct octavo_vgpu_device *vgpu, unsigned int count)
{
	if (!(count % 6))
		pr_notice("%pUl: removal waits for process %u, which holds the vGPU; it was asked to let go\n",
			  &vgpu->uuid, READ_ONCE(vgpu->opener_pid));
	irq_request(vgpu);
}

int vgpu_refuse(const struct octavo_session_refuse *refuse)
{
	struct octavo_vgpu_device *vgpu;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < sizeof(refuse->reason) && refuse->reason[i]; i++)
		if (refuse->reason[i] < 0x20 || refuse->reason[i] > 0x7e)
			return -EINVAL;
	if (!i || i == sizeof(refuse->reason))
		return -EINVAL;
	vgpu = vgpu_find(refuse->uuid);
	if (!vgpu)
		return -ENOENT;
	mutex_lock(&vgpu->lock);
	if (!vgpu->waiting || vgpu->open_id != refuse->session) {
		ret = -ESTALE;
	} else {
		memcpy(vgpu->refusal + 1, refuse->reason + 1, sizeof(vgpu->refusal) - 1);
		WRITE_ONCE(vgpu->refusal[0], refuse->reason[0]);
		wake_up(&vgpu->ready_wait);
	}
	mutex_unlock(&vgpu->lock);
	vgpu_put(vgpu);
	return ret;
}

/* ------------------------------------------------------------------------------------------------
 * Create and remove
 */

static int vgpu_probe(struct mdev_device *mdev)
{
	struct octavo_type *type = container_of(mdev->type, struct octavo_type, mdev);
	struct octavo_registration *reg =
		container_of(mdev->type->parent, struct octavo_registration, mdev);
	struct octavo_vgpu_device *vgpu;
	u64 vram_bytes;
	u16 heads;
	int ret;

	/* 1. No unloading under a vGPU. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;

	/* 2. Its eighths. */
	ret = gpu_claim(reg->gpu, type->eighths, &heads, &vram_bytes, &mdev->uuid);
	if (ret)
		goto err_module;

	/* 3. The device. */
	vgpu = vfio_alloc_device(octavo_vgpu_device, vdev, &mdev->dev, &octavo_vfio_ops);
	if (IS_ERR(vgpu)) {
		ret = PTR_ERR(vgpu);
		goto err_claim;
	}
	vgpu->gpu = gpu_get(reg->gpu);
	guid_copy(&vgpu->uuid, &mdev->uuid);
	vgpu->eighths = type->eighths;
	vgpu->heads = heads;
	vgpu->vram_bytes = round_down(vram_bytes * type->eighths / OCTAVO_EIGHTHS, OCTAVO_VRAM_UNIT);
	vgpu->window_bytes = roundup_pow_of_two(vgpu->vram_bytes);
	config_init(vgpu);

	/* 4. Known to octavod before anybody can open it. */
	mutex_lock(&vgpus_lock);
	list_add_tail(&vgpu->node, &vgpus);
	mutex_unlock(&vgpus_lock);
	control_post(OCTAVO_CONTROL_CREATED, vgpu, 0, 0);

	/* 5. Known to VFIO. */
	ret = vfio_register_emulated_iommu_dev(&vgpu->vdev);
	if (ret)
		goto err_list;
	dev_set_drvdata(&mdev->dev, vgpu);
	return 0;

err_list:
	control_post(OCTAVO_CONTROL_REMOVED, vgpu, 0, 0);
	mutex_lock(&vgpus_lock);
	list_del(&vgpu->node);
	mutex_unlock(&vgpus_lock);
	vfio_put_device(&vgpu->vdev);
err_claim:
	gpu_unclaim(reg->gpu, type->eighths);
err_module:
	module_put(THIS_MODULE);
	return ret;
}

static void vgpu_remove(struct mdev_device *mdev)
{
	struct octavo_vgpu_device *vgpu = dev_get_drvdata(&mdev->dev);
	u32 eighths = vgpu->eighths;
	struct octavo_gpu *gpu = gpu_get(vgpu->gpu);

	/* Waits until no VM holds it. */
	vfio_unregister_group_dev(&vgpu->vdev);
	mutex_lock(&vgpus_lock);
	list_del(&vgpu->node);
	mutex_unlock(&vgpus_lock);
	gpu_unclaim(gpu, eighths);
	control_post(OCTAVO_CONTROL_REMOVED, vgpu, 0, 0);
	vfio_put_device(&vgpu->vdev);
	gpu_put(gpu);
	module_put(THIS_MODULE);
}

struct mdev_driver octavo_mdev_driver = {
	.device_api = VFIO_DEVICE_API_PCI_STRING,
	.driver = {
		.name = "octavo",
		.owner = THIS_MODULE,
		.mod_name = KBUILD_MODNAME,
	},
	.probe = vgpu_probe,
	.remove = vgpu_remove,
	.get_available = type_available,
	.show_description = type_description,
};
