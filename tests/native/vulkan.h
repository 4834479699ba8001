/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vulkan.h - the little Vulkan that native tests and the benchmark need: one device, compute */
#ifndef OCTAVO_TESTS_VULKAN_H
#define OCTAVO_TESTS_VULKAN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

#define VK_OK(call)                                                                                \
	do {                                                                                       \
		VkResult vk_result = (call);                                                       \
		if (vk_result != VK_SUCCESS) {                                                     \
			fprintf(stderr, "%s:%d: %s: found VkResult %d\n", __FILE__, __LINE__,      \
				#call, (int)vk_result);                                            \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

/* A device with one queue, and a buffer that a chain of dispatches works on. */
struct vulkan {
	VkInstance instance;
	VkPhysicalDevice physical;
	VkPhysicalDeviceProperties properties;
	VkDevice device;
	uint32_t family;
	VkQueue queue;
};

struct chain {
	VkBuffer buffer;
	VkDeviceMemory memory;
	uint32_t *words; /* mapped */
	VkDescriptorSetLayout set_layout;
	VkPipelineLayout layout;
	VkShaderModule module;
	VkPipeline pipeline;
	VkDescriptorPool pool;
	VkDescriptorSet set;
	VkCommandPool commands;
};

/* api: of the application. Exits with a message when there is no Vulkan. */
void vulkan_init(struct vulkan *vulkan, uint32_t api);
void vulkan_finish(struct vulkan *vulkan);
uint32_t vulkan_memory_type(const struct vulkan *vulkan, uint32_t allowed,
			    VkMemoryPropertyFlags flags);

/*
 * A dispatch sets word 0 of the buffer to its n-th successor in a linear congruential sequence, by
 * computing each one; and adds 1 to word 1. Their order and their number show in the result.
 */
void chain_init(struct vulkan *vulkan, struct chain *chain);
void chain_finish(struct vulkan *vulkan, struct chain *chain);
/* One dispatch of n steps, between barriers, ready to be submitted many times, one at a time. */
VkCommandBuffer chain_record(struct vulkan *vulkan, struct chain *chain, uint32_t n);
/* What word 0 is after so many steps from seed. */
uint32_t chain_expect(uint32_t seed, uint64_t steps);

#endif
