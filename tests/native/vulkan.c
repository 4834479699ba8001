// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/native/vulkan.h"

#include "tests/native/chain.spv.h"

#define BUFFER_BYTES 4096

void vulkan_init(struct vulkan *vulkan, uint32_t api)
{
	const VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.pApplicationName = "octavo-test",
		.apiVersion = api,
	};
	const VkInstanceCreateInfo instance = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &application,
	};
	const float priority = 1.0f;
	VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	VkPhysicalDeviceVulkan13Features features13 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
		.synchronization2 = VK_TRUE,
	};
	VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
		.pNext = &features13,
		.timelineSemaphore = VK_TRUE,
	};
	const VkDeviceCreateInfo device = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = api >= VK_API_VERSION_1_3 ? &timeline : NULL,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
	};
	VkQueueFamilyProperties families[16];
	uint32_t count = 1, n_families = 16;
	VkResult result;

	VK_OK(vkCreateInstance(&instance, NULL, &vulkan->instance));
	result = vkEnumeratePhysicalDevices(vulkan->instance, &count, &vulkan->physical);
	if ((result != VK_SUCCESS && result != VK_INCOMPLETE) || count == 0) {
		fprintf(stderr, "found no Vulkan device: set VK_DRIVER_FILES\n");
		exit(3);
	}
	vkGetPhysicalDeviceProperties(vulkan->physical, &vulkan->properties);
	vkGetPhysicalDeviceQueueFamilyProperties(vulkan->physical, &n_families, families);
	for (vulkan->family = 0; vulkan->family < n_families; vulkan->family++)
		if (families[vulkan->family].queueFlags & VK_QUEUE_COMPUTE_BIT)
			break;
	queue.queueFamilyIndex = vulkan->family;
	VK_OK(vkCreateDevice(vulkan->physical, &device, NULL, &vulkan->device));
	vkGetDeviceQueue(vulkan->device, vulkan->family, 0, &vulkan->queue);
}

void vulkan_finish(struct vulkan *vulkan)
{
	vkDestroyDevice(vulkan->device, NULL);
	vkDestroyInstance(vulkan->instance, NULL);
}

uint32_t vulkan_memory_type(const struct vulkan *vulkan, uint32_t allowed,
			    VkMemoryPropertyFlags flags)
{
	VkPhysicalDeviceMemoryProperties memory;

	vkGetPhysicalDeviceMemoryProperties(vulkan->physical, &memory);
	for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
		if ((allowed >> i & 1) && (memory.memoryTypes[i].propertyFlags & flags) == flags)
			return i;
	fprintf(stderr, "found no memory type with flags %#x\n", flags);
	exit(3);
}

static void chain_buffer(struct vulkan *vulkan, struct chain *chain)
{
	const VkBufferCreateInfo buffer = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
		.size = BUFFER_BYTES,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
	};
	VkMemoryAllocateInfo memory = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO };
	VkMemoryRequirements needs;
	void *words;

	VK_OK(vkCreateBuffer(vulkan->device, &buffer, NULL, &chain->buffer));
	vkGetBufferMemoryRequirements(vulkan->device, chain->buffer, &needs);
	memory.allocationSize = needs.size;
	memory.memoryTypeIndex =
		vulkan_memory_type(vulkan, needs.memoryTypeBits,
				   VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
					   VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
	VK_OK(vkAllocateMemory(vulkan->device, &memory, NULL, &chain->memory));
	VK_OK(vkBindBufferMemory(vulkan->device, chain->buffer, chain->memory, 0));
	VK_OK(vkMapMemory(vulkan->device, chain->memory, 0, VK_WHOLE_SIZE, 0, &words));
	chain->words = words;
	chain->words[0] = 1;
	chain->words[1] = 0;
}

static void chain_pipeline(struct vulkan *vulkan, struct chain *chain)
{
	const VkDescriptorSetLayoutBinding binding = {
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.descriptorCount = 1,
		.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
	};
	const VkDescriptorSetLayoutCreateInfo set_layout = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = 1,
		.pBindings = &binding,
	};
	const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint32_t) };
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pushConstantRangeCount = 1,
		.pPushConstantRanges = &push,
	};
	const VkShaderModuleCreateInfo module = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = sizeof(chain_spv),
		.pCode = chain_spv,
	};
	VkComputePipelineCreateInfo pipeline = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT,
			.pName = "main",
		},
	};

	VK_OK(vkCreateDescriptorSetLayout(vulkan->device, &set_layout, NULL, &chain->set_layout));
	layout.pSetLayouts = &chain->set_layout;
	VK_OK(vkCreatePipelineLayout(vulkan->device, &layout, NULL, &chain->layout));
	VK_OK(vkCreateShaderModule(vulkan->device, &module, NULL, &chain->module));
	pipeline.layout = chain->layout;
	pipeline.stage.module = chain->module;
	VK_OK(vkCreateComputePipelines(vulkan->device, VK_NULL_HANDLE, 1, &pipeline, NULL,
				       &chain->pipeline));
}

static void chain_set(struct vulkan *vulkan, struct chain *chain)
{
	const VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1 };
	const VkDescriptorPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = 1,
		.poolSizeCount = 1,
		.pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorSetCount = 1,
		.pSetLayouts = &chain->set_layout,
	};
	const VkDescriptorBufferInfo buffer = { chain->buffer, 0, VK_WHOLE_SIZE };
	VkWriteDescriptorSet write = {
		.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
		.descriptorCount = 1,
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.pBufferInfo = &buffer,
	};
	const VkCommandPoolCreateInfo commands = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.queueFamilyIndex = vulkan->family,
	};

	VK_OK(vkCreateDescriptorPool(vulkan->device, &pool, NULL, &chain->pool));
	set.descriptorPool = chain->pool;
	VK_OK(vkAllocateDescriptorSets(vulkan->device, &set, &chain->set));
	write.dstSet = chain->set;
	vkUpdateDescriptorSets(vulkan->device, 1, &write, 0, NULL);
	VK_OK(vkCreateCommandPool(vulkan->device, &commands, NULL, &chain->commands));
}

void chain_init(struct vulkan *vulkan, struct chain *chain)
{
	chain_buffer(vulkan, chain);
	chain_pipeline(vulkan, chain);
	chain_set(vulkan, chain);
}

void chain_finish(struct vulkan *vulkan, struct chain *chain)
{
	vkDestroyCommandPool(vulkan->device, chain->commands, NULL);
	vkDestroyDescriptorPool(vulkan->device, chain->pool, NULL);
	vkDestroyPipeline(vulkan->device, chain->pipeline, NULL);
	vkDestroyShaderModule(vulkan->device, chain->module, NULL);
	vkDestroyPipelineLayout(vulkan->device, chain->layout, NULL);
	vkDestroyDescriptorSetLayout(vulkan->device, chain->set_layout, NULL);
	vkDestroyBuffer(vulkan->device, chain->buffer, NULL);
	vkFreeMemory(vulkan->device, chain->memory, NULL);
}

VkCommandBuffer chain_record(struct vulkan *vulkan, struct chain *chain, uint32_t n)
{
	const VkCommandBufferAllocateInfo allocate = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = chain->commands,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
		.commandBufferCount = 1,
	};
	const VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
	};
	const VkMemoryBarrier barrier = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
				 VK_ACCESS_HOST_READ_BIT,
	};
	VkCommandBuffer buffer;

	VK_OK(vkAllocateCommandBuffers(vulkan->device, &allocate, &buffer));
	VK_OK(vkBeginCommandBuffer(buffer, &begin));
	vkCmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, chain->pipeline);
	vkCmdBindDescriptorSets(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, chain->layout, 0, 1,
				&chain->set, 0, NULL);
	vkCmdPushConstants(buffer, chain->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(n), &n);
	vkCmdDispatch(buffer, 1, 1, 1);
	vkCmdPipelineBarrier(buffer, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
			     VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0,
			     1, &barrier, 0, NULL, 0, NULL);
	VK_OK(vkEndCommandBuffer(buffer));
	return buffer;
}

/* x -> a x + c, composed with itself by squaring */
uint32_t chain_expect(uint32_t seed, uint64_t steps)
{
	uint32_t a = 1664525u, c = 1013904223u, x = seed;

	for (; steps; steps >>= 1) {
		if (steps & 1)
			x = x * a + c;
		c = c * a + c;
		a *= a;
	}
	return x;
}
