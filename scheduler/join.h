/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Joining: how a host process or container gets a gate from whoever runs the GPU's arbiter.
 *
 * A Unix socket, SOCK_SEQPACKET, one message a request and one an answer, both text:
 *
 *	join profile=1_4 name=NAME [policy=POLICY]	answer: ok, with the gate's descriptor
 *							(SCM_RIGHTS); or: error MESSAGE
 *	status						answer: lines of text, see octavo-run --status
 *	log						answer: ok, with a descriptor of the slice log
 *
 * A vGPU made by a join lives as long as a connection that joined it. Those who join with the same
 * NAME (and profile) share one vGPU; without a name each connection has its own. The server may be
 * octavod (JOIN_SOCKET_SYSTEM) or the one that octavo-run starts when there is none. policy= changes
 * the policy of the GPU only on the latter: octavod's belongs to its administrator.
 */
#ifndef OCTAVO_SCHEDULER_JOIN_H
#define OCTAVO_SCHEDULER_JOIN_H

#include <stddef.h>
#include <stdint.h>

#define JOIN_SOCKET_SYSTEM "/run/octavo/join"
#define JOIN_MESSAGE_MAX   65536

/*
 * Client. request NULL: "join profile=$OCTAVO_PROFILE name=$OCTAVO_NAME". Returns the descriptor
 * that came with the answer; the connection is *connection, for the caller to close when it
 * leaves. Negative errno: of connect(), or -EPROTO with the server's message on stderr.
 */
int join_gate(const char *path, const char *request, int *connection);
/* Send one request, put the answer's text in answer; *fd is what came with it, or -1. */
int join_ask(int connection, const char *request, char *answer, size_t size, int *fd);
/* Connect: the descriptor, or negative errno. */
int join_connect(const char *path);

/* Server: a thread of its own that serves path from an arbiter. */
struct arbiter;
struct join_server;

struct join_config {
	const char *path;	/* removed first if nobody listens there */
	struct arbiter *arbiter; /* not owned; outlives the server */
	uint64_t memory_bytes;	/* of the GPU: a 1/4 gets a quarter; 0: not limited */
	uint32_t mode;		/* of the socket, such as 0600 */
	int may_set_policy;	/* see above */
};

/* -EADDRINUSE: somebody listens at path. */
struct join_server *join_server_create(const struct join_config *config, int *err);
/* Block until nobody has been connected for grace_ms. */
void join_server_wait_idle(struct join_server *server, uint32_t grace_ms);
void join_server_destroy(struct join_server *server);

#endif
