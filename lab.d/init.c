// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * First program of the lab's machines, in the initial ramdisk: loads the few modules that the
 * root needs, mounts it, lays /install over it and starts the system's own init.
 *
 * Kernel command line:
 *   lab.root=/dev/vda   block device with the ext4 root
 *   lab.overlay         mount the root read-only with a tmpfs over it
 *   lab.init=PATH       program to start (/sbin/init)
 *   lab.probe           print a line and power off: tells whether an accelerator works at all
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/module.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROOT_WAIT_MS 20000

static char cmdline[4096];

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "lab init: %s: %s\n", what, strerror(errno));
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

static const char *option(const char *name)
{
	static char copy[sizeof(cmdline)];
	size_t len = strlen(name);

	strcpy(copy, cmdline);
	for (char *word = strtok(copy, " \n"); word; word = strtok(NULL, " \n")) {
		if (strncmp(word, name, len))
			continue;
		if (word[len] == '=')
			return word + len + 1;
		if (!word[len])
			return word + len;
	}
	return NULL;
}

static void mount_or_die(const char *what, const char *where, const char *type,
			 unsigned long flags, const char *data)
{
	mkdir(where, 0755);
	if (mount(what, where, type, flags, data))
		die(where);
}

/* /modules/order names the files in the order that their dependencies ask for. */
static void modules_load(void)
{
	FILE *order = fopen("/modules/order", "re");
	char name[128], path[160];

	if (!order)
		die("/modules/order");
	while (fscanf(order, "%127s", name) == 1) {
		int fd;

		snprintf(path, sizeof(path), "/modules/%s", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die(path);
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			die(path);
		close(fd);
	}
	fclose(order);
}

static void device_wait(const char *path)
{
	const struct timespec step = { .tv_nsec = 5000000 };

	for (int ms = 0; access(path, F_OK); ms += 5) {
		if (ms >= ROOT_WAIT_MS)
			die(path);
		nanosleep(&step, NULL);
	}
}

static void file_copy(int from, int to, const char *name, mode_t mode)
{
	int in = openat(from, name, O_RDONLY | O_CLOEXEC);
	int out;
	char buf[65536];
	ssize_t n;

	unlinkat(to, name, 0);
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (in < 0 || out < 0)
		die(name);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			die(name);
	if (n < 0 || fchmod(out, mode & 07777))
		die(name);
	close(in);
	close(out);
}

static void tree_copy(int from, int to)
{
	DIR *dir = fdopendir(dup(from));
	struct dirent *entry;

	if (!dir)
		die("/install");
	while ((entry = readdir(dir))) {
		const char *name = entry->d_name;
		struct stat st;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
			die(name);
		if (S_ISDIR(st.st_mode)) {
			int sub_from, sub_to;

			mkdirat(to, name, st.st_mode & 07777);
			sub_from = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			sub_to = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (sub_from < 0 || sub_to < 0)
				die(name);
			tree_copy(sub_from, sub_to);
			close(sub_from);
			close(sub_to);
		} else if (S_ISLNK(st.st_mode)) {
			char target[1024] = "";

			if (readlinkat(from, name, target, sizeof(target) - 1) < 0)
				die(name);
			unlinkat(to, name, 0);
			if (symlinkat(target, to, name))
				die(name);
		} else if (S_ISREG(st.st_mode)) {
			file_copy(from, to, name, st.st_mode);
		}
	}
	closedir(dir);
}

int main(void)
{
	const char *path, *init;
	char device[64];
	int from, to;
	FILE *f;

	mount_or_die("dev", "/dev", "devtmpfs", 0, NULL);
	mount_or_die("proc", "/proc", "proc", 0, NULL);
	mount_or_die("sys", "/sys", "sysfs", 0, NULL);
	f = fopen("/proc/cmdline", "re");
	if (!f || !fgets(cmdline, sizeof(cmdline), f))
		die("/proc/cmdline");
	fclose(f);
	if (option("lab.probe")) {
		dprintf(STDOUT_FILENO, "octavo lab: accelerator works\n");
		reboot(RB_POWER_OFF);
	}

	modules_load();
	path = option("lab.root");
	snprintf(device, sizeof(device), "%s", path ? path : "/dev/vda");
	device_wait(device);
	if (option("lab.overlay")) {
		mount_or_die("layer", "/layer", "tmpfs", 0, "mode=0755");
		mount_or_die(device, "/lower", "ext4", MS_RDONLY, "noload");
		mkdir("/layer/upper", 0755);
		mkdir("/layer/work", 0755);
		mount_or_die("root", "/root", "overlay", 0,
			     "lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work");
	} else {
		mount_or_die(device, "/root", "ext4", MS_NOATIME, NULL);
	}

	from = open("/install", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from >= 0) {
		to = open("/root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (to < 0)
			die("/root");
		tree_copy(from, to);
		close(from);
		close(to);
	}

	if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) ||
	    mount("/proc", "/root/proc", NULL, MS_MOVE, NULL) ||
	    mount("/sys", "/root/sys", NULL, MS_MOVE, NULL) || chdir("/root") ||
	    mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		die("switching to the root");
	init = option("lab.init");
	dprintf(STDOUT_FILENO, "lab: root is mounted\n");
	init = init ? init : "/sbin/init";
	execl(init, init, (char *)NULL);
	die(init);
}
