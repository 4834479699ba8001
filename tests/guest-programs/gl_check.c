// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gl_check [FRAMES]: draws with OpenGL ES without a window and compares every pixel
 *
 * Prints the renderer and "exact: N of N pixels" of the last frame. Status 0: all are right.
 */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE	256

static const char vertex_source[] =
	"#version 300 es\n"
	"void main() {\n"
	"	vec2 corner = vec2(float((gl_VertexID & 1) << 2), float((gl_VertexID & 2) << 1));\n"
	"	gl_Position = vec4(corner - 1.0, 0.0, 1.0);\n"
	"}\n";

/* bytes of a pixel are functions of its place and the frame */
static const char fragment_source[] =
	"#version 300 es\n"
	"precision highp float;\n"
	"precision highp int;\n"
	"uniform int frame;\n"
	"out vec4 color;\n"
	"void main() {\n"
	"	ivec2 at = ivec2(gl_FragCoord.xy);\n"
	"	color = vec4(ivec4(at.x & 255, at.y & 255, (at.x ^ at.y ^ frame) & 255, 255)) / 255.0;\n"
	"}\n";

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "gl_check: %s does not work (EGL 0x%x, GL 0x%x)\n", what,
		(unsigned int)eglGetError(), (unsigned int)glGetError());
	exit(1);
}

static GLuint shader(GLenum kind, const char *source)
{
	GLuint name = glCreateShader(kind);
	GLint good = 0;

	glShaderSource(name, 1, &source, NULL);
	glCompileShader(name);
	glGetShaderiv(name, GL_COMPILE_STATUS, &good);
	need(good, "the compiler");
	return name;
}

static void context(void)
{
	static const EGLint config_wish[] = {
		EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_NONE,
	};
	static const EGLint context_wish[] = { EGL_CONTEXT_MAJOR_VERSION, 3, EGL_NONE };
	EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA,
						   EGL_DEFAULT_DISPLAY, NULL);
	EGLConfig config = NULL;
	EGLContext egl;
	EGLint count = 0;

	need(eglInitialize(display, NULL, NULL) == EGL_TRUE, "EGL");
	need(eglBindAPI(EGL_OPENGL_ES_API) == EGL_TRUE, "OpenGL ES");
	eglChooseConfig(display, config_wish, &config, 1, &count);
	egl = eglCreateContext(display, count ? config : NULL, EGL_NO_CONTEXT, context_wish);
	need(egl != EGL_NO_CONTEXT, "a context");
	need(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, egl) == EGL_TRUE,
	     "a context without surface");
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[1]) : 1;
	static uint8_t pixels[SIDE * SIDE][4];
	unsigned int right = 0;
	GLuint program, framebuffer, texture, array;
	GLint good = 0, place;

	setvbuf(stdout, NULL, _IOLBF, 0);
	context();
	printf("renderer: %s\nversion: %s\n", (const char *)glGetString(GL_RENDERER),
	       (const char *)glGetString(GL_VERSION));
	program = glCreateProgram();
	glAttachShader(program, shader(GL_VERTEX_SHADER, vertex_source));
	glAttachShader(program, shader(GL_FRAGMENT_SHADER, fragment_source));
	glLinkProgram(program);
	glGetProgramiv(program, GL_LINK_STATUS, &good);
	need(good, "the linker");
	glUseProgram(program);
	place = glGetUniformLocation(program, "frame");
	glGenTextures(1, &texture);
	glBindTexture(GL_TEXTURE_2D, texture);
	glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, SIDE, SIDE);
	glGenFramebuffers(1, &framebuffer);
	glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
	glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
	need(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "a framebuffer");
	glGenVertexArrays(1, &array);
	glBindVertexArray(array);
	glViewport(0, 0, SIDE, SIDE);
	for (int frame = 0; frame < frames; frame++) {
		glUniform1i(place, frame);
		glDrawArrays(GL_TRIANGLES, 0, 3);
		glFinish();
	}
	glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
	for (int y = 0; y < SIDE; y++) {
		for (int x = 0; x < SIDE; x++) {
			const uint8_t *at = pixels[y * SIDE + x];

			right += at[0] == x && at[1] == y && at[3] == 255 &&
				 at[2] == ((x ^ y ^ (frames - 1)) & 255);
		}
	}
	printf("exact: %u of %u pixels\n", right, SIDE * SIDE);
	return right != SIDE * SIDE || glGetError() != GL_NO_ERROR;
}
