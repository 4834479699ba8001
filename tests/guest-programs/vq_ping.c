// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vq_ping PCI-ADDRESS ROUNDS PAUSE_US[-UP_TO] [no-event-idx]: round trips of an empty request through the
 * control queue of a virtio-gpu (vq.h)
 *
 * Each round sends GET_DISPLAY_INFO, kicks if the device asks for it, spins until the answer is there and
 * then pauses (PAUSE_US 0: back to back; with UP_TO: a random time of that range, spinning, so that
 * it is exact). A request without an answer for 5 s ends it: a kick was lost. Prints "rounds N kicks N p50 NS p99 NS mean NS".
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/guest-programs/vq.h"

static uint64_t ping(unsigned long *kicks)
{
	struct virtio_gpu_ctrl_hdr *request = vq_request.bytes;
	const struct virtio_gpu_ctrl_hdr *answer = vq_answer.bytes;
	uint64_t spent_ns = 0;

	request->type = VIRTIO_GPU_CMD_GET_DISPLAY_INFO;
	if (!vq_send(vq_request.physical, sizeof(*request), kicks, &spent_ns))
		vq_die("no answer to request: the device asks for a reset");
	if (answer->type != VIRTIO_GPU_RESP_OK_DISPLAY_INFO)
		vq_die("answer 0x%x", answer->type);
	return spent_ns;
}

/* By spinning: a sleep of a guest wakes up when the host's timers please. */
static void wait_us(unsigned long us)
{
	uint64_t end = vq_now_ns() + us * 1000u;

	while (vq_now_ns() < end)
		;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	unsigned long rounds, pause_us, up_to_us = 0, kicks = 0;
	uint64_t *spent, sum = 0;
	char *end;

	if (argc < 4)
		vq_die("it takes PCI-ADDRESS ROUNDS PAUSE_US[-UP_TO] [no-event-idx]");
	rounds = strtoul(argv[2], NULL, 10);
	pause_us = strtoul(argv[3], &end, 10);
	if (*end == '-')
		up_to_us = strtoul(end + 1, NULL, 10);
	spent = rounds ? calloc(rounds, sizeof(*spent)) : NULL;
	if (!spent)
		vq_die("'%s' is no number of rounds", argv[2]);
	vq_map(argv[1]);
	vq_start(argc < 5);
	/* what is touched for the first time is not what is measured */
	ping(&kicks);
	kicks = 0;
	for (unsigned long i = 0; i < rounds; i++) {
		if (up_to_us > pause_us)
			wait_us(pause_us + (unsigned long)random() % (up_to_us - pause_us));
		else if (pause_us)
			usleep((useconds_t)pause_us);
		spent[i] = ping(&kicks);
		sum += spent[i];
	}
	vq_stop();
	qsort(spent, rounds, sizeof(*spent), compare);
	printf("rounds %lu kicks %lu p50 %llu p99 %llu mean %llu\n", rounds, kicks,
	       (unsigned long long)spent[rounds / 2], (unsigned long long)spent[rounds * 99 / 100],
	       (unsigned long long)(sum / rounds));
	free(spent);
	return 0;
}
