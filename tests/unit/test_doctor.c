// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/doctor.h"

#include <string.h>

#include "tests/unit/folder.h"
#include "tests/unit/suite.h"

#define RELEASE "6.12.57+deb13-amd64"
#define CONFIG                                                                                     \
	"CONFIG_VFIO=m\nCONFIG_VFIO_MDEV=m\nCONFIG_VFIO_GROUP=y\nCONFIG_VFIO_IOMMU_TYPE1=m\n"      \
	"CONFIG_KVM=m\nCONFIG_EVENTFD=y\nCONFIG_MMU_NOTIFIER=y\n"

/* A host on which nothing is wrong; @root is filled, the facts are set. */
static struct doctor_host good_host(const char *root)
{
	folder_write(root, "boot/config-" RELEASE, CONFIG);
	folder_write(root, "sys/module/octavo/parameters/guest_pin_pages", "16384\n");
	folder_write(root, "usr/libexec/virgl_render_server", "");
	folder_write(root, "usr/share/vulkan/icd.d/x.json", "");
	folder_write(root, "dev/dri/renderD128", "");
	folder_write(root, "sys/class/iommu/x", "");
	return (struct doctor_host){
		.root = root,
		.kernel_release = RELEASE,
		.kvm = KVM_RUNS,
		.daemon = true,
		.memlock_bytes = G_MAXUINT64,
		.qemu_version = "11.1.0",
		.libvirt_version = "12.9.0",
		.mdevctl_version = "1.4.0",
		.kernel_log = "",
	};
}

/* Whether some finding of @subject has this level and @text in what was found or what to do. */
static bool finds(const struct doctor_host *host, enum doctor_level level, const char *subject,
		  const char *text)
{
	g_autoptr(GPtrArray) findings = doctor_examine(host);

	for (unsigned int i = 0; i < findings->len; i++) {
		const struct doctor_finding *finding = g_ptr_array_index(findings, i);

		if (finding->level == level && g_str_equal(finding->subject, subject) &&
		    (strstr(finding->found, text) || strstr(finding->advice, text)))
			return true;
	}
	return false;
}

static enum doctor_level worst(const struct doctor_host *host)
{
	g_autoptr(GPtrArray) findings = doctor_examine(host);

	return doctor_worst(findings);
}

static void good(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);

	CU_ASSERT_EQUAL(worst(&host), DOCTOR_GOOD);
	folder_free(root);
}

static void kernel(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);

	folder_write(root, "boot/config-" RELEASE,
		     "CONFIG_VFIO=m\n# CONFIG_VFIO_MDEV is not set\nCONFIG_VFIO_MDEV_X=y\n");
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "kernel", "without CONFIG_VFIO_MDEV"));
	CU_ASSERT_FALSE(finds(&host, DOCTOR_ERROR, "kernel", "without CONFIG_VFIO,"));
	folder_write(root, "boot/config-" RELEASE,
		     CONFIG "# CONFIG_VFIO_GROUP is not set\nCONFIG_VFIO_DEVICE_CDEV=y\n");
	CU_ASSERT_EQUAL(worst(&host), DOCTOR_GOOD);
	host.kernel_release = "6.1.0-25-amd64";
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "kernel", "too old"));
	CU_ASSERT_TRUE(finds(&host, DOCTOR_NOTE, "kernel", "not checked"));
	host.kernel_release = "7.3.1";
	CU_ASSERT_FALSE(finds(&host, DOCTOR_ERROR, "kernel", "too old"));
	folder_free(root);
}

static void module(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);
	g_autofree char *loaded = g_build_filename(root, "sys/module/octavo", NULL);
	GVariantDict dict;

	folder_free(g_steal_pointer(&loaded));
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "module", "no octavo.ko for Linux " RELEASE));
	folder_write(root, "lib/modules/" RELEASE "/modules.dep",
		     "updates/dkms/octavo.ko.xz: kernel/drivers/vfio/mdev/mdev.ko.xz\n");
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "module", "modprobe octavo"));
	CU_ASSERT_FALSE(finds(&host, DOCTOR_ERROR, "module", "Secure Boot"));
	folder_write(root, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "module", "Secure Boot"));

	g_variant_dict_init(&dict, NULL);
	g_variant_dict_insert(&dict, "module_state", "s", "incompatible");
	host.manager = g_variant_ref_sink(g_variant_dict_end(&dict));
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "module", "different releases"));
	g_variant_unref(host.manager);
	folder_free(root);
}

static void daemon_absent(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);

	host.daemon = false;
	host.daemon_error = "no answer";
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "octavod", "systemctl enable --now octavod"));
	folder_free(root);
}

static void gpus(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);

	host.gpus = g_variant_ref_sink(g_variant_new_parsed(
		"[{'address': <'0000:01:00.0'>, 'state': <'refused'>, 'reason': <'bound to vfio-pci'>}]"));
	CU_ASSERT_TRUE(finds(&host, DOCTOR_WARNING, "gpu", "bound to vfio-pci"));
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "gpu", "no GPU"));
	g_variant_unref(host.gpus);
	host.gpus = g_variant_ref_sink(g_variant_new_parsed(
		"[{'address': <'0000:01:00.0'>, 'state': <'registered'>, 'eighths_used': <uint32 3>}]"));
	CU_ASSERT_EQUAL(worst(&host), DOCTOR_GOOD);
	CU_ASSERT_TRUE(finds(&host, DOCTOR_GOOD, "gpu", "3 of 8"));
	g_variant_unref(host.gpus);
	folder_free(root);
}

static void kvm(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);

	host.kvm = KVM_BROKEN;
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "kvm", "does not run a guest"));
	host.kvm = KVM_ABSENT;
	CU_ASSERT_TRUE(finds(&host, DOCTOR_ERROR, "kvm", "modprobe kvm_amd"));
	host.kvm = KVM_DENIED;
	CU_ASSERT_EQUAL(worst(&host), DOCTOR_NOTE);
	folder_free(root);
}

static void memlock_and_versions(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);

	host.memlock_bytes = 4 << 20;
	CU_ASSERT_TRUE(finds(&host, DOCTOR_WARNING, "memlock", "4096 KiB"));
	host.memlock_bytes = 64 << 20;
	CU_ASSERT_FALSE(finds(&host, DOCTOR_WARNING, "memlock", ""));
	host.qemu_version = "9.2.1";
	CU_ASSERT_TRUE(finds(&host, DOCTOR_WARNING, "qemu", "9.2.1"));
	host.qemu_version = NULL;
	CU_ASSERT_TRUE(finds(&host, DOCTOR_WARNING, "qemu", "install QEMU"));
	host.mdevctl_version = NULL;
	CU_ASSERT_TRUE(finds(&host, DOCTOR_WARNING, "mdevctl", "install mdevctl"));
	folder_free(root);
}

static void refusals(void)
{
	char *root = folder_new();
	struct doctor_host host = good_host(root);

	host.kernel_log = "octavo: parent added\n"
			  "octavo: 83b8f4f2: open by qemu (7) failed: octavod is not running\n";
	CU_ASSERT_TRUE(finds(&host, DOCTOR_NOTE, "log", "octavod is not running"));
	CU_ASSERT_FALSE(finds(&host, DOCTOR_NOTE, "log", "parent added"));
	host.kernel_log = NULL;
	CU_ASSERT_TRUE(finds(&host, DOCTOR_NOTE, "log", "run doctor as root"));
	folder_free(root);
}

SUITE_RUN("doctor",
	  { "a good host has nothing to complain of", good },
	  { "a kernel that is too old or lacks an option is named", kernel },
	  { "a module that is not built, not loaded or of another release", module },
	  { "octavod that does not run", daemon_absent },
	  { "a host on which no GPU can be folded", gpus },
	  { "KVM that is absent, denied or runs no guest", kvm },
	  { "a low memlock limit, old or missing programs", memlock_and_versions },
	  { "failed opens of the kernel's log are shown", refusals })
