// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/share.h"

#include <errno.h>
#include <gio/gio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/keep.h"
#include "mdev/octavo.h"
#include "scheduler/gate.h"

static char *share_kept(const char *name)
{
	return g_strconcat("gate-", name, NULL);
}

static bool share_add(struct share *share, struct arbiter *arbiter, int fd, unsigned int eighths,
		      uint64_t vram_bytes, const char *name, GError **error)
{
	int id = arbiter_add_vgpu(arbiter, fd, eighths * POLICY_WHOLE / OCTAVO_EIGHTHS, name, NULL);

	if (id < 0) {
		g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(-id),
			    "the arbiter refused its gate: %s", g_strerror(-id));
		close(fd);
		return false;
	}
	/* an adopted page may have been written to by the worker */
	arbiter_set_share(arbiter, id, vram_bytes);
	*share = (struct share){ .arbiter = arbiter, .fd = fd, .id = id, .kept = share_kept(name) };
	return true;
}

bool share_open(struct share *share, struct arbiter *arbiter, unsigned int eighths,
		uint64_t vram_bytes, const char *name, GError **error)
{
	int fd = gate_create(vram_bytes);

	if (fd < 0) {
		g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(-fd),
			    "cannot make a gate: %s", g_strerror(-fd));
		return false;
	}
	if (!share_add(share, arbiter, fd, eighths, vram_bytes, name, error))
		return false;
	keep_put(share->kept, fd);
	return true;
}

bool share_adopt(struct share *share, struct arbiter *arbiter, int pidfd, unsigned int eighths,
		 uint64_t vram_bytes, const char *name, GError **error)
{
	g_autofree char *kept = share_kept(name);
	int fd = keep_take(kept);

	if (fd < 0)
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, SHARE_WORKER_FD, 0);
	if (fd < 0) {
		g_set_error(error, G_IO_ERROR, (int)g_io_error_from_errno(errno),
			    "cannot take its gate back: %s", g_strerror(errno));
		return false;
	}
	return share_add(share, arbiter, fd, eighths, vram_bytes, name, error);
}

void share_leave(struct share *share)
{
	if (!share->arbiter)
		return;
	arbiter_remove_vgpu(share->arbiter, share->id);
	close(share->fd);
	g_free(share->kept);
	*share = (struct share){ 0 };
}

void share_close(struct share *share)
{
	if (share->arbiter)
		keep_drop(share->kept);
	share_leave(share);
}
