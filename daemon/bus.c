// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/bus.h"

#include "config.h"
#include "daemon/access.h"
#include "daemon/mdev.h"
#include "daemon/octavo-dbus.h"

#define BUS_ERROR_NOT_FOUND "org.octavo1.Error.NotFound"

struct bus {
	struct manager *manager;
	GDBusConnection *connection;
	GDBusObjectManagerServer *server;
	OctavoManager *skeleton;
	GHashTable *objects;	/* path to OctavoObjectSkeleton */
	guint sync;		/* GSource: one look for many changes */
	gulong closed;
	void (*fatal)(const GError *error, void *data);
	void *data;
};

/* ---- state to properties ---- */

static GVariant *bus_types(const struct gpu *gpu)
{
	GVariantBuilder types;

	g_variant_builder_init(&types, G_VARIANT_TYPE("aa{sv}"));
	for (unsigned int i = 0; i < gpu->types->len; i++) {
		const struct device_type *type = g_ptr_array_index(gpu->types, i);

		g_variant_builder_open(&types, G_VARIANT_TYPE("a{sv}"));
		g_variant_builder_add(&types, "{sv}", "id", g_variant_new_string(type->id));
		g_variant_builder_add(&types, "{sv}", "name",
				      g_variant_new_string(type->name ? type->name : ""));
		g_variant_builder_add(&types, "{sv}", "description",
				      g_variant_new_string(type->description ? type->description : ""));
		g_variant_builder_add(&types, "{sv}", "device_api",
				      g_variant_new_string(type->device_api ? type->device_api : ""));
		g_variant_builder_add(&types, "{sv}", "eighths", g_variant_new_uint32(type->eighths));
		g_variant_builder_add(&types, "{sv}", "available_instances",
				      g_variant_new_uint32(type->available));
		g_variant_builder_close(&types);
	}
	return g_variant_builder_end(&types);
}

static void bus_set_gpu(OctavoGpu *object, const struct gpu *gpu)
{
	octavo_gpu_set_address(object, gpu->address_text);
	octavo_gpu_set_name(object, gpu->name);
	octavo_gpu_set_vendor_id(object, gpu->vendor_id);
	octavo_gpu_set_device_id(object, gpu->device_id);
	octavo_gpu_set_driver(object, gpu->driver ? gpu->driver : "");
	octavo_gpu_set_present(object, gpu->present);
	octavo_gpu_set_state(object, gpu_state_name(gpu->state));
	octavo_gpu_set_reason(object, gpu->reason);
	octavo_gpu_set_vram_bytes(object, gpu->vram_bytes);
	octavo_gpu_set_vram_source(object, gpu->vram_source);
	octavo_gpu_set_heads(object, gpu->conf.heads);
	octavo_gpu_set_renderer(object, conf_renderer_name(gpu->conf.renderer));
	octavo_gpu_set_capsets(object, gpu->facts ? gpu->facts->capsets : "");
	octavo_gpu_set_vulkan_device(object, gpu->facts && gpu->facts->vulkan_name ?
						     gpu->facts->vulkan_name : "");
	octavo_gpu_set_policy(object, conf_policy_name(gpu->conf.policy));
	octavo_gpu_set_slice_us(object, gpu->conf.slice_us);
	octavo_gpu_set_eighths_used(object, gpu->eighths_used);
	octavo_gpu_set_eighths_total(object, OCTAVO_EIGHTHS);
	octavo_gpu_set_vgpus(object, gpu->vgpus);
	octavo_gpu_set_types(object, bus_types(gpu));
}

static void bus_set_vgpu(OctavoVgpu *object, const struct vgpu *vgpu)
{
	const struct octavo_vgpu *info = &vgpu->info;
	struct pci_address address = { info->domain, info->bus, info->devfn };
	g_autofree char *gpu = pci_address_format(&address);
	g_autofree char *gpu_path = ident_path("gpu", gpu);

	octavo_vgpu_set_uuid(object, vgpu->uuid);
	octavo_vgpu_set_gpu(object, gpu_path);
	octavo_vgpu_set_gpu_address(object, gpu);
	octavo_vgpu_set_type_(object, vgpu->type);
	octavo_vgpu_set_eighths(object, info->eighths);
	octavo_vgpu_set_state(object, vgpu_state_name(info->state));
	octavo_vgpu_set_session(object, info->session);
	octavo_vgpu_set_opener_pid(object, info->opener_pid);
	octavo_vgpu_set_opener_name(object, vgpu->opener);
	octavo_vgpu_set_worker_pid(object, info->worker_pid);
	octavo_vgpu_set_worker_restarts(object, vgpu->restarts);
	octavo_vgpu_set_last_error(object, vgpu->last_error);
	octavo_vgpu_set_vram_bytes(object, info->vram_bytes);
	octavo_vgpu_set_window_bytes(object, info->window_bytes);
	octavo_vgpu_set_heads(object, info->heads);
	octavo_vgpu_set_width(object, info->width);
	octavo_vgpu_set_height(object, info->height);
	octavo_vgpu_set_generation(object, info->generation);
	octavo_vgpu_set_device_status(object, info->status);
	octavo_vgpu_set_driver_features(object, info->driver_features);
}

static GVariant *bus_counters(const struct vgpu *vgpu)
{
	const struct octavo_counters *counters = &vgpu->info.counters;
	struct arbiter_stats stats = { 0 };

	if (vgpu->share.arbiter)
		arbiter_stats(vgpu->share.arbiter, vgpu->share.id, &stats);

	const struct {
		const char *name;
		guint64 value;
	} list[] = {
		{ "registers", counters->registers },
		{ "kicks", counters->kicks },
		{ "interrupts", counters->interrupts },
		{ "resets", counters->resets },
		{ "window_faults", counters->window_faults },
		{ "window_mapped_bytes", counters->window_mapped },
		{ "guest_faults", counters->guest_faults },
		{ "guest_pinned_pages", counters->guest_pinned },
		{ "guest_errors", counters->guest_errors },
		{ "workers", counters->workers },
		{ "worker_restarts", vgpu->restarts },
		{ "gpu_turns", stats.turns },
		{ "gpu_used_ns", stats.used_ns },
		{ "gpu_overrun_ns", stats.overrun_ns },
		{ "gpu_waited_ns", stats.waited_ns },
		{ "gpu_measured_ns", stats.gpu_ns },
		{ "gpu_kills", stats.kills },
		{ "gpu_in_flight", stats.in_flight },
		{ "gpu_held_off", stats.held_off },
		{ "render_processes", stats.processes },
		{ "vram_used_bytes", stats.used_bytes },
		{ "vram_limit_bytes", vgpu->info.vram_bytes },
	};
	GVariantBuilder builder;

	g_variant_builder_init(&builder, G_VARIANT_TYPE("a{st}"));
	for (unsigned int i = 0; i < G_N_ELEMENTS(list); i++)
		g_variant_builder_add(&builder, "{st}", list[i].name, list[i].value);
	return g_variant_builder_end(&builder);
}

/* ---- methods ---- */

static void bus_not_found(GDBusMethodInvocation *invocation, const char *uuid)
{
	g_autofree char *message = g_strdup_printf(
		"there is no vGPU '%s' on this host: 'octavoctl list' shows those that exist", uuid);

	g_dbus_method_invocation_return_dbus_error(invocation, BUS_ERROR_NOT_FOUND, message);
}

static gboolean bus_list_gpus(OctavoManager *object, GDBusMethodInvocation *invocation, void *data)
{
	struct bus *bus = data;
	const GPtrArray *gpus = manager_gpus(bus->manager);
	g_autoptr(GPtrArray) paths = g_ptr_array_new();

	for (unsigned int i = 0; i < gpus->len; i++)
		g_ptr_array_add(paths, ((struct gpu *)g_ptr_array_index(gpus, i))->path);
	g_ptr_array_add(paths, NULL);
	octavo_manager_complete_list_gpus(object, invocation, (const char *const *)paths->pdata);
	return TRUE;
}

static gboolean bus_list_vgpus(OctavoManager *object, GDBusMethodInvocation *invocation, void *data)
{
	struct bus *bus = data;
	const GPtrArray *vgpus = manager_vgpus(bus->manager);
	g_autoptr(GPtrArray) paths = g_ptr_array_new();

	for (unsigned int i = 0; i < vgpus->len; i++)
		g_ptr_array_add(paths, ((struct vgpu *)g_ptr_array_index(vgpus, i))->path);
	g_ptr_array_add(paths, NULL);
	octavo_manager_complete_list_vgpus(object, invocation, (const char *const *)paths->pdata);
	return TRUE;
}

static gboolean bus_get_vgpu(OctavoManager *object, GDBusMethodInvocation *invocation,
			     const char *uuid, void *data)
{
	struct bus *bus = data;
	struct vgpu *vgpu = manager_find_vgpu(bus->manager, uuid);

	if (vgpu)
		octavo_manager_complete_get_vgpu(object, invocation, vgpu->path);
	else
		bus_not_found(invocation, uuid);
	return TRUE;
}

static gboolean bus_get_all_counters(OctavoManager *object, GDBusMethodInvocation *invocation,
				     void *data)
{
	struct bus *bus = data;
	const GPtrArray *vgpus = manager_vgpus(bus->manager);
	GVariantBuilder builder;

	manager_refresh(bus->manager);
	g_variant_builder_init(&builder, G_VARIANT_TYPE("a{oa{st}}"));
	for (unsigned int i = 0; i < vgpus->len; i++) {
		const struct vgpu *vgpu = g_ptr_array_index(vgpus, i);

		g_variant_builder_add(&builder, "{o@a{st}}", vgpu->path, bus_counters(vgpu));
	}
	octavo_manager_complete_get_counters(object, invocation, g_variant_builder_end(&builder));
	return TRUE;
}

static gboolean bus_get_events(OctavoManager *object, GDBusMethodInvocation *invocation, void *data)
{
	struct bus *bus = data;
	GVariantBuilder builder;

	g_variant_builder_init(&builder, G_VARIANT_TYPE("a(xssss)"));
	for (const GList *item = manager_events(bus->manager)->head; item; item = item->next) {
		const struct manager_event *event = item->data;

		g_variant_builder_add(&builder, "(xssss)", event->time_us,
				      manager_event_name(event->type), event->uuid, event->gpu,
				      event->message);
	}
	octavo_manager_complete_get_events(object, invocation, g_variant_builder_end(&builder));
	return TRUE;
}

static gboolean bus_reload(OctavoManager *object, GDBusMethodInvocation *invocation, void *data)
{
	struct bus *bus = data;
	g_autoptr(GError) error = NULL;

	if (manager_reload(bus->manager, &error))
		octavo_manager_complete_reload(object, invocation);
	else
		g_dbus_method_invocation_return_error(invocation, G_DBUS_ERROR,
						      G_DBUS_ERROR_INVALID_ARGS, "%s",
						      error->message);
	return TRUE;
}

static void bus_sync(struct bus *bus);

static gboolean bus_create(OctavoManager *object, GDBusMethodInvocation *invocation,
			   const char *type, const char *gpu, const char *uuid, gboolean persistent,
			   void *data)
{
	struct bus *bus = data;
	g_autoptr(GError) error = NULL;
	struct vgpu *vgpu = manager_create(bus->manager, type, gpu, uuid, &error);

	if (vgpu && persistent && !mdev_define(vgpu->uuid, &error)) {
		mdev_remove("", vgpu->uuid, NULL);
		vgpu = NULL;
	}
	if (!vgpu) {
		g_dbus_method_invocation_return_error(invocation, G_DBUS_ERROR, G_DBUS_ERROR_FAILED,
						      "%s", error->message);
		return TRUE;
	}
	/* whoever gets the answer finds the object */
	bus_sync(bus);
	octavo_manager_complete_create(object, invocation, vgpu->uuid, vgpu->path);
	return TRUE;
}

/* What a thread needs to remove a vGPU: it blocks while a VM has it open. */
struct bus_removal {
	GDBusMethodInvocation *invocation;
	char *uuid;
	bool persistent;
};

static void bus_removal_free(void *data)
{
	struct bus_removal *removal = data;

	g_free(removal->uuid);
	g_free(removal);
}

static void bus_remove_in_thread(GTask *task, void *source, void *data, GCancellable *cancellable)
{
	struct bus_removal *removal = data;
	g_autoptr(GError) error = NULL;

	(void)source;
	(void)cancellable;
	if (!mdev_remove("", removal->uuid, &error) ||
	    (removal->persistent && !mdev_undefine(removal->uuid, &error)))
		g_dbus_method_invocation_return_error(removal->invocation, G_DBUS_ERROR,
						      G_DBUS_ERROR_FAILED, "%s", error->message);
	else
		g_dbus_method_invocation_return_value(removal->invocation, NULL);
	g_task_return_boolean(task, TRUE);
}

static gboolean bus_remove(OctavoVgpu *object, GDBusMethodInvocation *invocation,
			   gboolean persistent, void *data)
{
	struct bus *bus = data;
	const char *uuid = octavo_vgpu_get_uuid(object);
	struct bus_removal *removal;
	g_autoptr(GTask) task = NULL;
	struct vgpu *vgpu;

	manager_refresh(bus->manager);
	vgpu = manager_find_vgpu(bus->manager, uuid);
	if (!vgpu) {
		bus_not_found(invocation, uuid);
		return TRUE;
	}
	if (vgpu->info.state != OCTAVO_VGPU_IDLE) {
		g_dbus_method_invocation_return_error(
			invocation, G_DBUS_ERROR, G_DBUS_ERROR_FAILED,
			"vGPU %s is in use by %s (process %u): shut it down, or detach the vGPU from it",
			uuid, vgpu->opener, vgpu->info.opener_pid);
		return TRUE;
	}
	removal = g_new0(struct bus_removal, 1);
	removal->invocation = invocation;
	removal->uuid = g_strdup(uuid);
	removal->persistent = persistent;
	task = g_task_new(NULL, NULL, NULL, NULL);
	g_task_set_task_data(task, removal, bus_removal_free);
	g_task_run_in_thread(task, bus_remove_in_thread);
	return TRUE;
}

static gboolean bus_resize(OctavoVgpu *object, GDBusMethodInvocation *invocation, guint width,
			   guint height, void *data)
{
	struct bus *bus = data;
	const char *uuid = octavo_vgpu_get_uuid(object);
	struct vgpu *vgpu = manager_find_vgpu(bus->manager, uuid);
	g_autoptr(GError) error = NULL;

	if (!vgpu)
		bus_not_found(invocation, uuid);
	else if (manager_resize(bus->manager, vgpu, width, height, &error))
		octavo_vgpu_complete_resize(object, invocation);
	else
		g_dbus_method_invocation_return_error(invocation, G_DBUS_ERROR,
						      G_DBUS_ERROR_INVALID_ARGS, "%s",
						      error->message);
	return TRUE;
}

static gboolean bus_get_counters(OctavoVgpu *object, GDBusMethodInvocation *invocation, void *data)
{
	struct bus *bus = data;
	const char *uuid = octavo_vgpu_get_uuid(object);
	struct vgpu *vgpu;

	manager_refresh(bus->manager);
	vgpu = manager_find_vgpu(bus->manager, uuid);
	if (vgpu)
		octavo_vgpu_complete_get_counters(object, invocation, bus_counters(vgpu));
	else
		bus_not_found(invocation, uuid);
	return TRUE;
}

static struct gpu *bus_gpu(struct bus *bus, OctavoGpu *object, GDBusMethodInvocation *invocation)
{
	const char *text = octavo_gpu_get_address(object);
	struct pci_address address;
	struct gpu *gpu = NULL;

	if (pci_address_parse(text, &address))
		gpu = manager_find_gpu(bus->manager, &address);
	if (!gpu)
		g_dbus_method_invocation_return_error(invocation, G_DBUS_ERROR,
						      G_DBUS_ERROR_UNKNOWN_OBJECT,
						      "GPU %s is gone", text);
	return gpu;
}

static gboolean bus_set_policy(OctavoGpu *object, GDBusMethodInvocation *invocation,
			       const char *policy, void *data)
{
	struct bus *bus = data;
	struct gpu *gpu = bus_gpu(bus, object, invocation);
	struct conf_gpu conf;

	if (!gpu)
		return TRUE;
	conf = gpu->conf;
	if (!conf_policy_parse(policy, &conf.policy)) {
		g_dbus_method_invocation_return_error(
			invocation, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
			"there is no policy '%s': there are best-effort, equal-share, fixed-share and elastic",
			policy);
		return TRUE;
	}
	gpu_set_order(gpu, conf.policy, conf.slice_us);
	bus_sync(bus);
	octavo_gpu_complete_set_policy(object, invocation);
	return TRUE;
}

static gboolean bus_set_slice(OctavoGpu *object, GDBusMethodInvocation *invocation, guint slice_us,
			      void *data)
{
	struct bus *bus = data;
	struct gpu *gpu = bus_gpu(bus, object, invocation);

	if (!gpu)
		return TRUE;
	if (slice_us < CONF_SLICE_MIN_US || slice_us > CONF_SLICE_MAX_US) {
		g_dbus_method_invocation_return_error(
			invocation, G_DBUS_ERROR, G_DBUS_ERROR_INVALID_ARGS,
			"a slice of %u us: allowed are %u to %u us", slice_us, CONF_SLICE_MIN_US,
			CONF_SLICE_MAX_US);
		return TRUE;
	}
	gpu_set_order(gpu, gpu->conf.policy, slice_us);
	bus_sync(bus);
	octavo_gpu_complete_set_slice(object, invocation);
	return TRUE;
}

static gboolean bus_get_slices(OctavoGpu *object, GDBusMethodInvocation *invocation, guint64 since,
			       void *data)
{
	struct bus *bus = data;
	struct gpu *gpu = bus_gpu(bus, object, invocation);
	struct arbiter_slice *slices;
	uint64_t cursor = since;
	GVariantBuilder builder;
	size_t count = 0;

	if (!gpu)
		return TRUE;
	slices = g_new0(struct arbiter_slice, ARBITER_LOG_SIZE);
	if (gpu->arbiter)
		count = arbiter_read_log(gpu->arbiter, &cursor, slices, ARBITER_LOG_SIZE);
	g_variant_builder_init(&builder, G_VARIANT_TYPE("a(tstttttu)"));
	for (size_t i = 0; i < count; i++)
		g_variant_builder_add(&builder, "(tstttttu)", slices[i].sequence, slices[i].name,
				      slices[i].slice.begin_ns, slices[i].slice.end_ns,
				      slices[i].slice.granted_ns, slices[i].slice.used_ns,
				      slices[i].slice.overrun_ns, slices[i].slice.waiting);
	g_free(slices);
	octavo_gpu_complete_get_slices(object, invocation, cursor, g_variant_builder_end(&builder));
	return TRUE;
}

/* Runs in a thread of GDBus, and only for methods; reading is everybody's. */
static gboolean bus_authorize(GDBusInterfaceSkeleton *skeleton, GDBusMethodInvocation *invocation,
			      void *data)
{
	static const char *const changing[] = { "Create",	   "Reload",   "Remove", "Resize",
						"SetPolicy", "SetSlice", NULL };

	(void)skeleton;
	(void)data;
	return !g_strv_contains(changing, g_dbus_method_invocation_get_method_name(invocation)) ||
	       access_check(invocation, ACCESS_MANAGE);
}

/* ---- objects ---- */

static OctavoObjectSkeleton *bus_object(struct bus *bus, const char *path, GHashTable *unseen)
{
	OctavoObjectSkeleton *object = g_hash_table_lookup(bus->objects, path);

	g_hash_table_remove(unseen, path);
	return object;
}

static void bus_export(struct bus *bus, const char *path, GDBusInterfaceSkeleton *skeleton)
{
	OctavoObjectSkeleton *object = octavo_object_skeleton_new(path);

	g_signal_connect(skeleton, "g-authorize-method", G_CALLBACK(bus_authorize), NULL);
	g_dbus_object_skeleton_add_interface(G_DBUS_OBJECT_SKELETON(object), skeleton);
	g_dbus_object_manager_server_export(bus->server, G_DBUS_OBJECT_SKELETON(object));
	g_hash_table_insert(bus->objects, g_strdup(path), object);
}

static void bus_sync_gpu(struct bus *bus, const struct gpu *gpu, GHashTable *unseen)
{
	OctavoObjectSkeleton *object = bus_object(bus, gpu->path, unseen);
	g_autoptr(OctavoGpu) skeleton = NULL;

	if (object) {
		skeleton = octavo_object_get_gpu(OCTAVO_OBJECT(object));
		bus_set_gpu(skeleton, gpu);
		return;
	}
	skeleton = octavo_gpu_skeleton_new();
	bus_set_gpu(skeleton, gpu);
	g_signal_connect(skeleton, "handle-set-policy", G_CALLBACK(bus_set_policy), bus);
	g_signal_connect(skeleton, "handle-set-slice", G_CALLBACK(bus_set_slice), bus);
	g_signal_connect(skeleton, "handle-get-slices", G_CALLBACK(bus_get_slices), bus);
	bus_export(bus, gpu->path, G_DBUS_INTERFACE_SKELETON(skeleton));
}

static void bus_sync_vgpu(struct bus *bus, const struct vgpu *vgpu, GHashTable *unseen)
{
	OctavoObjectSkeleton *object = bus_object(bus, vgpu->path, unseen);
	g_autoptr(OctavoVgpu) skeleton = NULL;

	if (object) {
		skeleton = octavo_object_get_vgpu(OCTAVO_OBJECT(object));
		bus_set_vgpu(skeleton, vgpu);
		return;
	}
	skeleton = octavo_vgpu_skeleton_new();
	bus_set_vgpu(skeleton, vgpu);
	g_signal_connect(skeleton, "handle-resize", G_CALLBACK(bus_resize), bus);
	g_signal_connect(skeleton, "handle-remove", G_CALLBACK(bus_remove), bus);
	g_signal_connect(skeleton, "handle-get-counters", G_CALLBACK(bus_get_counters), bus);
	bus_export(bus, vgpu->path, G_DBUS_INTERFACE_SKELETON(skeleton));
}

static void bus_sync(struct bus *bus)
{
	const GPtrArray *gpus = manager_gpus(bus->manager);
	const GPtrArray *vgpus = manager_vgpus(bus->manager);
	g_autoptr(GHashTable) unseen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	GHashTableIter iter;
	void *path;

	g_hash_table_iter_init(&iter, bus->objects);
	while (g_hash_table_iter_next(&iter, &path, NULL))
		g_hash_table_add(unseen, g_strdup(path));

	octavo_manager_set_version(bus->skeleton, PACKAGE_VERSION);
	octavo_manager_set_module_state(bus->skeleton, manager_module_state(bus->manager));
	octavo_manager_set_configuration(bus->skeleton, manager_conf_path(bus->manager));
	for (unsigned int i = 0; i < gpus->len; i++)
		bus_sync_gpu(bus, g_ptr_array_index(gpus, i), unseen);
	for (unsigned int i = 0; i < vgpus->len; i++)
		bus_sync_vgpu(bus, g_ptr_array_index(vgpus, i), unseen);

	g_hash_table_iter_init(&iter, unseen);
	while (g_hash_table_iter_next(&iter, &path, NULL)) {
		g_dbus_object_manager_server_unexport(bus->server, path);
		g_hash_table_remove(bus->objects, path);
	}
}

static gboolean bus_sync_now(void *data)
{
	struct bus *bus = data;

	bus->sync = 0;
	bus_sync(bus);
	return G_SOURCE_REMOVE;
}

static void bus_changed(void *data)
{
	struct bus *bus = data;

	if (!bus->sync)
		bus->sync = g_idle_add(bus_sync_now, bus);
}

static void bus_event(const struct manager_event *event, void *data)
{
	struct bus *bus = data;

	octavo_manager_emit_event(bus->skeleton, event->time_us, manager_event_name(event->type),
				  event->uuid, event->gpu, event->message);
}

static void bus_fatal(const GError *error, void *data)
{
	struct bus *bus = data;

	bus->fatal(error, bus->data);
}

static void bus_closed(GDBusConnection *connection, gboolean remote, GError *cause, void *data)
{
	struct bus *bus = data;
	g_autoptr(GError) error = g_error_new(G_IO_ERROR, G_IO_ERROR_CLOSED,
					      "the system bus is gone: %s",
					      cause ? cause->message : "closed");

	(void)connection;
	(void)remote;
	bus->fatal(error, bus->data);
}

/* ---- life ---- */

static const struct manager_listener bus_listener = {
	.changed = bus_changed,
	.event = bus_event,
	.fatal = bus_fatal,
};

/* Objects first, then the name: whoever sees the name finds the objects. */
static bool bus_take_name(struct bus *bus, GError **error)
{
	const guint32 do_not_queue = 4, primary_owner = 1;
	g_autoptr(GVariant) answer = g_dbus_connection_call_sync(
		bus->connection, "org.freedesktop.DBus", "/org/freedesktop/DBus",
		"org.freedesktop.DBus", "RequestName", g_variant_new("(su)", BUS_NAME, do_not_queue),
		G_VARIANT_TYPE("(u)"), G_DBUS_CALL_FLAGS_NONE, -1, NULL, error);
	guint32 result;

	if (!answer) {
		g_prefix_error(error, "cannot take the name " BUS_NAME " on the system bus (is its policy in dbus-1/system.d?): ");
		return false;
	}
	g_variant_get(answer, "(u)", &result);
	if (result == primary_owner)
		return true;
	g_set_error(error, G_IO_ERROR, G_IO_ERROR_EXISTS,
		    "another octavod has the name " BUS_NAME " on the system bus: one host runs one (see 'systemctl status octavod')");
	return false;
}

struct bus *bus_new(struct manager *manager, void (*fatal)(const GError *error, void *data),
		    void *data, GError **error)
{
	struct bus *bus = g_new0(struct bus, 1);

	bus->manager = manager;
	bus->fatal = fatal;
	bus->data = data;
	bus->objects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_object_unref);
	bus->connection = g_bus_get_sync(G_BUS_TYPE_SYSTEM, NULL, error);
	if (!bus->connection) {
		bus_free(bus);
		return NULL;
	}
	g_dbus_connection_set_exit_on_close(bus->connection, FALSE);
	bus->closed = g_signal_connect(bus->connection, "closed", G_CALLBACK(bus_closed), bus);

	bus->skeleton = octavo_manager_skeleton_new();
	g_signal_connect(bus->skeleton, "g-authorize-method", G_CALLBACK(bus_authorize), NULL);
	g_signal_connect(bus->skeleton, "handle-list-gpus", G_CALLBACK(bus_list_gpus), bus);
	g_signal_connect(bus->skeleton, "handle-list-vgpus", G_CALLBACK(bus_list_vgpus), bus);
	g_signal_connect(bus->skeleton, "handle-get-vgpu", G_CALLBACK(bus_get_vgpu), bus);
	g_signal_connect(bus->skeleton, "handle-get-counters", G_CALLBACK(bus_get_all_counters), bus);
	g_signal_connect(bus->skeleton, "handle-get-events", G_CALLBACK(bus_get_events), bus);
	g_signal_connect(bus->skeleton, "handle-create", G_CALLBACK(bus_create), bus);
	g_signal_connect(bus->skeleton, "handle-reload", G_CALLBACK(bus_reload), bus);

	bus->server = g_dbus_object_manager_server_new(BUS_PATH);
	bus_sync(bus);
	if (!g_dbus_interface_skeleton_export(G_DBUS_INTERFACE_SKELETON(bus->skeleton),
					      bus->connection, BUS_PATH, error)) {
		bus_free(bus);
		return NULL;
	}
	g_dbus_object_manager_server_set_connection(bus->server, bus->connection);
	if (!bus_take_name(bus, error)) {
		bus_free(bus);
		return NULL;
	}
	manager_listen(manager, &bus_listener, bus);
	return bus;
}

void bus_free(struct bus *bus)
{
	if (!bus)
		return;
	manager_listen(bus->manager, NULL, NULL);
	if (bus->sync)
		g_source_remove(bus->sync);
	if (bus->server)
		g_dbus_object_manager_server_set_connection(bus->server, NULL);
	if (bus->skeleton && g_dbus_interface_skeleton_get_connection(
				     G_DBUS_INTERFACE_SKELETON(bus->skeleton)))
		g_dbus_interface_skeleton_unexport(G_DBUS_INTERFACE_SKELETON(bus->skeleton));
	g_hash_table_unref(bus->objects);
	g_clear_object(&bus->skeleton);
	g_clear_object(&bus->server);
	if (bus->closed)
		g_signal_handler_disconnect(bus->connection, bus->closed);
	if (bus->connection)
		g_dbus_connection_flush_sync(bus->connection, NULL, NULL);
	g_clear_object(&bus->connection);
	g_free(bus);
}
