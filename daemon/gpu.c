// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/gpu.h"

#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU_GROUP	"render"

struct gpu *gpu_new(const struct pci_address *address)
{
	struct gpu *gpu = g_new0(struct gpu, 1);

	gpu->address = *address;
	gpu->address_text = pci_address_format(address);
	gpu->path = ident_path("gpu", gpu->address_text);
	gpu->joins_path = g_strdup_printf("%s-%s", JOIN_SOCKET_SYSTEM, gpu->address_text);
	gpu->name = g_strdup("");
	gpu->reason = g_strdup("");
	gpu->vram_source = "unknown";
	gpu->types = g_ptr_array_new();
	return gpu;
}

void gpu_free(struct gpu *gpu)
{
	g_free(gpu->address_text);
	g_free(gpu->path);
	g_free(gpu->name);
	g_free(gpu->driver);
	g_strfreev(gpu->nodes);
	g_free(gpu->reason);
	g_free(gpu->conf.vulkan_device);
	g_ptr_array_unref(gpu->types);
	probe_facts_free(gpu->facts);
	g_free(gpu->probed);
	gpu_close_joins(gpu);
	g_free(gpu->joins_path);
	if (gpu->arbiter)
		arbiter_destroy(gpu->arbiter);
	g_free(gpu);
}

G_GNUC_PRINTF(3, 4)
static void gpu_set_state(struct gpu *gpu, enum gpu_state state, const char *format, ...)
{
	va_list arguments;
	char *reason;

	va_start(arguments, format);
	reason = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	if (gpu->state != state || !g_str_equal(gpu->reason, reason))
		g_log(G_LOG_DOMAIN,
		      state == GPU_REFUSED || state == GPU_UNUSABLE ? G_LOG_LEVEL_WARNING :
								     G_LOG_LEVEL_MESSAGE,
		      "GPU %s (%s): %s%s%s", gpu->address_text, gpu->name, gpu_state_name(state),
		      *reason ? ": " : "", reason);
	gpu->state = state;
	g_free(gpu->reason);
	gpu->reason = reason;
}

const char *gpu_state_name(enum gpu_state state)
{
	static const char *const names[] = {
		[GPU_DISABLED] = "disabled",	[GPU_UNUSABLE] = "unusable",
		[GPU_WAITING] = "waiting",	[GPU_REGISTERED] = "registered",
		[GPU_REFUSED] = "refused",
	};

	return names[state];
}

/* The two enumerations are each its owner's; the names are the same. */
static enum policy_kind gpu_policy_kind(enum conf_policy policy)
{
	int kind = policy_parse(conf_policy_name(policy));

	return kind < 0 ? POLICY_ELASTIC : (enum policy_kind)kind;
}

/* Better than a BAR, which may show a part, and not as good as the driver's own figure. */
static void gpu_use_vulkan_vram(struct gpu *gpu)
{
	if (!gpu->facts || !gpu->facts->vram_bytes || g_str_equal(gpu->vram_source, "driver") ||
	    gpu->facts->vram_bytes < gpu->vram_bytes)
		return;
	gpu->vram_bytes = gpu->facts->vram_bytes;
	gpu->vram_source = "vulkan";
}

void gpu_set_device(struct gpu *gpu, const struct device *device)
{
	gpu->present = device;
	g_clear_pointer(&gpu->driver, g_free);
	if (!device)
		return;
	gpu->vendor_id = device->vendor_id;
	gpu->device_id = device->device_id;
	g_free(gpu->name);
	gpu->name = g_strdup(device->name);
	gpu->driver = g_strdup(device->driver);
	g_strfreev(gpu->nodes);
	gpu->nodes = device_nodes("", &gpu->address, gpu->driver);
	if (!gpu->conf.vram_bytes) {
		gpu->vram_bytes = device->vram_bytes;
		gpu->vram_source = device->vram_source;
		gpu_use_vulkan_vram(gpu);
	}
}

char *gpu_wanted_probe(const struct gpu *gpu)
{
	g_autofree char *key = NULL;

	if (!gpu->driver || !gpu->conf.enable || gpu->conf.renderer == CONF_RENDERER_2D)
		return NULL;
	key = g_strdup_printf("%s %s %s", conf_renderer_name(gpu->conf.renderer), gpu->driver,
			      gpu->conf.vulkan_device ? gpu->conf.vulkan_device : "-");
	return g_strcmp0(key, gpu->probed) == 0 ? NULL : g_steal_pointer(&key);
}

void gpu_set_facts(struct gpu *gpu, const char *key, struct probe_facts *facts)
{
	g_free(gpu->probed);
	gpu->probed = g_strdup(key);
	probe_facts_free(gpu->facts);
	gpu->facts = facts;
	if (!gpu->conf.vram_bytes)
		gpu_use_vulkan_vram(gpu);
}

struct arbiter *gpu_arbiter(struct gpu *gpu,
			    void (*killed)(const struct arbiter_kill *kill, void *data), void *data)
{
	struct arbiter_config config = { .killed = killed, .data = data };
	int err = 0;

	if (gpu->arbiter)
		return gpu->arbiter;
	config.policy = gpu_policy_kind(gpu->conf.policy);
	config.slice_ns = gpu->conf.slice_us * 1000ULL;
	config.watchdog_ns = gpu->conf.watchdog_us * 1000ULL;
	gpu->arbiter = arbiter_create(&config, &err);
	if (!gpu->arbiter)
		g_warning("GPU %s: no arbiter: %s: its vGPUs share without order", gpu->address_text,
			  g_strerror(-err));
	return gpu->arbiter;
}

/* The socket's group is that of render nodes: who may use the GPU may as well do it in order. */
static void gpu_share_joins(const struct gpu *gpu)
{
	const struct group *group = getgrnam(GPU_GROUP);

	if (!group || chown(gpu->joins_path, (uid_t)-1, group->gr_gid) ||
	    chmod(gpu->joins_path, 0660))
		g_warning("GPU %s: only root can use octavo-run on it: %s cannot be given to the group "
			  GPU_GROUP ": %s", gpu->address_text, gpu->joins_path,
			  group ? g_strerror(errno) : "there is no such group");
}

void gpu_open_joins(struct gpu *gpu)
{
	struct join_config config = {
		.path = gpu->joins_path, .arbiter = gpu->arbiter, .memory_bytes = gpu->vram_bytes,
		.mode = 0600,
	};
	int err = 0;

	if (gpu->joins || !gpu->arbiter)
		return;
	gpu->joins = join_server_create(&config, &err);
	if (gpu->joins)
		gpu_share_joins(gpu);
	else
		g_warning("GPU %s: octavo-run cannot join it: %s: %s", gpu->address_text,
			  gpu->joins_path, g_strerror(-err));
}

void gpu_close_joins(struct gpu *gpu)
{
	g_clear_pointer(&gpu->joins, join_server_destroy);
}

void gpu_set_order(struct gpu *gpu, enum conf_policy policy, unsigned int slice_us)
{
	gpu->conf.policy = policy;
	gpu->conf.slice_us = slice_us;
	if (!gpu->arbiter)
		return;
	arbiter_set_policy(gpu->arbiter, gpu_policy_kind(policy));
	arbiter_set_slice(gpu->arbiter, slice_us * 1000ULL);
}

void gpu_set_conf(struct gpu *gpu, const struct conf_gpu *conf)
{
	g_free(gpu->conf.vulkan_device);
	gpu->conf = *conf;
	gpu->conf.vulkan_device = g_strdup(conf->vulkan_device);
	if (conf->vram_bytes) {
		gpu->vram_bytes = conf->vram_bytes;
		gpu->vram_source = "configuration";
	} else if (g_str_equal(gpu->vram_source, "configuration")) {
		gpu->vram_bytes = 0;
		gpu->vram_source = "unknown";
	}
	gpu_set_order(gpu, conf->policy, conf->slice_us);
	if (gpu->arbiter)
		arbiter_set_watchdog(gpu->arbiter, conf->watchdog_us * 1000ULL);
}

static struct octavo_parent gpu_parent(const struct gpu *gpu)
{
	return (struct octavo_parent){
		.domain = gpu->address.domain,
		.bus = gpu->address.bus,
		.devfn = gpu->address.devfn,
		.heads = (uint16_t)gpu->conf.heads,
		.vram_bytes = gpu->vram_bytes,
	};
}

static void gpu_take_parent(struct gpu *gpu, const struct octavo_parent *parent)
{
	gpu->eighths_used = parent->eighths_used;
	gpu->vgpus = parent->vgpus;
	g_ptr_array_unref(gpu->types);
	gpu->types = device_types("", &gpu->address);

	switch (parent->state) {
	case OCTAVO_PARENT_REGISTERED:
		gpu_set_state(gpu, GPU_REGISTERED, "%s", "");
		break;
	case OCTAVO_PARENT_REFUSED:
		if (parent->error == EBUSY)
			gpu_set_state(gpu, GPU_REFUSED,
				      "it is bound to vfio-pci, so a VM may own it whole: bind its own driver, or set enable = false for it");
		else if (parent->error == EEXIST)
			gpu_set_state(gpu, GPU_REFUSED,
				      "its driver %s has mdev types of its own: use those, or set enable = false for it",
				      gpu->driver ? gpu->driver : "");
		else
			gpu_set_state(gpu, GPU_REFUSED, "the module refused it: %s",
				      g_strerror((int)parent->error));
		break;
	default:
		if (gpu->present)
			gpu_set_state(gpu, GPU_WAITING,
				      "no driver is bound to it: load its driver ('lspci -k -s %s')",
				      gpu->address_text);
		else
			gpu_set_state(gpu, GPU_WAITING, "there is no such PCI device");
	}
}

static bool gpu_withdraw(struct gpu *gpu, struct control *control)
{
	struct octavo_parent parent = gpu_parent(gpu);
	g_autoptr(GError) error = NULL;

	if (control_parent_remove(control, &parent, &error) ||
	    g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_GONE))
		return true;
	gpu_set_state(gpu, GPU_REGISTERED,
		      "the configuration disables it, but it has vGPUs: it goes when they are removed");
	return false;
}

void gpu_reconcile(struct gpu *gpu, struct control *control)
{
	g_autofree char *examined = gpu_wanted_probe(gpu);
	struct octavo_parent parent;
	g_autoptr(GError) error = NULL;

	if (!gpu->conf.enable) {
		if (!control || gpu_withdraw(gpu, control)) {
			gpu_set_state(gpu, GPU_DISABLED, "%s", "");
			gpu->eighths_used = 0;
			gpu->vgpus = 0;
			g_ptr_array_set_size(gpu->types, 0);
		}
		return;
	}
	if (!control) {
		gpu_set_state(gpu, GPU_WAITING, "octavo.ko is not loaded: modprobe octavo");
		return;
	}
	if (examined && gpu->state != GPU_REGISTERED) {
		gpu_set_state(gpu, GPU_WAITING, "what it can render is being examined");
		return;
	}
	if (!gpu->vram_bytes && !gpu->present) {
		gpu_set_state(gpu, GPU_WAITING, "there is no such PCI device");
		return;
	}
	if (gpu->vram_bytes < CONF_VRAM_MIN_BYTES) {
		gpu_set_state(gpu, GPU_UNUSABLE,
			      "its video memory is %" G_GUINT64_FORMAT " MiB (source: %s) and at least %llu MiB are needed: set vram = SIZE in [gpu %s] of octavo.conf",
			      gpu->vram_bytes >> 20, gpu->vram_source, CONF_VRAM_MIN_BYTES >> 20,
			      gpu->address_text);
		return;
	}
	parent = gpu_parent(gpu);
	if (control_parent_add(control, &parent, &error)) {
		gpu_take_parent(gpu, &parent);
		return;
	}
	if (g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_BUSY))
		gpu_set_state(gpu, GPU_REGISTERED,
			      "vram or heads differ from the configuration: they change when its vGPUs are removed");
	else
		gpu_set_state(gpu, GPU_REFUSED, "%s", error->message);
}

void gpu_set_parent(struct gpu *gpu, const struct octavo_parent *parent)
{
	if (!parent) {
		gpu->eighths_used = 0;
		gpu->vgpus = 0;
		g_ptr_array_set_size(gpu->types, 0);
		return;
	}
	/* What reconcile had to say about a parent that is kept against the configuration stays */
	if (parent->state == OCTAVO_PARENT_REGISTERED && gpu->state == GPU_REGISTERED) {
		gpu->eighths_used = parent->eighths_used;
		gpu->vgpus = parent->vgpus;
		g_ptr_array_unref(gpu->types);
		gpu->types = device_types("", &gpu->address);
		return;
	}
	gpu_take_parent(gpu, parent);
}
