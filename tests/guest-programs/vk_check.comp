#version 450
// SPDX-License-Identifier: LGPL-2.1-or-later
// Integer arithmetic only: every correct implementation gives the same words.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Words { uint word[]; };
layout(push_constant) uniform Push { uint rounds; };

void main()
{
	uint i = gl_GlobalInvocationID.x;
	uint x = word[i];

	for (uint round = 0; round < rounds; round++) {
		x = x * 1664525u + 1013904223u;
		x ^= x >> 13;
	}
	word[i] = x;
}
