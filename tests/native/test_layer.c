// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The slice layer on a real driver: heaps and budget, the memory share across processes that are
 * killed, submissions of all kinds, waits before signals, several devices and threads.
 * Its one argument is the folder with the layer's manifest.
 */
#include <pthread.h>
#include <string.h>

#include "scheduler/arbiter.h"
#include "scheduler/gate.h"
#include "tests/native/vulkan.h"
#include "tests/unit/crew.h"
#include "tests/unit/suite.h"

#define MIB (UINT64_C(1) << 20)
#define SHARE (256 * MIB)

static int gate_fd = -1;

struct hosted {
	_Atomic int ready;
	int fds[2];
};

static void run_arbiter(int fd, void *data)
{
	const struct arbiter_config config = { .policy = POLICY_ELASTIC };
	struct arbiter *arbiter = arbiter_create(&config, NULL);
	struct hosted *hosted = data;

	if (!arbiter || arbiter_add_vgpu(arbiter, fd, 250, "test", NULL) < 0)
		_exit(1);
	hosted->ready = 1;
	for (;;)
		pause();
}

static uint64_t used_bytes(void)
{
	struct gate *gate = gate_own(gate_fd, NULL);
	struct gate_page *page = gate_page(gate);
	uint64_t sum = 0;

	/* not gate_account(): closing an owner's descriptor here would drop this process's lock */
	for (int i = 0; i < GATE_SLOTS; i++)
		sum += page->slots[i].charged_bytes;
	return sum;
}

static VkResult allocate(struct vulkan *vulkan, uint64_t bytes, VkDeviceMemory *memory)
{
	const VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = bytes,
		.memoryTypeIndex = vulkan_memory_type(vulkan, ~0u,
						      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT),
	};

	return vkAllocateMemory(vulkan->device, &info, NULL, memory);
}

static void test_heaps(void)
{
	VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT
	};
	VkPhysicalDeviceMemoryProperties2 memory = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget
	};
	VkPhysicalDeviceMemoryProperties plain;
	VkDeviceMemory held;
	struct vulkan vulkan;

	vulkan_init(&vulkan, VK_API_VERSION_1_1);
	CU_ASSERT_EQUAL(allocate(&vulkan, 64 * MIB, &held), VK_SUCCESS);
	vkGetPhysicalDeviceMemoryProperties(vulkan.physical, &plain);
	vkGetPhysicalDeviceMemoryProperties2(vulkan.physical, &memory);
	for (uint32_t i = 0; i < plain.memoryHeapCount; i++) {
		if (!(plain.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT))
			continue;
		CU_ASSERT(plain.memoryHeaps[i].size <= SHARE);
		CU_ASSERT_EQUAL(plain.memoryHeaps[i].size,
				memory.memoryProperties.memoryHeaps[i].size);
		CU_ASSERT_EQUAL(budget.heapUsage[i], 64 * MIB);
		CU_ASSERT(budget.heapBudget[i] <= SHARE);
	}
	vkFreeMemory(vulkan.device, held, NULL);
	vulkan_finish(&vulkan);
}

static void test_share_is_exact(void)
{
	VkDeviceMemory held[64], extra;
	struct vulkan vulkan;
	int n = 0;

	vulkan_init(&vulkan, VK_API_VERSION_1_0);
	while (n < 64 && allocate(&vulkan, 16 * MIB, &held[n]) == VK_SUCCESS)
		n++;
	CU_ASSERT_EQUAL(n, SHARE / (16 * MIB));
	CU_ASSERT_EQUAL(used_bytes(), SHARE);
	CU_ASSERT_EQUAL(allocate(&vulkan, 1, &extra), VK_ERROR_OUT_OF_DEVICE_MEMORY);
	CU_ASSERT_EQUAL(used_bytes(), SHARE);
	vkFreeMemory(vulkan.device, held[--n], NULL);
	CU_ASSERT_EQUAL(used_bytes(), SHARE - 16 * MIB);
	CU_ASSERT_EQUAL(allocate(&vulkan, 16 * MIB + 1, &extra), VK_ERROR_OUT_OF_DEVICE_MEMORY);
	CU_ASSERT_EQUAL(allocate(&vulkan, 16 * MIB, &held[n++]), VK_SUCCESS);
	while (n > 0)
		vkFreeMemory(vulkan.device, held[--n], NULL);
	CU_ASSERT_EQUAL(used_bytes(), 0);
	/* what a destroyed device forgot to free is given back, too */
	CU_ASSERT_EQUAL(allocate(&vulkan, 16 * MIB, &extra), VK_SUCCESS);
	vulkan_finish(&vulkan);
	CU_ASSERT_EQUAL(used_bytes(), 0);
}

struct tally {
	_Atomic int ready;
	_Atomic uint64_t count;
	_Atomic uint64_t refused;
	_Atomic int failed;
};

static void run_allocator(int fd, void *data)
{
	struct tally *tally = data;
	VkDeviceMemory held[8] = { 0 };
	struct vulkan vulkan;
	uint32_t state = (uint32_t)getpid() * 2654435761u;

	(void)fd;
	vulkan_init(&vulkan, VK_API_VERSION_1_1);
	tally->ready = 1;
	for (;;) {
		VkDeviceMemory *memory;
		VkResult result;

		state = state * 1664525u + 1013904223u;
		memory = &held[state >> 29];
		if (*memory) {
			vkFreeMemory(vulkan.device, *memory, NULL);
			*memory = VK_NULL_HANDLE;
			continue;
		}
		result = allocate(&vulkan, ((state >> 8) % 32 + 1) * MIB, memory);
		if (result == VK_SUCCESS)
			tally->count++;
		else if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
			tally->refused++;
		else
			tally->failed = 1;
		if (result != VK_SUCCESS)
			*memory = VK_NULL_HANDLE;
	}
}

static void test_eight_and_kills(void)
{
	enum { CREW = 8 };
	struct tally *tally = crew_shared(sizeof(*tally) * CREW);
	const char *soak = getenv("OCTAVO_SOAK");
	struct gate *gate = gate_own(gate_fd, NULL);
	struct gate_account account;
	uint64_t refused = 0;
	pid_t pids[CREW];

	for (int i = 0; i < CREW; i++)
		pids[i] = crew_start(run_allocator, gate_fd, &tally[i]);
	for (int n = 0; n < (soak && *soak ? 500 : 16); n++) {
		int victim = (n * 5) % CREW;
		uint64_t count = tally[victim].count;

		CU_ASSERT_FATAL(CREW_WAIT(tally[victim].ready && tally[victim].count > count + 20));
		CU_ASSERT_EQUAL(tally[victim].failed, 0);
		refused += tally[victim].refused;
		crew_kill(pids[victim]);
		memset(&tally[victim], 0, sizeof(tally[victim]));
		pids[victim] = crew_start(run_allocator, gate_fd, &tally[victim]);
	}
	for (int i = 0; i < CREW; i++)
		CU_ASSERT(CREW_WAIT(tally[i].ready));
	for (int i = 0; i < CREW; i++)
		kill(pids[i], SIGSTOP);
	for (int i = 0; i < CREW; i++)
		waitpid(pids[i], NULL, WUNTRACED);
	gate_reap(gate);
	CU_ASSERT(used_bytes() <= SHARE);
	for (int i = 0; i < CREW; i++)
		crew_kill(pids[i]);
	gate_reap(gate);
	CU_ASSERT_EQUAL(used_bytes(), 0);
	CU_ASSERT(refused > 0);
	gate_account(gate, &account);
	CU_ASSERT_EQUAL(account.used_bytes, 0);
}

/* Runs in a child: the parent must stay without a slot, as it closes owners' descriptors. */
static void in_child(void (*run)(int fd, void *data), void *data)
{
	pid_t pid = crew_start(run, gate_fd, data);
	int status = -1;

	waitpid(pid, &status, 0);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void submit(struct vulkan *vulkan, VkCommandBuffer commands, VkSemaphore wait,
		   uint64_t value)
{
	const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = wait ? 1 : 0,
		.pWaitSemaphoreValues = &value,
	};
	const VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = wait ? &values : NULL,
		.waitSemaphoreCount = wait ? 1 : 0,
		.pWaitSemaphores = &wait,
		.pWaitDstStageMask = &stage,
		.commandBufferCount = 1,
		.pCommandBuffers = &commands,
	};

	VK_OK(vkQueueSubmit(vulkan->queue, 1, &info, VK_NULL_HANDLE));
}

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__,           \
				#condition);                                                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/*
 * Work that waits for a semaphore which later work of the same vGPU leads to: the gate, with one
 * long submission in flight at most, must not keep the later work out.
 */
static void run_wait_before_signal(int fd, void *data)
{
	const VkSemaphoreTypeCreateInfo type = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
	};
	const VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
					     .pNext = &type };
	struct vulkan first, second;
	struct chain chain, other;
	VkCommandBuffer commands, others;
	VkSemaphore semaphore;

	(void)fd;
	(void)data;
	vulkan_init(&first, VK_API_VERSION_1_3);
	vulkan_init(&second, VK_API_VERSION_1_3);
	chain_init(&first, &chain);
	chain_init(&second, &other);
	commands = chain_record(&first, &chain, 1000);
	others = chain_record(&second, &other, 1000000);
	for (uint64_t round = 1; round <= 20; round++) {
		VkSemaphoreSignalInfo signal = {
			.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .value = 1
		};

		VK_OK(vkCreateSemaphore(first.device, &info, NULL, &semaphore));
		submit(&first, commands, semaphore, 1);
		submit(&first, commands, VK_NULL_HANDLE, 0); /* behind it in its queue */
		submit(&second, others, VK_NULL_HANDLE, 0);
		VK_OK(vkQueueWaitIdle(second.queue));
		EXPECT(other.words[1] == round);
		signal.semaphore = semaphore;
		VK_OK(vkSignalSemaphore(first.device, &signal));
		VK_OK(vkQueueWaitIdle(first.queue));
		EXPECT(chain.words[1] == 2 * round);
		/* at once, while the layer may look at it still */
		vkDestroySemaphore(first.device, semaphore, NULL);
	}
	chain_finish(&first, &chain);
	chain_finish(&second, &other);
	vulkan_finish(&second);
	vulkan_finish(&first);
}

static void test_wait_before_signal(void)
{
	in_child(run_wait_before_signal, NULL);
}

/* vkQueueSubmit2, many batches in one call, calls without work, fences on both. */
static void run_submissions(int fd, void *data)
{
	enum { BATCHES = 40 };
	const VkFenceCreateInfo fence_info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkCommandBufferSubmitInfo buffer = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO
	};
	VkSubmitInfo2 batches[BATCHES];
	struct vulkan vulkan;
	struct chain chain;
	VkFence fence;

	(void)fd;
	(void)data;
	vulkan_init(&vulkan, VK_API_VERSION_1_3);
	chain_init(&vulkan, &chain);
	buffer.commandBuffer = chain_record(&vulkan, &chain, 100);
	for (int i = 0; i < BATCHES; i++)
		batches[i] = (VkSubmitInfo2){
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
			.commandBufferInfoCount = 1,
			.pCommandBufferInfos = &buffer,
		};
	VK_OK(vkCreateFence(vulkan.device, &fence_info, NULL, &fence));
	for (uint32_t round = 1; round <= 50; round++) {
		uint32_t count = round % 2 ? BATCHES : 1;

		VK_OK(vkQueueSubmit2(vulkan.queue, count, batches, fence));
		VK_OK(vkWaitForFences(vulkan.device, 1, &fence, VK_TRUE, UINT64_MAX));
		VK_OK(vkResetFences(vulkan.device, 1, &fence));
		VK_OK(vkQueueSubmit2(vulkan.queue, 0, NULL, fence));
		VK_OK(vkWaitForFences(vulkan.device, 1, &fence, VK_TRUE, UINT64_MAX));
		VK_OK(vkResetFences(vulkan.device, 1, &fence));
		VK_OK(vkQueueSubmit(vulkan.queue, 0, NULL, fence));
		VK_OK(vkWaitForFences(vulkan.device, 1, &fence, VK_TRUE, UINT64_MAX));
		VK_OK(vkResetFences(vulkan.device, 1, &fence));
	}
	EXPECT(chain.words[1] == 25 * (BATCHES + 1));
	EXPECT(chain.words[0] == chain_expect(1, 25 * (BATCHES + 1) * 100));
	vkDestroyFence(vulkan.device, fence, NULL);
	chain_finish(&vulkan, &chain);
	vulkan_finish(&vulkan);
}

static void test_submissions(void)
{
	in_child(run_submissions, NULL);
}

static void *run_thread(void *data)
{
	struct vulkan vulkan;
	struct chain chain;

	(void)data;
	for (int round = 0; round < 3; round++) {
		VkCommandBuffer commands;

		vulkan_init(&vulkan, round ? VK_API_VERSION_1_1 : VK_API_VERSION_1_3);
		chain_init(&vulkan, &chain);
		commands = chain_record(&vulkan, &chain, 1000);
		for (int i = 0; i < 200; i++)
			submit(&vulkan, commands, VK_NULL_HANDLE, 0);
		VK_OK(vkDeviceWaitIdle(vulkan.device));
		EXPECT(chain.words[1] == 200);
		EXPECT(chain.words[0] == chain_expect(1, 200000));
		chain_finish(&vulkan, &chain);
		vulkan_finish(&vulkan);
	}
	return NULL;
}

static void run_threads(int fd, void *data)
{
	pthread_t threads[6];

	(void)fd;
	(void)data;
	for (int i = 0; i < 6; i++)
		EXPECT(pthread_create(&threads[i], NULL, run_thread, NULL) == 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
}

static void test_threads_and_devices(void)
{
	in_child(run_threads, NULL);
	CU_ASSERT_EQUAL(used_bytes(), 0);
}

static void run_no_gate(int fd, void *data)
{
	const VkInstanceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO };
	VkInstance instance;

	(void)fd;
	(void)data;
	unsetenv("OCTAVO_GATE_FD");
	unsetenv("OCTAVO_GATE");
	EXPECT(vkCreateInstance(&info, NULL, &instance) == VK_ERROR_INITIALIZATION_FAILED);
}

static void test_no_gate(void)
{
	in_child(run_no_gate, NULL);
}

static void run_heaps(int fd, void *data)
{
	(void)fd;
	(void)data;
	test_heaps();
	test_share_is_exact();
	exit(CU_get_number_of_failures() ? 1 : 0);
}

static void test_memory(void)
{
	in_child(run_heaps, NULL);
}

static const struct suite_test tests[] = {
	{ "heaps, budget and share are the vGPU's, to the byte", test_memory },
	{ "eight processes allocate and are killed: the account is exact", test_eight_and_kills },
	{ "submissions of all kinds, with exact results", test_submissions },
	{ "waits before signals do not stop the gate", test_wait_before_signal },
	{ "six threads with devices of their own", test_threads_and_devices },
	{ "without a gate there is no instance", test_no_gate },
};

int main(int argc, char **argv)
{
	struct hosted *hosted = crew_shared(sizeof(*hosted));
	char number[16];
	pid_t arbiter;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "want the folder with VkLayer_octavo_slice.json\n");
		return 2;
	}
	gate_fd = gate_create(SHARE);
	snprintf(number, sizeof(number), "%d", gate_fd);
	setenv("OCTAVO_GATE_FD", number, 1);
	setenv("VK_ADD_LAYER_PATH", argv[1], 1);
	setenv("VK_INSTANCE_LAYERS", "VK_LAYER_OCTAVO_slice", 1);
	setenv("LP_NUM_THREADS", "1", 0);
	arbiter = crew_start(run_arbiter, gate_fd, hosted);
	if (!CREW_WAIT(hosted->ready))
		return 2;
	rc = suite_run("layer", tests, sizeof(tests) / sizeof(tests[0]));
	crew_kill(arbiter);
	return rc;
}
