// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A Vulkan compute client with exact results. It does pieces of work of a given number of steps,
 * keeps `depth` of them queued (1: waits for each), and counts those that have finished.
 *
 *	load calibrate		print the ns of a dispatch without steps, and of each step
 *	load invalid		use Vulkan wrongly, once
 *	load STEPS DEPTH TALLY [PAUSE]	TALLY: file of a struct load_tally; PAUSE: us between pieces
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/native/engine.h"
#include "tests/native/load.h"
#include "tests/native/vulkan.h"

#define DEPTH_MAX 128

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static VkFence fence_new(struct vulkan *vulkan)
{
	const VkFenceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkFence fence;

	VK_OK(vkCreateFence(vulkan->device, &info, NULL, &fence));
	return fence;
}

static void submit(struct vulkan *vulkan, const VkCommandBuffer *commands, VkFence fence)
{
	const VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1,
		.pCommandBuffers = commands,
	};

	VK_OK(vkQueueSubmit(vulkan->queue, 1, &info, fence));
}

static void finish(struct vulkan *vulkan, VkFence fence)
{
	VK_OK(vkWaitForFences(vulkan->device, 1, &fence, VK_TRUE, UINT64_MAX));
	VK_OK(vkResetFences(vulkan->device, 1, &fence));
}

#define BURST 8

/* ns that a dispatch takes with others queued behind it: the least of some runs, disturbances add. */
static double time_steps(struct vulkan *vulkan, struct chain *chain, uint32_t steps)
{
	VkCommandBuffer commands = chain_record(vulkan, chain, steps);
	VkFence fence = fence_new(vulkan);
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 15; i++) {
		uint64_t begin, took;

		/* the clock starts when the first one is done and the queue is full */
		submit(vulkan, &commands, fence);
		finish(vulkan, fence);
		begin = now_ns();
		for (int j = 1; j < BURST; j++)
			submit(vulkan, &commands, VK_NULL_HANDLE);
		submit(vulkan, &commands, fence);
		finish(vulkan, fence);
		took = now_ns() - begin;
		least = took < least ? took : least;
	}
	vkDestroyFence(vulkan->device, fence, NULL);
	return (double)least / BURST;
}

/* Two numbers: ns that any dispatch takes, and ns for each step more. */
static int calibrate(struct vulkan *vulkan, struct chain *chain)
{
	const uint32_t few = 10000, many = 200000;
	double small = time_steps(vulkan, chain, few), large = time_steps(vulkan, chain, many);
	double step = (large - small) / (many - few);

	if (step <= 0)
		return 1;
	printf("%.1f %.6f\n", small - step * few, step);
	return 0;
}

static struct load_tally *tally_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct load_tally *tally =
		fd < 0 ? MAP_FAILED :
			 mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (tally == MAP_FAILED) {
		fprintf(stderr, "cannot map '%s': %s\n", path, strerror(errno));
		exit(2);
	}
	close(fd);
	return tally;
}

static int run(struct vulkan *vulkan, struct chain *chain, uint32_t steps, uint32_t depth,
	       struct load_tally *tally, unsigned int pause_us)
{
	VkCommandBuffer commands = chain_record(vulkan, chain, steps);
	VkFence fences[DEPTH_MAX];
	uint64_t begun[DEPTH_MAX], submitted = 0, done = 0;
	bool placed = vulkan->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU;

	for (uint32_t i = 0; i < depth; i++)
		fences[i] = fence_new(vulkan);
	tally->ready = 1;
	while (!tally->go)
		usleep(200);
	tally->began_ns = now_ns();
	while (!tally->stop || done < submitted) {
		bool wanted = tally->go && !tally->stop;

		if (!wanted && done == submitted) {
			usleep(200);
			continue;
		}
		if (wanted && submitted - done < depth) {
			begun[submitted % depth] = now_ns();
			submit(vulkan, &commands, fences[submitted % depth]);
			submitted++;
			/* fill the queue, but see what has finished meanwhile: a gate may have been closed */
			if (submitted - done < depth &&
			    vkGetFenceStatus(vulkan->device, fences[done % depth]) != VK_SUCCESS)
				continue;
		}
		finish(vulkan, fences[done % depth]);
		tally->latency_us[tally->n_latencies % LOAD_LATENCIES] =
			(uint32_t)((now_ns() - begun[done % depth]) / 1000);
		tally->n_latencies++;
		done++;
		tally->done_ns = now_ns();
		tally->done = done;
		if (!placed && tally->done_ns - tally->began_ns > ENGINE_KNOWN_NS) {
			engine_place();
			placed = true;
		}
		if (pause_us)
			usleep(pause_us);
	}
	for (uint32_t i = 0; i < depth; i++)
		vkDestroyFence(vulkan->device, fences[i], NULL);
	if (chain->words[1] != (uint32_t)done ||
	    chain->words[0] != chain_expect(1, done * steps)) {
		tally->failed = 1;
		fprintf(stderr, "after %llu pieces of %u steps: expected %u and %u, found %u and %u\n",
			(unsigned long long)done, steps, (uint32_t)done,
			chain_expect(1, done * steps), chain->words[1], chain->words[0]);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct vulkan vulkan;
	struct chain chain;
	int rc;

	if (argc < 2) {
		fprintf(stderr, "want: calibrate, or STEPS DEPTH TALLY [PAUSE]\n");
		return 2;
	}
	vulkan_init(&vulkan, VK_API_VERSION_1_1);
	chain_init(&vulkan, &chain);
	if (strcmp(argv[1], "invalid") == 0) {
		/* a wrong use, for validation to speak of */
		const VkFenceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO };
		VkFence fence;

		rc = vkCreateFence(vulkan.device, &info, NULL, &fence) == VK_SUCCESS ? 0 : 1;
		if (rc == 0)
			vkDestroyFence(vulkan.device, fence, NULL);
	} else if (strcmp(argv[1], "calibrate") == 0) {
		rc = calibrate(&vulkan, &chain);
	} else if (argc < 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > DEPTH_MAX) {
		fprintf(stderr, "want a depth of 1 to %d and a tally\n", DEPTH_MAX);
		return 2;
	} else {
		rc = run(&vulkan, &chain, (uint32_t)strtoul(argv[1], NULL, 10),
			 (uint32_t)atoi(argv[2]), tally_open(argv[3]),
			 argc > 4 ? (unsigned int)atoi(argv[4]) : 0);
	}
	chain_finish(&vulkan, &chain);
	vulkan_finish(&vulkan);
	return rc;
}
