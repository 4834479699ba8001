/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * conf - what /etc/octavo/octavo.conf and octavo.conf.d/ say
 *
 * The format is that of GKeyFile. Group [octavod] is about the daemon, [gpu any] about every GPU,
 * [gpu ADDRESS] about one; a key that a GPU's own group does not have is taken from [gpu any], then
 * from the defaults. Files of octavo.conf.d/ that end in .conf follow in the order of their names,
 * and a later file's key wins. octavo.conf(5) is the manual.
 *
 * A file with one bad line is refused as a whole: half a configuration is nobody's intention.
 */
#ifndef OCTAVO_DAEMON_CONF_H
#define OCTAVO_DAEMON_CONF_H

#include "daemon/ident.h"

#define CONF_SLICE_MIN_US	1000u
#define CONF_SLICE_MAX_US	30000u
#define CONF_BUSY_POLL_US	200u
#define CONF_BUSY_POLL_MAX_US	10000u
#define CONF_WATCHDOG_US	10000000u
#define CONF_WATCHDOG_MIN_US	1000000u
#define CONF_WATCHDOG_MAX_US	600000000u
#define CONF_VRAM_MIN_BYTES	(8ULL * 16 << 20)	/* what the module takes at least */

enum conf_renderer {
	CONF_RENDERER_AUTO,	/* what the host can do: venus and virgl, virgl, or none */
	CONF_RENDERER_2D,
	CONF_RENDERER_VIRGL,
	CONF_RENDERER_VENUS,	/* venus and virgl; an error where the host has no Vulkan */
};

enum conf_policy {
	CONF_POLICY_BEST_EFFORT,
	CONF_POLICY_EQUAL_SHARE,
	CONF_POLICY_FIXED_SHARE,
	CONF_POLICY_ELASTIC,
};

enum conf_launcher {
	CONF_LAUNCHER_AUTO,	/* systemd where it is the host's init, else fork */
	CONF_LAUNCHER_SYSTEMD,	/* octavo-vgpu@UUID.service with its sandbox */
	CONF_LAUNCHER_FORK,	/* octavod's own child */
};

struct conf_gpu {
	struct pci_address address;	/* of [gpu ADDRESS] */
	bool enable;
	uint64_t vram_bytes;		/* 0: found out by octavod */
	unsigned int heads;
	enum conf_renderer renderer;
	char *vulkan_device;		/* deviceUUID or part of a name; NULL: by PCI address */
	enum conf_policy policy;
	unsigned int slice_us;
	unsigned int busy_poll_us;	/* of its workers; 0: none */
	unsigned int watchdog_us;	/* work that takes longer is ended */
	unsigned int given;		/* which keys this group has; conf.c's own */
};

struct conf {
	char *worker;			/* absolute path of octavo-vgpu, for CONF_LAUNCHER_FORK */
	enum conf_launcher launcher;
	GLogLevelFlags log_level;	/* the least urgent level that is written */
	unsigned int metrics_port;	/* 0: no endpoint */
	char *metrics_address;
	struct conf_gpu any;
	GArray *gpus;			/* struct conf_gpu, those with a group of their own */
};

#define CONF_ERROR (conf_error_quark())
GQuark conf_error_quark(void);
enum conf_error {
	CONF_ERROR_FILE,	/* cannot be read, or no key file at all */
	CONF_ERROR_VALUE,	/* group, key or value is not allowed */
};

/*
 * Reads @path and @path.d/ (a file that does not exist says nothing, so both may be missing).
 * NULL with an error that names file, line, what was found and what is allowed.
 */
struct conf *conf_load(const char *path, GError **error);
void conf_free(struct conf *conf);

/* What holds for one GPU; belongs to @conf. */
const struct conf_gpu *conf_gpu(const struct conf *conf, const struct pci_address *address);
bool conf_has_gpu(const struct conf *conf, const struct pci_address *address);

const char *conf_renderer_name(enum conf_renderer renderer);
const char *conf_policy_name(enum conf_policy policy);
bool conf_policy_parse(const char *name, enum conf_policy *policy);

/* "512 MiB", "4GiB", "1073741824"; false if it is no size or does not fit. */
bool conf_size_parse(const char *text, uint64_t *bytes);

#endif /* OCTAVO_DAEMON_CONF_H */
