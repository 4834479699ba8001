// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * load.c's work in OpenGL, which has no layer: it passes the gate itself, as the worker's renderer
 * thread does for virgl, and leaves it when its own fence has been reached.
 *
 *	load-gl calibrate		as load
 *	load-gl STEPS 1 TALLY [PAUSE]
 */
#include <epoxy/egl.h>
#include <epoxy/gl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scheduler/gate.h"
#include "tests/native/engine.h"
#include "tests/native/load.h"

static const char source[] =
	"#version 430\n"
	"layout(local_size_x = 1) in;\n"
	"layout(std430, binding = 0) buffer Words { uint words[]; };\n"
	"uniform uint n;\n"
	"void main() {\n"
	"	uint x = words[0];\n"
	"	for (uint i = 0u; i < n; i++)\n"
	"		x = x * 1664525u + 1013904223u;\n"
	"	words[0] = x;\n"
	"	words[1] += 1u;\n"
	"}\n";

static void die(const char *what)
{
	fprintf(stderr, "load-gl: %s\n", what);
	exit(3);
}

static void context_init(void)
{
	static const EGLint attributes[] = { EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION,
					     3, EGL_NONE };
	EGLDisplay display =
		eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
	EGLContext context;

	if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_API))
		die("found no EGL without surfaces");
	context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
	if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
		die("found no OpenGL 4.3");
}

static GLint program_init(void)
{
	const uint32_t words[2] = { 1, 0 };
	const char *text = source;
	GLuint shader = glCreateShader(GL_COMPUTE_SHADER), program = glCreateProgram(), buffer;
	GLint linked;

	glShaderSource(shader, 1, &text, NULL);
	glCompileShader(shader);
	glAttachShader(program, shader);
	glLinkProgram(program);
	glGetProgramiv(program, GL_LINK_STATUS, &linked);
	if (!linked)
		die("the shader does not link");
	glUseProgram(program);
	glGenBuffers(1, &buffer);
	glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffer);
	glBufferData(GL_SHADER_STORAGE_BUFFER, sizeof(words), words, GL_DYNAMIC_COPY);
	return glGetUniformLocation(program, "n");
}

static void piece(GLint uniform, uint32_t steps)
{
	GLsync sync;

	if (steps) {
		glUniform1ui(uniform, steps);
		glDispatchCompute(1, 1, 1);
		glMemoryBarrier(GL_ALL_BARRIER_BITS);
	}
	sync = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
	while (glClientWaitSync(sync, GL_SYNC_FLUSH_COMMANDS_BIT, 1000000000) == GL_TIMEOUT_EXPIRED)
		;
	glDeleteSync(sync);
}

/* The least of some runs, ns. */
static double time_piece(GLint uniform, uint32_t steps)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 15; i++) {
		uint64_t begin = gate_now_ns(), took;

		piece(uniform, steps);
		took = gate_now_ns() - begin;
		least = took < least ? took : least;
	}
	return (double)least;
}

static struct load_tally *tally_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *tally = fd < 0 ? MAP_FAILED :
			       mmap(NULL, sizeof(struct load_tally), PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd, 0);

	if (tally == MAP_FAILED)
		die("cannot map the tally");
	close(fd);
	return tally;
}

static int run(GLint uniform, uint32_t steps, struct load_tally *tally, unsigned int pause_us)
{
	bool gated = getenv("OCTAVO_GATE_FD") != NULL;
	struct gate *gate = gated ? gate_open(NULL, NULL) : NULL;
	uint64_t done = 0, used_ns = 0;
	uint32_t words[2], expected = 1;
	bool placed = false;

	if (gated && !gate)
		die("the gate does not open");
	if (gate)
		gate_set_latency(gate, (uint64_t)time_piece(uniform, 0));
	tally->ready = 1;
	while (!tally->stop) {
		uint64_t begin_ns = gate_now_ns();

		if (!tally->go) {
			usleep(200);
			continue;
		}
		if (gate && gate_enter(gate, GATE_WORK))
			die("the gate does not let in");
		piece(uniform, steps);
		if (gate)
			gate_leave(gate);
		tally->latency_us[tally->n_latencies % LOAD_LATENCIES] =
			(uint32_t)((gate_now_ns() - begin_ns) / 1000);
		tally->n_latencies++;
		tally->done_ns = gate_now_ns();
		tally->done = ++done;
		if (!placed && (used_ns += tally->done_ns - begin_ns) > ENGINE_KNOWN_NS) {
			engine_place();
			placed = true;
		}
		if (pause_us)
			usleep(pause_us);
	}
	glGetBufferSubData(GL_SHADER_STORAGE_BUFFER, 0, sizeof(words), words);
	for (uint64_t i = 0; i < done * steps; i++)
		expected = expected * 1664525u + 1013904223u;
	tally->failed = words[0] != expected || words[1] != (uint32_t)done;
	if (tally->failed)
		fprintf(stderr, "load-gl: expected %u and %u, found %u and %u\n", expected,
			(uint32_t)done, words[0], words[1]);
	return tally->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	const uint32_t few = 10000, many = 200000;
	GLint uniform;

	if (argc < 2 || (strcmp(argv[1], "calibrate") != 0 && argc < 4)) {
		fprintf(stderr, "want: calibrate, or STEPS 1 TALLY [PAUSE]\n");
		return 2;
	}
	context_init();
	uniform = program_init();
	if (argc < 4) {
		double small = time_piece(uniform, few), large = time_piece(uniform, many);
		double step = (large - small) / (many - few);

		printf("%.1f %.6f\n", small - step * few, step);
		return step > 0 ? 0 : 1;
	}
	return run(uniform, (uint32_t)strtoul(argv[1], NULL, 10), tally_open(argv[3]),
		   argc > 4 ? (unsigned int)atoi(argv[4]) : 0);
}
