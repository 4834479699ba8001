// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/doctor.h"

#include <gio/gio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/output.h"

#define DOCTOR_KERNEL_MIN	"6.12"
#define DOCTOR_QEMU_MIN		"10.0"
#define DOCTOR_REFUSALS		3u	/* shown at most */
#define DOCTOR_PAGE_BYTES	4096u

struct doctor {
	const struct doctor_host *host;
	GPtrArray *findings;
};

static void doctor_finding_free(void *data)
{
	struct doctor_finding *finding = data;

	g_free(finding->found);
	g_free(finding->advice);
	g_free(finding);
}

/* @advice may hold no format; "" for none. */
G_GNUC_PRINTF(5, 6)
static void doctor_say(struct doctor *doctor, enum doctor_level level, const char *subject,
		       const char *advice, const char *format, ...)
{
	struct doctor_finding *finding = g_new0(struct doctor_finding, 1);
	va_list arguments;

	va_start(arguments, format);
	finding->found = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	finding->level = level;
	finding->subject = subject;
	finding->advice = g_strdup(advice);
	g_ptr_array_add(doctor->findings, finding);
}

G_GNUC_PRINTF(2, 3)
static char *doctor_path(const struct doctor *doctor, const char *format, ...)
{
	g_autofree char *rest = NULL;
	va_list arguments;

	va_start(arguments, format);
	rest = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	return g_strconcat(doctor->host->root, rest, NULL);
}

static bool doctor_exists(const struct doctor *doctor, const char *path)
{
	g_autofree char *full = doctor_path(doctor, "%s", path);

	return g_file_test(full, G_FILE_TEST_EXISTS);
}

static char *doctor_read(const struct doctor *doctor, const char *path)
{
	g_autofree char *full = doctor_path(doctor, "%s", path);
	char *text = NULL;

	g_file_get_contents(full, &text, NULL, NULL);
	return text;
}

/* Compares dotted numbers: negative, 0, positive. */
static int doctor_version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		char *a_end, *b_end;
		unsigned long left = strtoul(a, &a_end, 10), right = strtoul(b, &b_end, 10);

		if (left != right)
			return left < right ? -1 : 1;
		if (*a_end != '.' || *b_end != '.')
			return 0;
		a = a_end + 1;
		b = b_end + 1;
	}
	return 0;
}

/* ---- kernel ---- */

static char *doctor_gunzip(const char *path)
{
	g_autoptr(GFile) file = g_file_new_for_path(path);
	g_autoptr(GFileInputStream) raw = g_file_read(file, NULL, NULL);
	g_autoptr(GZlibDecompressor) gzip = g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP);
	g_autoptr(GOutputStream) memory = g_memory_output_stream_new_resizable();
	g_autoptr(GInputStream) plain = NULL;

	if (!raw)
		return NULL;
	plain = g_converter_input_stream_new(G_INPUT_STREAM(raw), G_CONVERTER(gzip));
	if (g_output_stream_splice(memory, plain, G_OUTPUT_STREAM_SPLICE_NONE, NULL, NULL) < 0 ||
	    !g_output_stream_write_all(memory, "", 1, NULL, NULL, NULL) ||
	    !g_output_stream_close(memory, NULL, NULL))
		return NULL;
	return g_memory_output_stream_steal_data(G_MEMORY_OUTPUT_STREAM(memory));
}

static char *doctor_kernel_config(const struct doctor *doctor)
{
	g_autofree char *boot = g_strdup_printf("/boot/config-%s", doctor->host->kernel_release);
	g_autofree char *modules =
		g_strdup_printf("/lib/modules/%s/config", doctor->host->kernel_release);
	g_autofree char *proc = doctor_path(doctor, "/proc/config.gz");
	char *text = doctor_read(doctor, boot);

	if (!text)
		text = doctor_read(doctor, modules);
	return text ? text : doctor_gunzip(proc);
}

static bool doctor_config_has(const char *config, const char *option)
{
	for (const char *at = strstr(config, option); at; at = strstr(at + 1, option)) {
		const char *value = at + strlen(option);

		if ((at == config || at[-1] == '\n') && value[0] == '=' &&
		    (value[1] == 'y' || value[1] == 'm'))
			return true;
	}
	return false;
}

static void doctor_kernel(struct doctor *doctor)
{
	static const struct {
		const char *option;
		const char *instead;	/* another that does, or NULL */
		const char *advice;
	} options[] = {
		{ "CONFIG_VFIO", NULL,
		  "use a kernel with CONFIG_VFIO: your distribution's standard one has it" },
		{ "CONFIG_VFIO_MDEV", NULL,
		  "mediated devices are missing: use a kernel with CONFIG_VFIO_MDEV (Debian's and Fedora's standard kernels; cloud flavours often lack it)" },
		{ "CONFIG_VFIO_GROUP", "CONFIG_VFIO_DEVICE_CDEV",
		  "QEMU cannot open VFIO devices: use a kernel with CONFIG_VFIO_GROUP or CONFIG_VFIO_DEVICE_CDEV" },
		{ "CONFIG_VFIO_IOMMU_TYPE1", "CONFIG_IOMMUFD",
		  "guest memory cannot be mapped: use a kernel with CONFIG_VFIO_IOMMU_TYPE1 or CONFIG_IOMMUFD" },
		{ "CONFIG_KVM", NULL, "use a kernel with CONFIG_KVM" },
		{ "CONFIG_EVENTFD", NULL, "use a kernel with CONFIG_EVENTFD" },
		{ "CONFIG_MMU_NOTIFIER", NULL, "use a kernel with CONFIG_MMU_NOTIFIER (CONFIG_KVM selects it)" },
	};
	const char *release = doctor->host->kernel_release;
	g_autofree char *config = doctor_kernel_config(doctor);
	bool complete = true;

	if (doctor_version_compare(release, DOCTOR_KERNEL_MIN) < 0)
		doctor_say(doctor, DOCTOR_ERROR, "kernel",
			   "boot a kernel of " DOCTOR_KERNEL_MIN " or later", "Linux %s is too old",
			   release);
	if (!config) {
		doctor_say(doctor, DOCTOR_NOTE, "kernel", "",
			   "Linux %s; its configuration is neither in /boot nor in /proc/config.gz, so it was not checked",
			   release);
		return;
	}
	for (unsigned int i = 0; i < G_N_ELEMENTS(options); i++) {
		if (doctor_config_has(config, options[i].option) ||
		    (options[i].instead && doctor_config_has(config, options[i].instead)))
			continue;
		complete = false;
		doctor_say(doctor, DOCTOR_ERROR, "kernel", options[i].advice,
			   "Linux %s was built without %s", release, options[i].option);
	}
	if (complete && doctor_version_compare(release, DOCTOR_KERNEL_MIN) >= 0)
		doctor_say(doctor, DOCTOR_GOOD, "kernel", "", "Linux %s has what VFIO mdevs need", release);
}

/* ---- module ---- */

static bool doctor_module_built(const struct doctor *doctor)
{
	g_autofree char *list = g_strdup_printf("/lib/modules/%s/modules.dep",
						doctor->host->kernel_release);
	g_autofree char *text = doctor_read(doctor, list);

	return text && (strstr(text, "/octavo.ko") || g_str_has_prefix(text, "octavo.ko"));
}

static bool doctor_locked_down(const struct doctor *doctor)
{
	g_autofree char *text = doctor_read(doctor, "/sys/kernel/security/lockdown");

	return text && !strstr(text, "[none]");
}

static void doctor_module(struct doctor *doctor)
{
	const char *state = doctor->host->manager ?
				    record_string(doctor->host->manager, "module_state") : "";

	if (g_str_equal(state, "incompatible")) {
		doctor_say(doctor, DOCTOR_ERROR, "module",
			   "install octavo.ko and octavod from one release, then: systemctl stop octavod; modprobe -r octavo; modprobe octavo; systemctl start octavod",
			   "octavo.ko and octavod are of different releases");
		return;
	}
	if (doctor_exists(doctor, "/sys/module/octavo")) {
		doctor_say(doctor, DOCTOR_GOOD, "module", "", "octavo.ko is loaded");
		return;
	}
	if (doctor_module_built(doctor)) {
		doctor_say(doctor, DOCTOR_ERROR, "module",
			   doctor_locked_down(doctor) ?
				   "modprobe octavo; if that says 'Key was rejected', Secure Boot is on: enrol DKMS' key with 'mokutil --import /var/lib/dkms/mok.pub' and boot again" :
				   "modprobe octavo",
			   "octavo.ko is built for Linux %s, but not loaded",
			   doctor->host->kernel_release);
		return;
	}
	doctor_say(doctor, DOCTOR_ERROR, "module",
		   "install the headers of this kernel (Debian: linux-headers-$(uname -r)), then: dkms autoinstall; modprobe octavo",
		   "there is no octavo.ko for Linux %s", doctor->host->kernel_release);
}

/* ---- octavod and its GPUs ---- */

static void doctor_daemon(struct doctor *doctor)
{
	if (doctor->host->daemon)
		doctor_say(doctor, DOCTOR_GOOD, "octavod", "", "octavod runs");
	else
		doctor_say(doctor, DOCTOR_ERROR, "octavod",
			   "systemctl enable --now octavod; if it does not stay: journalctl -u octavod",
			   "octavod does not run (%s): every open of a vGPU is refused",
			   doctor->host->daemon_error ? doctor->host->daemon_error : "no answer");
}

static void doctor_gpus(struct doctor *doctor)
{
	GVariant *gpus = doctor->host->gpus;
	unsigned int usable = 0;

	if (!gpus)
		return;
	for (gsize i = 0; i < g_variant_n_children(gpus); i++) {
		g_autoptr(GVariant) gpu = g_variant_get_child_value(gpus, i);
		const char *address = record_string(gpu, "address");
		const char *name = record_string(gpu, "name");
		const char *state = record_string(gpu, "state");
		const char *reason = record_string(gpu, "reason");

		if (g_str_equal(state, "registered")) {
			usable++;
			doctor_say(doctor, DOCTOR_GOOD, "gpu", reason, "%s (%s): %u of 8 eighths used",
				   address, name, (unsigned int)record_number(gpu, "eighths_used"));
		} else if (g_str_equal(state, "disabled")) {
			doctor_say(doctor, DOCTOR_NOTE, "gpu", "", "%s (%s): disabled by the configuration",
				   address, name);
		} else {
			doctor_say(doctor, DOCTOR_WARNING, "gpu", reason, "%s (%s): %s", address,
				   name, state);
		}
	}
	if (!usable)
		doctor_say(doctor, DOCTOR_ERROR, "gpu",
			   "see the lines above; 'octavoctl gpus' shows all, /etc/octavo/octavo.conf says which are folded",
			   "no GPU of this host can be folded now");
}

/* ---- KVM, renderer, limits ---- */

static void doctor_kvm(struct doctor *doctor)
{
	switch (doctor->host->kvm) {
	case KVM_RUNS:
		doctor_say(doctor, DOCTOR_GOOD, "kvm", "", "/dev/kvm runs guests (tried)");
		break;
	case KVM_ABSENT:
		doctor_say(doctor, DOCTOR_ERROR, "kvm",
			   "switch on virtualization (AMD-V or VT-x) in the firmware, then: modprobe kvm_amd, or modprobe kvm_intel",
			   "there is no /dev/kvm");
		break;
	case KVM_DENIED:
		doctor_say(doctor, DOCTOR_NOTE, "kvm", "",
			   "/dev/kvm is there, but this user may not open it, so it was not tried; run doctor as root");
		break;
	default:
		doctor_say(doctor, DOCTOR_ERROR, "kvm",
			   "this is often a VM without nested virtualization: switch it on in the outer host (kvm_amd nested=1) or use another host",
			   "/dev/kvm is there, but does not run a guest (tried)");
	}
	if (doctor_exists(doctor, "/sys/class/iommu"))
		return;
	doctor_say(doctor, DOCTOR_NOTE, "iommu", "", "no IOMMU; Octavo needs none");
}

static unsigned int doctor_count(const struct doctor *doctor, const char *folder, const char *prefix,
				 const char *suffix)
{
	g_autofree char *path = doctor_path(doctor, "%s", folder);
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	unsigned int count = 0;
	const char *name;

	while (dir && (name = g_dir_read_name(dir)))
		count += g_str_has_prefix(name, prefix) && g_str_has_suffix(name, suffix);
	return count;
}

static void doctor_renderer(struct doctor *doctor)
{
	static const char *const servers[] = {
		"/usr/libexec/virgl_render_server",
		"/usr/lib/x86_64-linux-gnu/virgl_render_server",
		"/usr/lib/virglrenderer/virgl_render_server",
		"/usr/lib/virgl_render_server",
	};
	bool server = false;

	for (unsigned int i = 0; i < G_N_ELEMENTS(servers); i++)
		server |= doctor_exists(doctor, servers[i]);
	if (!server)
		doctor_say(doctor, DOCTOR_WARNING, "renderer",
			   "install virglrenderer's render server (Debian: virgl-server; Fedora: virglrenderer)",
			   "there is no virgl_render_server: guests get no Vulkan");
	if (!doctor_count(doctor, "/usr/share/vulkan/icd.d", "", ".json") &&
	    !doctor_count(doctor, "/etc/vulkan/icd.d", "", ".json"))
		doctor_say(doctor, DOCTOR_WARNING, "renderer",
			   "install the GPU's Vulkan driver (Debian: mesa-vulkan-drivers)",
			   "no Vulkan driver is installed: guests get no Vulkan");
	else if (server)
		doctor_say(doctor, DOCTOR_GOOD, "renderer", "",
			   "render server and a Vulkan driver are installed");
	if (!doctor_count(doctor, "/dev/dri", "renderD", ""))
		doctor_say(doctor, DOCTOR_WARNING, "renderer",
			   "load the GPU's DRM driver; with a software renderer only this is as it should be",
			   "there is no render node in /dev/dri: rendering is done by the CPU");
}

static void doctor_memlock(struct doctor *doctor)
{
	g_autofree char *text = doctor_read(doctor, "/sys/module/octavo/parameters/guest_pin_pages");
	guint64 need = text ? g_ascii_strtoull(text, NULL, 10) * DOCTOR_PAGE_BYTES : 0;
	guint64 limit = doctor->host->memlock_bytes;

	if (limit == G_MAXUINT64)
		doctor_say(doctor, DOCTOR_GOOD, "memlock", "",
			   "this user may lock any amount of memory; libvirt sets its guests' limit itself");
	else if (limit < need)
		doctor_say(doctor, DOCTOR_WARNING, "memlock",
			   "libvirt sets its guests' limit itself; for QEMU started by hand raise it: ulimit -l, or LimitMEMLOCK= of its unit",
			   "this user may lock %" G_GUINT64_FORMAT " KiB, a vGPU pins up to %" G_GUINT64_FORMAT " KiB of its guest's memory: large transfers will fail",
			   limit >> 10, need >> 10);
	else
		doctor_say(doctor, DOCTOR_GOOD, "memlock", "",
			   "this user may lock %" G_GUINT64_FORMAT " KiB; libvirt sets its guests' limit itself",
			   limit >> 10);
}

static void doctor_versions(struct doctor *doctor)
{
	const struct doctor_host *host = doctor->host;

	if (!host->qemu_version)
		doctor_say(doctor, DOCTOR_WARNING, "qemu", "install QEMU (Debian: qemu-system-x86)",
			   "qemu-system-x86_64 is not installed");
	else if (doctor_version_compare(host->qemu_version, DOCTOR_QEMU_MIN) < 0)
		doctor_say(doctor, DOCTOR_WARNING, "qemu",
			   "use QEMU " DOCTOR_QEMU_MIN " or later, which Octavo is tested with",
			   "QEMU %s is older than what was tested", host->qemu_version);
	else
		doctor_say(doctor, DOCTOR_GOOD, "qemu", "", "QEMU %s", host->qemu_version);

	if (host->libvirt_version)
		doctor_say(doctor, DOCTOR_GOOD, "libvirt", "", "libvirt %s", host->libvirt_version);
	else
		doctor_say(doctor, DOCTOR_NOTE, "libvirt", "", "libvirt is not installed; QEMU alone will do");

	if (host->mdevctl_version)
		doctor_say(doctor, DOCTOR_GOOD, "mdevctl", "", "mdevctl %s", host->mdevctl_version);
	else
		doctor_say(doctor, DOCTOR_WARNING, "mdevctl",
			   "install mdevctl: it keeps vGPUs over a reboot",
			   "mdevctl is not installed");
}

/* ---- what went wrong lately ---- */

/* The last lines of the kernel's log that tell of an open that failed, newest last. */
static void doctor_kernel_log(struct doctor *doctor)
{
	g_auto(GStrv) lines = NULL;
	g_autoptr(GPtrArray) refusals = g_ptr_array_new();

	if (!doctor->host->kernel_log) {
		doctor_say(doctor, DOCTOR_NOTE, "log", "",
			   "the kernel's log may not be read by this user; run doctor as root to see refused opens");
		return;
	}
	lines = g_strsplit(doctor->host->kernel_log, "\n", -1);
	for (unsigned int i = 0; lines[i]; i++)
		if (strstr(lines[i], "octavo") && strstr(lines[i], "open by"))
			g_ptr_array_add(refusals, lines[i]);
	for (unsigned int i = refusals->len > DOCTOR_REFUSALS ? refusals->len - DOCTOR_REFUSALS : 0;
	     i < refusals->len; i++)
		doctor_say(doctor, DOCTOR_NOTE, "log", "", "kernel: %s",
			   (const char *)g_ptr_array_index(refusals, i));
}

static void doctor_events(struct doctor *doctor)
{
	GVariantIter iter;
	const char *type, *uuid, *message;

	if (!doctor->host->events)
		return;
	g_variant_iter_init(&iter, doctor->host->events);
	while (g_variant_iter_next(&iter, "(x&s&s&s&s)", NULL, &type, &uuid, NULL, &message))
		if (g_str_equal(type, "refused"))
			doctor_say(doctor, DOCTOR_NOTE, "log", "", "octavod: vGPU %s: %s", uuid, message);
}

GPtrArray *doctor_examine(const struct doctor_host *host)
{
	struct doctor doctor = {
		.host = host,
		.findings = g_ptr_array_new_with_free_func(doctor_finding_free),
	};

	doctor_kernel(&doctor);
	doctor_module(&doctor);
	doctor_daemon(&doctor);
	doctor_gpus(&doctor);
	doctor_kvm(&doctor);
	doctor_renderer(&doctor);
	doctor_memlock(&doctor);
	doctor_versions(&doctor);
	doctor_kernel_log(&doctor);
	doctor_events(&doctor);
	return doctor.findings;
}

enum doctor_level doctor_worst(const GPtrArray *findings)
{
	enum doctor_level worst = DOCTOR_GOOD;

	for (unsigned int i = 0; i < findings->len; i++) {
		const struct doctor_finding *finding = g_ptr_array_index(findings, i);

		worst = MAX(worst, finding->level);
	}
	return worst;
}

const char *doctor_level_name(enum doctor_level level)
{
	static const char *const names[] = {
		[DOCTOR_GOOD] = "good",
		[DOCTOR_NOTE] = "note",
		[DOCTOR_WARNING] = "warning",
		[DOCTOR_ERROR] = "error",
	};

	return names[level];
}
