// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * vk_check: computes on a Vulkan device and compares every word with the CPU's
 *
 *	vk_check [--elements N] [--rounds N] [--dispatches N] [--empty N] [--device WORD]
 *		 [--seconds S [--deep N]] [--bandwidth MIB] [--churn N] [--fill]
 *
 * Prints device, driver and the size of the first heap, "exact: N of N words" (65 of them after much
 * work), and with more dispatches than one the median time of a dispatch with its fence. --seconds
 * dispatches for that long, with --deep N submissions under way, and prints how many ended in the
 * middle three quarters of it. --empty measures submissions of nothing.
 * --bandwidth copies that much into and out of memory that the GPU shares, already touched; with
 * --churn that much is allocated, touched and freed N times instead. --fill
 * allocates buffers of 4 MiB until that fails, looks for words that are not zero in each, and
 * leaves a pattern in them. Status 0: all is as it must be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>

#include "tests/guest-programs/vk_check_spv.h"

#define FILL_BYTES	(4u << 20)
#define FILL_MAX	4096
/* The CPU is the slower one: beyond so many rounds it checks a word in so many, of all lanes. */
#define CHECK_ALL	(1ull << 26)
#define CHECK_STEP	1009u
#define DEEP_MAX	64
#define PATTERN		0x5ec4e75u	/* what the next tenant must not find */

#define CHECK(call)                                                                                \
	do {                                                                                       \
		VkResult result_ = (call);                                                         \
		if (result_ != VK_SUCCESS) {                                                       \
			fprintf(stderr, "vk_check: %s gave %d\n", #call, (int)result_);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct {
	uint32_t elements, rounds, dispatches, empty, bandwidth, churn, seconds, deep;
	const char *device;
	int fill;
} options = { .elements = 65536, .rounds = 100, .dispatches = 1, .deep = 1 };

static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkFence fence;

static double now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void device_open(void)
{
	VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2,
	};
	VkInstanceCreateInfo instance_info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application,
	};
	VkPhysicalDeviceDriverProperties driver = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
	};
	VkPhysicalDeviceProperties2 properties = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver,
	};
	float priority = 1.0f;
	VkDeviceQueueCreateInfo queue_info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1, .pQueuePriorities = &priority,
	};
	VkPhysicalDeviceMemoryProperties memory;
	VkDeviceCreateInfo device_info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1, .pQueueCreateInfos = &queue_info,
	};
	VkFenceCreateInfo fence_info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkPhysicalDevice all[16];
	uint32_t count = 16;
	VkInstance instance;

	CHECK(vkCreateInstance(&instance_info, NULL, &instance));
	CHECK(vkEnumeratePhysicalDevices(instance, &count, all));
	for (uint32_t i = 0; i < count && !physical; i++) {
		vkGetPhysicalDeviceProperties2(all[i], &properties);
		if (!options.device || strstr(properties.properties.deviceName, options.device))
			physical = all[i];
	}
	if (!physical) {
		fprintf(stderr, "vk_check: none of %u devices has '%s' in its name\n", count,
			options.device ? options.device : "");
		exit(1);
	}
	printf("device: %s\ndriver: %s (%s)\n", properties.properties.deviceName, driver.driverName,
	       driver.driverInfo);
	vkGetPhysicalDeviceMemoryProperties(physical, &memory);
	printf("heap: %llu bytes\n", (unsigned long long)memory.memoryHeaps[0].size);
	CHECK(vkCreateDevice(physical, &device_info, NULL, &device));
	vkGetDeviceQueue(device, 0, 0, &queue);
	CHECK(vkCreateFence(device, &fence_info, NULL, &fence));
}

/* Memory that the CPU sees, coherent. */
static uint32_t memory_type(uint32_t bits)
{
	VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
				       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	VkPhysicalDeviceMemoryProperties memory;

	vkGetPhysicalDeviceMemoryProperties(physical, &memory);
	for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
		if (bits >> i & 1 && (memory.memoryTypes[i].propertyFlags & wanted) == wanted)
			return i;
	}
	fprintf(stderr, "vk_check: no memory that is visible to the CPU\n");
	exit(1);
}

static VkResult memory_make(VkDeviceSize bytes, VkBuffer *buffer, VkDeviceMemory *memory,
			    uint32_t **words)
{
	VkBufferCreateInfo buffer_info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = bytes, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
	};
	VkMemoryAllocateInfo allocate = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO };
	VkMemoryRequirements needs;
	VkResult result;

	CHECK(vkCreateBuffer(device, &buffer_info, NULL, buffer));
	vkGetBufferMemoryRequirements(device, *buffer, &needs);
	allocate.allocationSize = needs.size;
	allocate.memoryTypeIndex = memory_type(needs.memoryTypeBits);
	result = vkAllocateMemory(device, &allocate, NULL, memory);
	if (result == VK_SUCCESS)
		result = vkMapMemory(device, *memory, 0, VK_WHOLE_SIZE, 0, (void **)words);
	if (result == VK_SUCCESS)
		CHECK(vkBindBufferMemory(device, *buffer, *memory, 0));
	return result;
}

/* The pattern test: whatever can be had is zero, and gets a pattern. */
static int fill(void)
{
	unsigned long long dirty = 0, found = 0;
	unsigned int count;

	for (count = 0; count < FILL_MAX; count++) {
		VkDeviceMemory memory;
		VkBuffer buffer;
		uint32_t *words;

		if (memory_make(FILL_BYTES, &buffer, &memory, &words) != VK_SUCCESS)
			break;
		for (uint32_t i = 0; i < FILL_BYTES / 4; i++) {
			dirty += words[i] != 0;
			found += words[i] == PATTERN;
			words[i] = PATTERN;
		}
	}
	printf("fill: %u MiB, %llu words not zero, %llu with the pattern\n", count * 4, dirty,
	       found);
	return count == 0 || dirty;
}

static VkCommandBuffer record(VkBuffer buffer)
{
	VkDescriptorSetLayoutBinding binding = {
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
	};
	VkDescriptorSetLayoutCreateInfo set_info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = 1, .pBindings = &binding,
	};
	VkPushConstantRange range = { VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 };
	VkDescriptorSetLayout set_layout;
	VkPipelineLayoutCreateInfo layout_info = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1, .pSetLayouts = &set_layout,
		.pushConstantRangeCount = 1, .pPushConstantRanges = &range,
	};
	VkShaderModuleCreateInfo module_info = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = sizeof(vk_check_spv), .pCode = vk_check_spv,
	};
	VkComputePipelineCreateInfo pipeline_info = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main",
		},
	};
	VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1 };
	VkDescriptorPoolCreateInfo pool_info = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorPool pool;
	VkDescriptorSetAllocateInfo set_allocate = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorSetCount = 1, .pSetLayouts = &set_layout,
	};
	VkDescriptorBufferInfo buffer_info = { buffer, 0, VK_WHOLE_SIZE };
	VkWriteDescriptorSet write = {
		.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .descriptorCount = 1,
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &buffer_info,
	};
	VkCommandPoolCreateInfo commands_info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
	};
	VkCommandBufferAllocateInfo commands_allocate = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandBufferCount = 1,
	};
	VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
	};
	VkMemoryBarrier barrier = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT |
				 VK_ACCESS_SHADER_WRITE_BIT,
	};
	VkPipelineLayout layout;
	VkCommandBuffer commands;
	VkPipeline pipeline;
	VkDescriptorSet set;

	CHECK(vkCreateDescriptorSetLayout(device, &set_info, NULL, &set_layout));
	CHECK(vkCreatePipelineLayout(device, &layout_info, NULL, &layout));
	CHECK(vkCreateShaderModule(device, &module_info, NULL, &pipeline_info.stage.module));
	pipeline_info.layout = layout;
	CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, NULL, &pipeline));
	CHECK(vkCreateDescriptorPool(device, &pool_info, NULL, &pool));
	set_allocate.descriptorPool = pool;
	CHECK(vkAllocateDescriptorSets(device, &set_allocate, &set));
	write.dstSet = set;
	vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
	CHECK(vkCreateCommandPool(device, &commands_info, NULL, &commands_allocate.commandPool));
	CHECK(vkAllocateCommandBuffers(device, &commands_allocate, &commands));
	CHECK(vkBeginCommandBuffer(commands, &begin));
	vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
	vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0,
				NULL);
	vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &options.rounds);
	vkCmdDispatch(commands, options.elements / 64, 1, 1);
	vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
			     VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
			     1, &barrier, 0, NULL, 0, NULL);
	CHECK(vkEndCommandBuffer(commands));
	return commands;
}

/* Median milliseconds of @count submissions, each waited for. */
static double submit(VkCommandBuffer commands, uint32_t count)
{
	VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = commands ? 1 : 0, .pCommandBuffers = &commands,
	};
	double *times = calloc(count, sizeof(*times)), median;

	if (!times)
		exit(1);
	for (uint32_t i = 0; i < count; i++) {
		double start = now_ms();

		CHECK(vkQueueSubmit(queue, 1, &info, fence));
		CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
		CHECK(vkResetFences(device, 1, &fence));
		times[i] = now_ms() - start;
	}
	qsort(times, count, sizeof(*times), compare);
	median = times[count / 2];
	free(times);
	return median;
}

static int bandwidth(void)
{
	enum { PASSES = 7 };
	size_t bytes = (size_t)options.bandwidth << 20;
	double up[PASSES], down[PASSES];
	VkDeviceMemory memory;
	uint32_t *words;
	VkBuffer buffer;
	char *own = malloc(bytes);

	if (!own)
		return 1;
	CHECK(memory_make(bytes, &buffer, &memory, &words));
	memset(own, 1, bytes);
	memcpy(words, own, bytes);
	for (int i = 0; i < PASSES; i++) {
		double start = now_ms(), middle;

		memset(own, i, 1);
		memcpy(words, own, bytes);
		middle = now_ms();
		memcpy(own, words, bytes);
		up[i] = middle - start;
		down[i] = now_ms() - middle;
	}
	qsort(up, PASSES, sizeof(*up), compare);
	qsort(down, PASSES, sizeof(*down), compare);
	printf("upload: %.0f MiB/s\ndownload: %.0f MiB/s\n",
	       options.bandwidth / up[PASSES / 2] * 1e3, options.bandwidth / down[PASSES / 2] * 1e3);
	free(own);
	return 0;
}

static int churn(void)
{
	VkDeviceSize bytes = (VkDeviceSize)options.bandwidth << 20;

	for (uint32_t i = 0; i < options.churn; i++) {
		VkDeviceMemory memory;
		uint32_t *words;
		VkBuffer buffer;

		CHECK(memory_make(bytes, &buffer, &memory, &words));
		for (VkDeviceSize at = 0; at < bytes / 4; at += 1024)
			words[at] = i;
		vkUnmapMemory(device, memory);
		vkDestroyBuffer(device, buffer, NULL);
		vkFreeMemory(device, memory, NULL);
	}
	printf("churn: %u times %u MiB\n", options.churn, options.bandwidth);
	return 0;
}

/* Dispatches until the time is over; how many there were, and prints those of the middle. */
static uint32_t submit_for(VkCommandBuffer commands, double seconds)
{
	VkFenceCreateInfo fence_info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1, .pCommandBuffers = &commands,
	};
	double start = now_ms(), first = 0, last = 0, now = start;
	uint32_t submitted = 0, count = 0, counted = 0;
	VkFence fences[DEEP_MAX];

	for (uint32_t i = 0; i < options.deep; i++)
		CHECK(vkCreateFence(device, &fence_info, NULL, &fences[i]));
	do {
		while (submitted - count < options.deep && now - start < seconds * 1e3)
			CHECK(vkQueueSubmit(queue, 1, &info, fences[submitted++ % options.deep]));
		CHECK(vkWaitForFences(device, 1, &fences[count % options.deep], VK_TRUE, UINT64_MAX));
		CHECK(vkResetFences(device, 1, &fences[count % options.deep]));
		count++;
		now = now_ms();
		if (now - start < seconds * 125 || now - start > seconds * 875)
			continue;
		if (first > 0)
			counted++;
		else
			first = now;
		last = now;
	} while (count < submitted || now - start < seconds * 1e3);
	printf("work: %.3f dispatches a second\n", counted ? counted * 1e3 / (last - first) : 0);
	return count;
}

static int compute(void)
{
	VkDeviceMemory memory;
	uint32_t *words, right = 0, checked = 0, step = 1;
	uint32_t dispatches = options.dispatches;
	uint64_t rounds;
	double median = 0;
	VkBuffer buffer;

	CHECK(memory_make(options.elements * 4ull, &buffer, &memory, &words));
	for (uint32_t i = 0; i < options.elements; i++)
		words[i] = i * 2654435761u;
	if (options.seconds)
		dispatches = submit_for(record(buffer), options.seconds);
	else
		median = submit(record(buffer), dispatches);
	rounds = (uint64_t)options.rounds * dispatches;
	if (rounds > CHECK_ALL / options.elements)
		step = CHECK_STEP;
	for (uint32_t i = 0; i < options.elements; i += step) {
		uint32_t x = i * 2654435761u;

		for (uint64_t round = 0; round < rounds; round++) {
			x = x * 1664525u + 1013904223u;
			x ^= x >> 13;
		}
		right += words[i] == x;
		checked++;
	}
	printf("exact: %u of %u words\n", right, checked);
	if (!options.seconds && dispatches > 1)
		printf("dispatch: %.3f ms\n", median);
	if (options.empty)
		printf("empty: %.3f ms\n", submit(VK_NULL_HANDLE, options.empty));
	return right != checked;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		uint32_t number = (uint32_t)strtoul(value, NULL, 0);

		if (!strcmp(argv[i], "--fill")) {
			options.fill = 1;
			continue;
		}
		i++;
		if (!strcmp(argv[i - 1], "--elements"))
			options.elements = (number + 63) & ~63u;
		else if (!strcmp(argv[i - 1], "--rounds"))
			options.rounds = number;
		else if (!strcmp(argv[i - 1], "--dispatches"))
			options.dispatches = number;
		else if (!strcmp(argv[i - 1], "--empty"))
			options.empty = number;
		else if (!strcmp(argv[i - 1], "--bandwidth"))
			options.bandwidth = number;
		else if (!strcmp(argv[i - 1], "--seconds"))
			options.seconds = number;
		else if (!strcmp(argv[i - 1], "--deep"))
			options.deep = number < 1 ? 1 : number > DEEP_MAX ? DEEP_MAX : number;
		else if (!strcmp(argv[i - 1], "--churn"))
			options.churn = number;
		else if (!strcmp(argv[i - 1], "--device"))
			options.device = value;
		else {
			fprintf(stderr, "vk_check: unknown option %s\n", argv[i - 1]);
			return 2;
		}
	}
	device_open();
	if (options.churn)
		return churn();
	if (options.bandwidth)
		return bandwidth();
	return options.fill ? fill() : compute();
}
