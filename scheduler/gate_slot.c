// SPDX-License-Identifier: LGPL-2.1-or-later
/* Slots: who is alive, according to the kernel's record locks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scheduler/gate_private.h"

static struct flock slot_range(int slot, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = GATE_PAGE_SIZE + slot,
		.l_len = 1,
	};
}

static bool slot_try(struct gate *gate, int slot)
{
	struct flock range = slot_range(slot, F_WRLCK);

	return fcntl(gate->fd, F_SETLK, &range) == 0;
}

static void slot_drop(struct gate *gate, int slot)
{
	struct flock range = slot_range(slot, F_UNLCK);

	fcntl(gate->fd, F_SETLK, &range);
}

int gate_slots(const struct gate_page *page)
{
	uint32_t used = page->slots_used;

	return used < GATE_SLOTS ? (int)used : GATE_SLOTS;
}

static void slot_clear(struct gate_slot *slot)
{
	slot->in_flight = 0;
	slot->waiting = 0;
	slot->blocked = 0;
	slot->charged_bytes = 0;
	slot->pid = 0;
}

static void slots_used_at_least(struct gate_page *page, uint32_t used)
{
	uint32_t now = page->slots_used;

	while (now < used && !atomic_compare_exchange_weak(&page->slots_used, &now, used))
		;
}

int gate_register(struct gate *gate)
{
	int err = -EUSERS;

	pthread_mutex_lock(&gate->slot_mutex);
	if (gate->slot >= 0) {
		/* held already, or dropped with a descriptor that somebody closed: take it again */
		if (slot_try(gate, gate->slot))
			err = 0;
	}
	for (int i = 0; err && i < GATE_SLOTS; i++) {
		struct gate_slot *slot = &gate->page->slots[i];

		if (!slot_try(gate, i))
			continue;
		slot_clear(slot);
		slot->generation++;
		slot->pid = getpid();
		slots_used_at_least(gate->page, (uint32_t)i + 1);
		gate->slot = i;
		err = 0;
	}
	pthread_mutex_unlock(&gate->slot_mutex);
	return err;
}

pid_t gate_slot_pid(struct gate *gate, int slot)
{
	struct flock range = slot_range(slot, F_WRLCK);

	if (fcntl(gate->fd, F_GETLK, &range) || range.l_type == F_UNLCK)
		return 0;
	return range.l_pid;
}

bool gate_slot_alive(struct gate *gate, int slot)
{
	/* F_GETLK does not speak of one's own locks */
	return slot == gate->slot || gate_slot_pid(gate, slot) != 0;
}

int gate_slot_kill(struct gate *gate, int slot)
{
	pid_t pid = gate_slot_pid(gate, slot);
	int pidfd, err = -ESRCH;

	if (pid <= 0)
		return -ESRCH;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	/* the slot is still that process's: then the pidfd is, too */
	if (gate_slot_pid(gate, slot) == pid)
		err = syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) ? -errno : 0;
	close(pidfd);
	return err;
}

bool gate_is_registered(struct gate *gate, pid_t pid)
{
	for (int i = 0; i < gate_slots(gate->page); i++)
		if (gate_slot_pid(gate, i) == pid)
			return true;
	return false;
}

int gate_reap(struct gate *gate)
{
	int reaped = 0;

	pthread_mutex_lock(&gate->slot_mutex);
	for (int i = 0; i < gate_slots(gate->page); i++) {
		struct gate_slot *slot = &gate->page->slots[i];

		if (i == gate->slot || (slot->pid == 0 && slot->in_flight == 0 &&
					slot->waiting == 0 && slot->charged_bytes == 0))
			continue;
		if (!slot_try(gate, i))
			continue;
		slot_clear(slot);
		slot_drop(gate, i);
		reaped++;
	}
	pthread_mutex_unlock(&gate->slot_mutex);
	return reaped;
}
