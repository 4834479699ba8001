// SPDX-License-Identifier: GPL-2.0-only
/*
 * parent.c - GPUs as mdev parents
 *
 * A wish (struct octavo_gpu) names a PCI address and stays. The parent is registered with the mdev
 * core while a driver is bound to that device, because the core writes the driver's name into the
 * ids of the types; the PCI bus notifier follows binding, unbinding and with it hot-removal.
 * Registration and unregistration of one device exclude each other by its device_lock.
 */
#define pr_fmt(fmt) "octavo: " fmt

#include <linux/delay.h>
#include <linux/kernfs.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "vgpu.h"

static DEFINE_MUTEX(parents_lock);
static LIST_HEAD(parents);
static unsigned int parents_count;

/* Registrations that ended but whose types the mdev core may still refer to. */
static LIST_HEAD(graveyard);
static void graveyard_sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(graveyard_work, graveyard_sweep);

struct octavo_gpu *gpu_get(struct octavo_gpu *gpu)
{
	kref_get(&gpu->ref);
	return gpu;
}

static void gpu_release(struct kref *ref)
{
	kfree(container_of(ref, struct octavo_gpu, ref));
}

void gpu_put(struct octavo_gpu *gpu)
{
	kref_put(&gpu->ref, gpu_release);
}

static struct octavo_gpu *gpu_find(u32 domain, u8 bus, u8 devfn)
{
	struct octavo_gpu *gpu;

	lockdep_assert_held(&parents_lock);
	list_for_each_entry(gpu, &parents, node)
		if (gpu->domain == domain && gpu->bus == bus && gpu->devfn == devfn)
			return gpu;
	return NULL;
}

static struct octavo_gpu *gpu_find_pci(struct pci_dev *pdev)
{
	struct octavo_gpu *gpu;

	mutex_lock(&parents_lock);
	gpu = gpu_find((u32)pci_domain_nr(pdev->bus), pdev->bus->number, (u8)pdev->devfn);
	if (gpu)
		gpu_get(gpu);
	mutex_unlock(&parents_lock);
	return gpu;
}

static void gpu_describe(const struct octavo_gpu *gpu, struct octavo_parent *out)
{
	*out = (struct octavo_parent) {
		.domain = gpu->domain,
		.bus = gpu->bus,
		.devfn = gpu->devfn,
		.heads = gpu->heads,
		.vram_bytes = gpu->vram_bytes,
		.state = gpu->state,
		.error = gpu->error,
		.eighths_used = gpu->eighths_used,
		.vgpus = gpu->vgpus,
	};
}

int gpu_claim(struct octavo_gpu *gpu, u32 eighths, u16 *heads, u64 *vram_bytes,
	      const guid_t *uuid)
{
	int ret = 0;

	mutex_lock(&parents_lock);
	if (gpu->leaving) {
		ret = -ENODEV;
	} else if (gpu->eighths_used + eighths > OCTAVO_EIGHTHS) {
		pr_err("%pUl: %s asked for %u eighths of GPU %04x:%02x:%02x.%u, but %u are free and %u taken by %u vGPUs\n",
		       uuid, type_name(eighths), eighths, gpu->domain, gpu->bus,
		       PCI_SLOT(gpu->devfn), PCI_FUNC(gpu->devfn),
		       OCTAVO_EIGHTHS - gpu->eighths_used, gpu->eighths_used, gpu->vgpus);
		ret = -ENOSPC;
	} else {
		gpu->eighths_used += eighths;
		gpu->vgpus++;
		*heads = gpu->heads;
		*vram_bytes = gpu->vram_bytes;
	}
	mutex_unlock(&parents_lock);
	return ret;
}

void gpu_unclaim(struct octavo_gpu *gpu, u32 eighths)
{
	mutex_lock(&parents_lock);
	gpu->eighths_used -= eighths;
	gpu->vgpus--;
	mutex_unlock(&parents_lock);
}

void gpu_share(struct octavo_gpu *gpu, u32 *eighths_free, u16 *heads, u64 *vram_bytes)
{
	mutex_lock(&parents_lock);
	*eighths_free = OCTAVO_EIGHTHS - gpu->eighths_used;
	*heads = gpu->heads;
	*vram_bytes = gpu->vram_bytes;
	mutex_unlock(&parents_lock);
}

static void gpu_set_state(struct octavo_gpu *gpu, u32 state, u32 error)
{
	bool changed;

	mutex_lock(&parents_lock);
	changed = gpu->state != state || gpu->error != error;
	gpu->state = state;
	gpu->error = error;
	mutex_unlock(&parents_lock);
	if (changed)
		control_post_parent(gpu);
}

/* ------------------------------------------------------------------------------------------------
 * Registrations
 */

/* True when nobody but us refers to a type: the core has seen the last of its children. */
static bool registration_idle(struct octavo_registration *reg)
{
	unsigned int i;

	for (i = 0; i < OCTAVO_TYPES; i++)
		if (kref_read(&reg->types[i].mdev.kobj.kref) > 1)
			return false;
	return true;
}

static void registration_free(struct octavo_registration *reg)
{
	unsigned int i;

	for (i = 0; i < OCTAVO_TYPES; i++)
		kobject_put(&reg->types[i].mdev.kobj);
	gpu_put(reg->gpu);
	kfree(reg);
}

static void graveyard_sweep(struct work_struct *work)
{
	struct octavo_registration *reg, *next;
	LIST_HEAD(idle);
	bool rest;

	mutex_lock(&parents_lock);
	list_for_each_entry_safe(reg, next, &graveyard, node)
		if (registration_idle(reg))
			list_move(&reg->node, &idle);
	rest = !list_empty(&graveyard);
	mutex_unlock(&parents_lock);

	list_for_each_entry_safe(reg, next, &idle, node)
		registration_free(reg);
	if (rest)
		schedule_delayed_work(&graveyard_work, HZ);
}

/* Does another driver serve mdevs on this device? The core would fail with a stack dump. */
static bool has_foreign_types(struct pci_dev *pdev)
{
	struct kernfs_node *dir;

	dir = kernfs_find_and_get(pdev->dev.kobj.sd, "mdev_supported_types");
	if (!dir)
		return false;
	kernfs_put(dir);
	return true;
}

/* The caller holds device_lock. */
static void registration_begin(struct octavo_gpu *gpu, struct pci_dev *pdev)
{
	struct octavo_registration *reg;
	unsigned int i;
	int ret;

	device_lock_assert(&pdev->dev);
	if (gpu->registration || gpu->leaving)
		return;
	if (!pdev->dev.driver) {
		gpu_set_state(gpu, OCTAVO_PARENT_WAITING, 0);
		return;
	}
	/* A driver that owns the DMA of its device hands it to user space: vfio-pci and its like. */
	if (pdev->driver && pdev->driver->driver_managed_dma) {
		pci_err(pdev, "octavo: refused as a parent: %s hands the whole device to user space; bind the GPU's own driver\n",
			dev_driver_string(&pdev->dev));
		gpu_set_state(gpu, OCTAVO_PARENT_REFUSED, EBUSY);
		return;
	}
	if (has_foreign_types(pdev)) {
		pci_err(pdev, "octavo: refused as a parent: %s has mdev types of its own; turn its vGPUs off\n",
			dev_driver_string(&pdev->dev));
		gpu_set_state(gpu, OCTAVO_PARENT_REFUSED, EEXIST);
		return;
	}

	reg = kzalloc(sizeof(*reg), GFP_KERNEL);
	if (!reg) {
		gpu_set_state(gpu, OCTAVO_PARENT_REFUSED, ENOMEM);
		return;
	}
	reg->gpu = gpu_get(gpu);
	types_init(reg);
	ret = mdev_register_parent(&reg->mdev, &pdev->dev, &octavo_mdev_driver, reg->type_list,
				   OCTAVO_TYPES);
	if (ret) {
		pci_err(pdev, "octavo: cannot register as a parent of mdevs: %d\n", ret);
		gpu_put(gpu);
		kfree(reg);
		gpu_set_state(gpu, OCTAVO_PARENT_REFUSED, (u32)-ret);
		return;
	}
	for (i = 0; i < OCTAVO_TYPES; i++)
		kobject_get(&reg->types[i].mdev.kobj);
	gpu->registration = reg;
	gpu_set_state(gpu, OCTAVO_PARENT_REGISTERED, 0);
}

/*
 * The caller holds device_lock. Removes all vGPUs of the parent; waits for VMs that have one open
 * (their VFIO request interrupt asks them to let go, vgpu.c logs who they are).
 */
static void registration_end(struct octavo_gpu *gpu, struct pci_dev *pdev)
{
	struct octavo_registration *reg = gpu->registration;

	device_lock_assert(&pdev->dev);
	if (!reg)
		return;
	mdev_unregister_parent(&reg->mdev);
	gpu->registration = NULL;
	mutex_lock(&parents_lock);
	list_add_tail(&reg->node, &graveyard);
	mutex_unlock(&parents_lock);
	schedule_delayed_work(&graveyard_work, 0);
	gpu_set_state(gpu, OCTAVO_PARENT_WAITING, 0);
}

static int parents_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);
	struct octavo_gpu *gpu;

	if (action != BUS_NOTIFY_BOUND_DRIVER && action != BUS_NOTIFY_UNBIND_DRIVER &&
	    action != BUS_NOTIFY_UNBOUND_DRIVER)
		return NOTIFY_DONE;
	gpu = gpu_find_pci(pdev);
	if (!gpu)
		return NOTIFY_DONE;
	switch (action) {
	case BUS_NOTIFY_BOUND_DRIVER:
		registration_begin(gpu, pdev);
		break;
	case BUS_NOTIFY_UNBIND_DRIVER:
		registration_end(gpu, pdev);
		break;
	case BUS_NOTIFY_UNBOUND_DRIVER:
		gpu_set_state(gpu, OCTAVO_PARENT_WAITING, 0);
		break;
	}
	gpu_put(gpu);
	return NOTIFY_OK;
}

static struct notifier_block parents_notifier = {
	.notifier_call = parents_notify,
};

static struct pci_dev *gpu_pci(const struct octavo_gpu *gpu)
{
	return pci_get_domain_bus_and_slot((int)gpu->domain, gpu->bus, gpu->devfn);
}

/* ------------------------------------------------------------------------------------------------
 * Wishes
 */

int parent_add(struct octavo_parent *wish)
{
	struct octavo_gpu *gpu, *found;
	struct pci_dev *pdev;
	int ret = 0;

	if (wish->flags || wish->reserved || wish->domain > INT_MAX)
		return -EINVAL;
	if (!wish->heads || wish->heads > OCTAVO_HEADS_MAX)
		return -EINVAL;
	if (wish->vram_bytes < OCTAVO_VRAM_MIN || wish->vram_bytes > OCTAVO_VRAM_MAX)
		return -EINVAL;

	gpu = kzalloc(sizeof(*gpu), GFP_KERNEL_ACCOUNT);
	if (!gpu)
		return -ENOMEM;
	kref_init(&gpu->ref);
	gpu->domain = wish->domain;
	gpu->bus = wish->bus;
	gpu->devfn = wish->devfn;
	gpu->heads = wish->heads;
	gpu->vram_bytes = wish->vram_bytes;

	mutex_lock(&parents_lock);
	found = gpu_find(gpu->domain, gpu->bus, gpu->devfn);
	if (found) {
		gpu_put(gpu);
		gpu = found;
		if (gpu->heads != wish->heads || gpu->vram_bytes != wish->vram_bytes) {
			if (gpu->vgpus || gpu->leaving) {
				ret = -EBUSY;
			} else {
				gpu->heads = wish->heads;
				gpu->vram_bytes = wish->vram_bytes;
			}
		}
	} else if (parents_count >= OCTAVO_PARENTS_MAX) {
		gpu_put(gpu);
		ret = -E2BIG;
	} else {
		list_add_tail(&gpu->node, &parents);
		parents_count++;
	}
	if (!ret)
		gpu_get(gpu);
	mutex_unlock(&parents_lock);
	if (ret)
		return ret;

	pdev = gpu_pci(gpu);
	if (pdev) {
		device_lock(&pdev->dev);
		registration_begin(gpu, pdev);
		device_unlock(&pdev->dev);
		pci_dev_put(pdev);
	}
	mutex_lock(&parents_lock);
	gpu_describe(gpu, wish);
	mutex_unlock(&parents_lock);
	gpu_put(gpu);
	return 0;
}

/* Takes a wish off the list after it was marked as leaving; drops the list's reference. */
static void gpu_forget(struct octavo_gpu *gpu)
{
	struct pci_dev *pdev = gpu_pci(gpu);

	if (pdev) {
		device_lock(&pdev->dev);
		registration_end(gpu, pdev);
		device_unlock(&pdev->dev);
		pci_dev_put(pdev);
	}
	mutex_lock(&parents_lock);
	list_del(&gpu->node);
	parents_count--;
	mutex_unlock(&parents_lock);
	gpu_put(gpu);
}

int parent_remove(const struct octavo_parent *wish)
{
	struct octavo_gpu *gpu;

	if (wish->flags || wish->reserved)
		return -EINVAL;
	mutex_lock(&parents_lock);
	gpu = gpu_find(wish->domain, wish->bus, wish->devfn);
	if (!gpu || gpu->leaving || gpu->vgpus) {
		mutex_unlock(&parents_lock);
		return gpu ? -EBUSY : -ENOENT;
	}
	gpu->leaving = true;
	mutex_unlock(&parents_lock);
	gpu_forget(gpu);
	return 0;
}

int parent_list(struct octavo_parent_list *entry)
{
	struct octavo_gpu *gpu;
	u32 index = 0;
	int ret = -ENOENT;

	if (entry->reserved)
		return -EINVAL;
	mutex_lock(&parents_lock);
	list_for_each_entry(gpu, &parents, node) {
		if (index++ != entry->index)
			continue;
		gpu_describe(gpu, &entry->parent);
		ret = 0;
		break;
	}
	mutex_unlock(&parents_lock);
	return ret;
}

int parents_init(void)
{
	return bus_register_notifier(&pci_bus_type, &parents_notifier);
}

/* No vGPU exists any more: each holds a reference to the module. */
void parents_exit(void)
{
	struct octavo_gpu *gpu, *next;

	bus_unregister_notifier(&pci_bus_type, &parents_notifier);
	list_for_each_entry_safe(gpu, next, &parents, node) {
		gpu->leaving = true;
		gpu_forget(gpu);
	}
	cancel_delayed_work_sync(&graveyard_work);
	while (!list_empty(&graveyard)) {
		graveyard_sweep(NULL);
		cancel_delayed_work_sync(&graveyard_work);
		if (!list_empty(&graveyard))
			msleep(20);
	}
}
