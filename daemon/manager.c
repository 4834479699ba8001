// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/manager.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/keep.h"
#include "daemon/mdev.h"
#include "daemon/uevent.h"
#include "daemon/unit.h"

#define MANAGER_RESCAN_MS	100u	/* a driver's binding is a burst of events */

struct manager {
	char *conf_path;
	char *control_path;
	struct conf *conf;
	struct control *control;
	bool incompatible;		/* a module is there, but of another version */
	struct uevent *uevent;
	struct unit_socket *units;	/* NULL: never wanted */
	char *joins;			/* where JOIN_SOCKET_SYSTEM leads; NULL: nowhere */
	GPtrArray *gpus;
	GPtrArray *vgpus;
	GQueue events;
	uint64_t event_counts[MANAGER_EVENT_TYPES];
	int64_t started_us;
	guint rescan;
	struct probe *probe;		/* one at a time */
	struct pci_address probe_gpu;
	char *probe_key;
	void (*examined)(void *data);	/* once, when no probe runs any more */
	void *examined_data;
	void (*reloaded)(void *data);
	void *reloaded_data;
	const struct manager_listener *listener;
	void *listener_data;
};

static void manager_attach(struct manager *manager);
static void manager_rescan(struct manager *manager);

/* ---- events and listener ---- */

static void manager_event_free(void *data)
{
	struct manager_event *event = data;

	g_free(event->uuid);
	g_free(event->gpu);
	g_free(event->message);
	g_free(event);
}

const char *manager_event_name(enum manager_event_type type)
{
	static const char *const names[] = {
		[MANAGER_EVENT_MODULE] = "module",
		[MANAGER_EVENT_GPU] = "gpu",
		[MANAGER_EVENT_CREATED] = "created",
		[MANAGER_EVENT_REMOVED] = "removed",
		[MANAGER_EVENT_OPENED] = "opened",
		[MANAGER_EVENT_CLOSED] = "closed",
		[MANAGER_EVENT_WORKER] = "worker",
		[MANAGER_EVENT_WORKER_LOST] = "worker-lost",
		[MANAGER_EVENT_REFUSED] = "refused",
		[MANAGER_EVENT_HANG] = "hang",
	};

	return names[type];
}

/* One per type, for journalctl and the catalog. */
static const char *manager_message_id(enum manager_event_type type)
{
	static const char *const ids[] = {
		[MANAGER_EVENT_MODULE] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60001",
		[MANAGER_EVENT_GPU] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60002",
		[MANAGER_EVENT_CREATED] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60003",
		[MANAGER_EVENT_REMOVED] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60004",
		[MANAGER_EVENT_OPENED] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60005",
		[MANAGER_EVENT_CLOSED] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60006",
		[MANAGER_EVENT_WORKER] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60007",
		[MANAGER_EVENT_WORKER_LOST] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60008",
		[MANAGER_EVENT_REFUSED] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d60009",
		[MANAGER_EVENT_HANG] = "5f1c7c9a5d9b4c6fa1a0a9e1c2d6000a",
	};

	return ids[type];
}

static void manager_event_add(struct manager *manager, enum manager_event_type type,
			      const char *uuid, const char *gpu, char *message)
{
	struct manager_event *event = g_new0(struct manager_event, 1);
	bool bad = type == MANAGER_EVENT_WORKER_LOST || type == MANAGER_EVENT_REFUSED ||
		   type == MANAGER_EVENT_HANG;

	event->type = type;
	event->time_us = g_get_real_time();
	event->uuid = g_strdup(uuid);
	event->gpu = g_strdup(gpu);
	event->message = message;
	manager->event_counts[type]++;
	g_queue_push_tail(&manager->events, event);
	if (manager->events.length > MANAGER_EVENTS)
		manager_event_free(g_queue_pop_head(&manager->events));

	g_log_structured(G_LOG_DOMAIN, bad ? G_LOG_LEVEL_WARNING : G_LOG_LEVEL_MESSAGE,
			 "MESSAGE_ID", manager_message_id(type),
			 "OCTAVO_EVENT", manager_event_name(type),
			 "OCTAVO_UUID", uuid, "OCTAVO_GPU", gpu,
			 "MESSAGE", "%s%s%s", *uuid ? uuid : gpu, *uuid || *gpu ? ": " : "", message);
	if (manager->listener)
		manager->listener->event(event, manager->listener_data);
}

void manager_event(struct manager *manager, enum manager_event_type type, const struct vgpu *vgpu,
		   const char *format, ...)
{
	g_autofree char *gpu = NULL;
	struct pci_address address;
	va_list arguments;
	char *message;

	va_start(arguments, format);
	message = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	if (vgpu) {
		address = vgpu_gpu_address(vgpu);
		gpu = pci_address_format(&address);
	}
	manager_event_add(manager, type, vgpu ? vgpu->uuid : "", gpu ? gpu : "", message);
	manager_changed(manager);
}

void manager_changed(struct manager *manager)
{
	if (manager->listener)
		manager->listener->changed(manager->listener_data);
}

void manager_listen(struct manager *manager, const struct manager_listener *listener, void *data)
{
	manager->listener = listener;
	manager->listener_data = data;
}

/* ---- GPUs ---- */

struct gpu *manager_find_gpu(const struct manager *manager, const struct pci_address *address)
{
	for (unsigned int i = 0; i < manager->gpus->len; i++) {
		struct gpu *gpu = g_ptr_array_index(manager->gpus, i);

		if (pci_address_equal(&gpu->address, address))
			return gpu;
	}
	return NULL;
}

static struct gpu *manager_add_gpu(struct manager *manager, const struct pci_address *address)
{
	struct gpu *gpu = manager_find_gpu(manager, address);

	if (!gpu) {
		gpu = gpu_new(address);
		g_ptr_array_add(manager->gpus, gpu);
	}
	return gpu;
}

static struct pci_address manager_parent_address(const struct octavo_parent *parent)
{
	return (struct pci_address){ .domain = parent->domain, .bus = parent->bus, .devfn = parent->devfn };
}

static const struct device *manager_find_device(const GPtrArray *devices,
						const struct pci_address *address)
{
	for (unsigned int i = 0; i < devices->len; i++) {
		const struct device *device = g_ptr_array_index(devices, i);

		if (pci_address_equal(&device->address, address))
			return device;
	}
	return NULL;
}

/* GPUs are those on the bus, those configured, and those the module has from an earlier octavod. */
static void manager_collect_gpus(struct manager *manager, const GPtrArray *devices)
{
	for (unsigned int i = 0; i < devices->len; i++)
		manager_add_gpu(manager, &((struct device *)g_ptr_array_index(devices, i))->address);
	for (unsigned int i = 0; i < manager->conf->gpus->len; i++)
		manager_add_gpu(manager,
				&g_array_index(manager->conf->gpus, struct conf_gpu, i).address);
	if (manager->control) {
		g_autoptr(GArray) parents = control_parents(manager->control);

		for (unsigned int i = 0; i < parents->len; i++) {
			struct pci_address address = manager_parent_address(
				&g_array_index(parents, struct octavo_parent, i));

			manager_add_gpu(manager, &address);
		}
	}
}

static void manager_killed(const struct arbiter_kill *kill, void *data);
static void manager_probe_next(struct manager *manager);
static void manager_refresh_parents(struct manager *manager);
static void manager_serve_joins(struct manager *manager);

static void manager_probe_done(struct probe_facts *facts, const GError *error, void *data)
{
	struct manager *manager = data;
	struct gpu *gpu = manager_find_gpu(manager, &manager->probe_gpu);

	if (gpu && facts)
		g_message("GPU %s renders: %s%s%s", gpu->address_text, facts->capsets,
			  facts->vulkan_name ? " on " : "",
			  facts->vulkan_name ? facts->vulkan_name : "");
	else if (gpu)
		g_warning("GPU %s: probe: %s", gpu->address_text, error->message);
	if (gpu) {
		gpu_set_facts(gpu, manager->probe_key, facts);
		probe_cache_write(PROBE_CACHE, gpu->address_text, manager->probe_key, facts);
		gpu_reconcile(gpu, manager->control);
		manager_serve_joins(manager);
	} else {
		probe_facts_free(facts);
	}
	g_clear_pointer(&manager->probe, probe_free);
	g_clear_pointer(&manager->probe_key, g_free);
	manager_probe_next(manager);
	manager_changed(manager);
}

/* What an octavod of this boot has found out already. */
static void manager_recall_probe(struct gpu *gpu)
{
	g_autofree char *key = gpu_wanted_probe(gpu);
	struct probe_facts *known;

	known = key ? probe_cache_read(PROBE_CACHE, gpu->address_text, key) : NULL;
	if (known)
		gpu_set_facts(gpu, key, known);
}

/* Where systemd runs the host it runs the workers, too. */
static bool manager_wants_units(const struct conf *conf)
{
	return conf->launcher == CONF_LAUNCHER_SYSTEMD ||
	       (conf->launcher == CONF_LAUNCHER_AUTO && sd_booted() > 0);
}

static bool manager_open_units(struct manager *manager, const struct conf *conf, GError **error)
{
	if (!manager->units && manager_wants_units(conf))
		manager->units = unit_socket_new(UNIT_SOCKET, error);
	return manager->units || !manager_wants_units(conf);
}

/* NULL: workers are octavod's own children. */
static struct unit_socket *manager_units(struct manager *manager)
{
	return manager_wants_units(manager->conf) ? manager->units : NULL;
}

static void manager_probe_next(struct manager *manager)
{
	for (unsigned int i = 0; i < manager->gpus->len && !manager->probe; i++) {
		struct gpu *gpu = g_ptr_array_index(manager->gpus, i);
		g_autofree char *key = gpu_wanted_probe(gpu);
		g_autoptr(GError) error = NULL;

		if (!key)
			continue;
		const struct probe_setup setup = {
			.units = manager_units(manager),
			.program = manager->conf->worker,
			.gpu = gpu->address_text,
			.renderer = conf_renderer_name(gpu->conf.renderer),
			.vulkan_device = gpu->conf.vulkan_device,
			.devices = (const char *const *)gpu->nodes,
		};

		manager->probe = probe_start(&setup, manager_probe_done, manager, &error);
		if (!manager->probe) {
			g_warning("GPU %s: cannot probe: %s", gpu->address_text, error->message);
			gpu_set_facts(gpu, key, NULL);
			gpu_reconcile(gpu, manager->control);
			continue;
		}
		manager->probe_gpu = gpu->address;
		manager->probe_key = g_steal_pointer(&key);
	}
	if (!manager->probe && manager->examined)
		g_steal_pointer(&manager->examined)(manager->examined_data);
}

void manager_when_examined(struct manager *manager, void (*fn)(void *data), void *data)
{
	if (!manager->probe) {
		fn(data);
		return;
	}
	manager->examined = fn;
	manager->examined_data = data;
}

/* The first GPU is the one that octavo-run takes when it is told none. */
static void manager_serve_joins(struct manager *manager)
{
	const char *first = NULL;

	for (unsigned int i = 0; i < manager->gpus->len; i++) {
		struct gpu *gpu = g_ptr_array_index(manager->gpus, i);

		if (gpu->state != GPU_REGISTERED) {
			gpu_close_joins(gpu);
			continue;
		}
		gpu_arbiter(gpu, manager_killed, manager);
		gpu_open_joins(gpu);
		if (gpu->joins && (!first || strcmp(gpu->joins_path, first) < 0))
			first = gpu->joins_path;
	}
	if (first && manager->joins && g_str_equal(first, manager->joins))
		return;
	unlink(JOIN_SOCKET_SYSTEM);
	if (first && symlink(first, JOIN_SOCKET_SYSTEM))
		g_warning("%s: %s: octavo-run needs --socket", JOIN_SOCKET_SYSTEM, g_strerror(errno));
	g_free(manager->joins);
	manager->joins = g_strdup(first);
}

static void manager_rescan(struct manager *manager)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GPtrArray) devices = device_list(&error);

	if (!devices) {
		g_warning("%s", error->message);
		return;
	}
	manager_collect_gpus(manager, devices);
	for (unsigned int i = manager->gpus->len; i-- > 0;) {
		struct gpu *gpu = g_ptr_array_index(manager->gpus, i);
		const struct device *device = manager_find_device(devices, &gpu->address);
		struct conf_gpu wanted = *conf_gpu(manager->conf, &gpu->address);
		bool nobodys = !device && !gpu->vgpus &&
			       !conf_has_gpu(manager->conf, &gpu->address);

		if (nobodys)
			wanted.enable = false;
		gpu_set_conf(gpu, &wanted);
		gpu_set_device(gpu, device);
		manager_recall_probe(gpu);
		gpu_reconcile(gpu, manager->control);
		if (nobodys && gpu->state == GPU_DISABLED)
			g_ptr_array_remove_index(manager->gpus, i);
	}
	manager_probe_next(manager);
	if (manager->control)
		manager_refresh_parents(manager);
	manager_serve_joins(manager);
	manager_refresh(manager);
	manager_changed(manager);
}

static gboolean manager_rescan_now(void *data)
{
	struct manager *manager = data;

	manager->rescan = 0;
	if (!manager->control)
		manager_attach(manager);
	manager_rescan(manager);
	return G_SOURCE_REMOVE;
}

static void manager_rescan_soon(struct manager *manager)
{
	if (!manager->rescan)
		manager->rescan = g_timeout_add(MANAGER_RESCAN_MS, manager_rescan_now, manager);
}

/* ---- vGPUs ---- */

static struct vgpu *manager_vgpu_by_id(const struct manager *manager, const uint8_t uuid[UUID_BYTES])
{
	for (unsigned int i = 0; i < manager->vgpus->len; i++) {
		struct vgpu *vgpu = g_ptr_array_index(manager->vgpus, i);

		if (memcmp(vgpu->info.uuid, uuid, UUID_BYTES) == 0)
			return vgpu;
	}
	return NULL;
}

struct vgpu *manager_find_vgpu(const struct manager *manager, const char *uuid)
{
	uint8_t id[UUID_BYTES];

	return uuid_parse(uuid, id) ? manager_vgpu_by_id(manager, id) : NULL;
}

/* Its worker, if any, is let go and reaped. */
static void manager_drop_vgpu(struct manager *manager, unsigned int index)
{
	struct vgpu *vgpu = g_ptr_array_index(manager->vgpus, index);

	vgpu_closed(vgpu, vgpu->session);
	manager_event(manager, MANAGER_EVENT_REMOVED, vgpu, "%s removed", vgpu->type);
	g_ptr_array_remove_index(manager->vgpus, index);
}

static bool manager_refresh_vgpus(struct manager *manager)
{
	g_autoptr(GArray) list = control_vgpus(manager->control);
	bool changed = false;

	for (unsigned int i = 0; i < manager->vgpus->len; i++)
		((struct vgpu *)g_ptr_array_index(manager->vgpus, i))->listed = false;
	for (unsigned int i = 0; i < list->len; i++) {
		const struct octavo_vgpu *info = &g_array_index(list, struct octavo_vgpu, i);
		struct vgpu *vgpu = manager_vgpu_by_id(manager, info->uuid);

		if (vgpu) {
			changed |= vgpu_update(vgpu, info);
		} else {
			vgpu = vgpu_new(manager, info);
			g_ptr_array_add(manager->vgpus, vgpu);
			changed = true;
		}
		vgpu->listed = true;
	}
	for (unsigned int i = manager->vgpus->len; i-- > 0;) {
		if (((struct vgpu *)g_ptr_array_index(manager->vgpus, i))->listed)
			continue;
		manager_drop_vgpu(manager, i);
		changed = true;
	}
	return changed;
}

static void manager_refresh_parents(struct manager *manager)
{
	g_autoptr(GArray) parents = control_parents(manager->control);

	for (unsigned int i = 0; i < manager->gpus->len; i++) {
		struct gpu *gpu = g_ptr_array_index(manager->gpus, i);
		const struct octavo_parent *found = NULL;

		for (unsigned int j = 0; j < parents->len && !found; j++) {
			const struct octavo_parent *parent =
				&g_array_index(parents, struct octavo_parent, j);
			struct pci_address address = manager_parent_address(parent);

			if (pci_address_equal(&address, &gpu->address))
				found = parent;
		}
		gpu_set_parent(gpu, found);
	}
}

void manager_refresh(struct manager *manager)
{
	if (!manager->control)
		return;
	if (manager_refresh_vgpus(manager)) {
		manager_refresh_parents(manager);
		manager_changed(manager);
	}
}

bool manager_resize(struct manager *manager, struct vgpu *vgpu, uint32_t width, uint32_t height,
		    GError **error)
{
	if (width < OCTAVO_MODE_MIN || width > OCTAVO_MODE_WIDTH_MAX || width % 8 ||
	    height < OCTAVO_MODE_MIN || height > OCTAVO_MODE_HEIGHT_MAX) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_FAILED,
			    "%ux%u is no mode of a vGPU: allowed are %u to %u pixels of width, a multiple of 8, and %u to %u of height",
			    width, height, OCTAVO_MODE_MIN, OCTAVO_MODE_WIDTH_MAX, OCTAVO_MODE_MIN,
			    OCTAVO_MODE_HEIGHT_MAX);
		return false;
	}
	if (!manager->control) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_ABSENT, "octavo.ko is not loaded");
		return false;
	}
	if (!control_set_mode(manager->control, vgpu->info.uuid, width, height, error))
		return false;
	manager_refresh(manager);
	return true;
}

/* The GPU to create on: the named one, or the first that still has @eighths. */
static struct gpu *manager_choose_gpu(struct manager *manager, const char *address,
				      unsigned int eighths, GError **error)
{
	struct pci_address wanted;
	struct gpu *gpu;

	if (*address) {
		gpu = pci_address_parse(address, &wanted) ? manager_find_gpu(manager, &wanted) : NULL;
		if (!gpu)
			g_set_error(error, MDEV_ERROR, MDEV_ERROR_GONE,
				    "there is no GPU '%s': 'octavoctl gpus' shows those of this host",
				    address);
		return gpu;
	}
	for (unsigned int i = 0; i < manager->gpus->len; i++) {
		gpu = g_ptr_array_index(manager->gpus, i);
		if (gpu->types->len && OCTAVO_EIGHTHS - gpu->eighths_used >= eighths)
			return gpu;
	}
	g_set_error(error, MDEV_ERROR, MDEV_ERROR_FULL,
		    "no GPU of this host has %u eighths free: 'octavoctl types' shows what can be created",
		    eighths);
	return NULL;
}

struct vgpu *manager_create(struct manager *manager, const char *type, const char *address,
			    const char *uuid, GError **error)
{
	unsigned int eighths = mdev_type_eighths(type);
	uint8_t id[UUID_BYTES];
	char canonical[UUID_TEXT_BYTES];
	g_autofree char *fresh = g_uuid_string_random();
	struct vgpu *vgpu;
	struct gpu *gpu;

	if (!eighths) {
		g_set_error(error, MDEV_ERROR, MDEV_ERROR_TYPE,
			    "there is no type '%s': types are 1/2, 1/4 and 1/8", type);
		return NULL;
	}
	if (!uuid_parse(*uuid ? uuid : fresh, id)) {
		g_set_error(error, MDEV_ERROR, MDEV_ERROR_FAILED,
			    "'%s' is no UUID: uuidgen prints one", uuid);
		return NULL;
	}
	uuid_format(id, canonical);
	gpu = manager_choose_gpu(manager, address, eighths, error);
	if (!gpu || !mdev_create("", gpu, eighths, canonical, error))
		return NULL;
	manager_refresh(manager);
	vgpu = manager_find_vgpu(manager, canonical);
	if (!vgpu)
		g_set_error(error, MDEV_ERROR, MDEV_ERROR_GONE, "vGPU %s is gone already", canonical);
	return vgpu;
}

static struct gpu *manager_gpu_of(struct manager *manager, const struct vgpu *vgpu)
{
	struct pci_address address = vgpu_gpu_address(vgpu);

	return manager_add_gpu(manager, &address);
}

void manager_worker_setup(struct manager *manager, const struct vgpu *vgpu,
			  struct worker_setup *setup)
{
	struct gpu *gpu = manager_gpu_of(manager, vgpu);

	*setup = (struct worker_setup){
		.units = manager_units(manager),
		.program = manager->conf->worker,
		.uuid = vgpu->uuid,
		.gpu = gpu->address_text,
		.renderer = conf_renderer_name(gpu->conf.renderer),
		.busy_poll_us = gpu->conf.busy_poll_us,
		.vulkan_device = gpu->conf.vulkan_device,
		.eighths = vgpu->info.eighths,
		.vram_bytes = vgpu->info.vram_bytes,
		.devices = (const char *const *)gpu->nodes,
	};
	if (!gpu->facts)
		return;
	setup->capsets = gpu->facts->capsets;
	setup->render_node = gpu->facts->render_node;
	setup->vulkan_ids = gpu->facts->vulkan_ids;
	if (gpu->facts->vulkan_device)
		setup->vulkan_device = gpu->facts->vulkan_device;
}

bool manager_is_probing(struct manager *manager, const struct vgpu *vgpu)
{
	g_autofree char *key = gpu_wanted_probe(manager_gpu_of(manager, vgpu));

	return key && manager->probe;
}

/* What the arbiter's thread tells the main loop. */
struct manager_hang {
	struct manager *manager;
	struct arbiter_kill kill;
};

static gboolean manager_hang(void *data)
{
	struct manager_hang *hang = data;
	const struct arbiter_kill *kill = &hang->kill;
	struct vgpu *vgpu = manager_find_vgpu(hang->manager, kill->name);

	if (vgpu)
		manager_event(hang->manager, MANAGER_EVENT_HANG, vgpu,
			      "GPU work did not end in time: %u render processes killed, the guest's context is lost%s",
			      kill->n_pids, kill->held_off_ns ? "; no turns for a while" : "");
	return G_SOURCE_REMOVE;
}

static void manager_killed(const struct arbiter_kill *kill, void *data)
{
	struct manager_hang *hang = g_new0(struct manager_hang, 1);

	hang->manager = data;
	hang->kill = *kill;
	g_idle_add_full(G_PRIORITY_DEFAULT, manager_hang, hang, g_free);
}

struct arbiter *manager_arbiter(struct manager *manager, const struct vgpu *vgpu)
{
	return gpu_arbiter(manager_gpu_of(manager, vgpu), manager_killed, manager);
}

/* ---- the module ---- */

struct control *manager_control(struct manager *manager)
{
	return manager->control;
}

static void manager_detach(struct manager *manager)
{
	g_clear_pointer(&manager->control, control_close);
	for (unsigned int i = manager->vgpus->len; i-- > 0;)
		manager_drop_vgpu(manager, i);
	manager_event(manager, MANAGER_EVENT_MODULE, NULL, "octavo.ko is gone");
	manager_rescan_soon(manager);
}

/* What records tell that never came is in the list that was just read. */
static void manager_catch_up(struct manager *manager)
{
	g_warning("octavod was too slow for the module's records: it looks at every vGPU again");
	for (unsigned int i = 0; i < manager->vgpus->len; i++)
		vgpu_catch_up(g_ptr_array_index(manager->vgpus, i));
}

static void manager_control_event(const struct octavo_control_event *event, void *data)
{
	struct manager *manager = data;
	struct vgpu *vgpu;

	if (!event) {
		manager_detach(manager);
		return;
	}
	if (event->type == OCTAVO_CONTROL_PARENT || event->lost)
		manager_rescan_soon(manager);

	manager_refresh(manager);
	if (event->lost)
		manager_catch_up(manager);
	vgpu = manager_vgpu_by_id(manager, event->uuid);
	if (!vgpu)
		return;
	switch (event->type) {
	case OCTAVO_CONTROL_CREATED:
		manager_event(manager, MANAGER_EVENT_CREATED, vgpu, "%s created", vgpu->type);
		break;
	case OCTAVO_CONTROL_OPENED:
		vgpu_opened(vgpu, event->session);
		manager_event(manager, MANAGER_EVENT_OPENED, vgpu, "opened by process %u (%s)",
			      event->pid, vgpu->opener);
		break;
	case OCTAVO_CONTROL_WORKER_GONE:
		vgpu_worker_gone(vgpu, event->session);
		break;
	case OCTAVO_CONTROL_CLOSED:
		vgpu_closed(vgpu, event->session);
		manager_event(manager, MANAGER_EVENT_CLOSED, vgpu, "closed");
		break;
	default:
		break;
	}
}

/* Opens the module if it is there; whatever else is wrong is told once. */
static bool manager_try_attach(struct manager *manager, GError **error)
{
	g_autoptr(GError) cause = NULL;

	manager->incompatible = false;
	manager->control = control_open(manager->control_path, &cause);
	if (!manager->control) {
		if (g_error_matches(cause, CONTROL_ERROR, CONTROL_ERROR_ABSENT)) {
			g_message("%s (octavod waits for it)", cause->message);
			return true;
		}
		if (g_error_matches(cause, CONTROL_ERROR, CONTROL_ERROR_ABI)) {
			manager->incompatible = true;
			g_warning("%s", cause->message);
			return true;
		}
		g_propagate_error(error, g_steal_pointer(&cause));
		return false;
	}
	control_watch(manager->control, manager_control_event, manager);
	manager_refresh_vgpus(manager);
	for (unsigned int i = 0; i < manager->vgpus->len; i++)
		vgpu_adopt(g_ptr_array_index(manager->vgpus, i));
	keep_drop_rest();
	manager_event(manager, MANAGER_EVENT_MODULE, NULL, "octavo.ko is there, %u vGPUs",
		      manager->vgpus->len);
	return true;
}

static void manager_attach(struct manager *manager)
{
	g_autoptr(GError) error = NULL;

	if (!manager_try_attach(manager, &error) && manager->listener)
		manager->listener->fatal(error, manager->listener_data);
}

const char *manager_module_state(const struct manager *manager)
{
	if (manager->control)
		return "loaded";
	return manager->incompatible ? "incompatible" : "absent";
}

static void manager_uevent(enum uevent_subject subject, void *data)
{
	struct manager *manager = data;

	if (subject == UEVENT_PCI || !manager->control)
		manager_rescan_soon(manager);
}

/* ---- life ---- */

static void manager_free_gpu(void *data)
{
	gpu_free(data);
}

static void manager_free_vgpu(void *data)
{
	vgpu_free(data);
}

struct manager *manager_new(const char *conf_path, const char *control_path, GError **error)
{
	struct manager *manager = g_new0(struct manager, 1);

	manager->conf_path = g_strdup(conf_path);
	manager->control_path = g_strdup(control_path);
	manager->gpus = g_ptr_array_new_with_free_func(manager_free_gpu);
	manager->vgpus = g_ptr_array_new_with_free_func(manager_free_vgpu);
	g_queue_init(&manager->events);
	manager->started_us = g_get_real_time();

	manager->conf = conf_load(conf_path, error);
	if (!manager->conf)
		goto fail;
	/* Listen before looking, so that a module that comes in between is not missed */
	manager->uevent = uevent_new(manager_uevent, manager, error);
	if (!manager->uevent || !manager_try_attach(manager, error) ||
	    !manager_open_units(manager, manager->conf, error))
		goto fail;
	manager_rescan(manager);
	return manager;

fail:
	manager_free(manager);
	return NULL;
}

void manager_free(struct manager *manager)
{
	if (!manager)
		return;
	manager->listener = NULL;
	if (manager->rescan)
		g_source_remove(manager->rescan);
	uevent_free(manager->uevent);
	probe_free(manager->probe);
	g_free(manager->probe_key);
	g_ptr_array_unref(manager->vgpus);
	g_ptr_array_unref(manager->gpus);
	unit_socket_free(manager->units);
	control_close(manager->control);
	conf_free(manager->conf);
	g_queue_clear_full(&manager->events, manager_event_free);
	g_free(manager->joins);
	g_free(manager->conf_path);
	g_free(manager->control_path);
	g_free(manager);
}

bool manager_reload(struct manager *manager, GError **error)
{
	struct conf *conf = conf_load(manager->conf_path, error);

	if (!conf)
		return false;
	if (!manager_open_units(manager, conf, error)) {
		conf_free(conf);
		return false;
	}
	conf_free(manager->conf);
	manager->conf = conf;
	manager_rescan(manager);
	if (manager->reloaded)
		manager->reloaded(manager->reloaded_data);
	return true;
}

void manager_when_reloaded(struct manager *manager, void (*fn)(void *data), void *data)
{
	manager->reloaded = fn;
	manager->reloaded_data = data;
}

const GPtrArray *manager_gpus(const struct manager *manager)
{
	return manager->gpus;
}

const GPtrArray *manager_vgpus(const struct manager *manager)
{
	return manager->vgpus;
}

const struct conf *manager_conf(const struct manager *manager)
{
	return manager->conf;
}

const char *manager_conf_path(const struct manager *manager)
{
	return manager->conf_path;
}

const GQueue *manager_events(const struct manager *manager)
{
	return &manager->events;
}

uint64_t manager_event_count(const struct manager *manager, enum manager_event_type type)
{
	return manager->event_counts[type];
}

int64_t manager_started_us(const struct manager *manager)
{
	return manager->started_us;
}
