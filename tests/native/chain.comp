// SPDX-License-Identifier: LGPL-2.1-or-later
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Words
{
	uint words[];
};
layout(push_constant) uniform Push
{
	uint n;
};

void main()
{
	uint x = words[0];

	for (uint i = 0; i < n; i++)
		x = x * 1664525u + 1013904223u;
	words[0] = x;
	words[1] += 1u;
}
