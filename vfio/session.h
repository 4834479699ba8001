/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.h - one VFIO open of a vGPU, as its worker holds it
 *
 * A thin skin over the session fd of mdev/octavo.h: that header says what each call means. Here are
 * the mappings (guest memory, status page, console region) and 0 or -errno instead of errno.
 *
 * Threads: after session_init() every function may be called from any thread.
 */
#ifndef OCTAVO_VFIO_SESSION_H
#define OCTAVO_VFIO_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "mdev/octavo.h"
#include "vfio/guest.h"

struct session {
	int fd;
	struct guest guest;
	const volatile struct octavo_status *status;
	uint32_t *console;		/* OCTAVO_CONSOLE_BYTES */
	struct octavo_session_info info;	/* at the time of session_init() */
	uint32_t generation;		/* that the worker serves; set by session_reset_ack() */
};

/*
 * Takes over @fd. -EPROTO: the module speaks another version of the interface. The fd is made
 * non-blocking; on failure it stays open.
 */
int session_init(struct session *session, int fd);
void session_finish(struct session *session);

int session_info(struct session *session, struct octavo_session_info *info);
int session_offer(struct session *session, uint64_t features, uint32_t scanouts, uint32_t capsets);
int session_ready(struct session *session);
int session_reset_ack(struct session *session, uint32_t generation);
int session_fail(struct session *session);
int session_config_event(struct session *session, uint32_t events);

int session_queue_get(struct session *session, uint32_t index, struct octavo_queue *queue);
int session_kick_set(struct session *session, uint32_t index, int eventfd);
int session_interrupt(struct session *session, uint32_t index);

int session_console_set(struct session *session, uint32_t width, uint32_t height, uint32_t stride);

/* Number of records read, 0 at the session's end, -EAGAIN when there is nothing now. */
int session_events(struct session *session, struct octavo_event *events, unsigned int max);

#endif
