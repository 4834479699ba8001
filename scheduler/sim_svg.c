// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>

#include "scheduler/sim.h"

#define LEFT   320.0 /* a UUID and a percentage fit before it */
#define WIDTH  1000.0
#define TOP    46.0
#define LANE   26.0
#define BOTTOM 34.0

/* Told apart by those who see red and green alike, too (Okabe and Ito). */
static const char *const colours[] = { "#0072b2", "#e69f00", "#009e73", "#cc79a7",
				       "#56b4e9", "#d55e00", "#8c8c00", "#666666" };

static double scale(uint64_t ns, uint64_t begin_ns, uint64_t span_ns)
{
	return LEFT + WIDTH * (double)(ns - begin_ns) / (double)span_ns;
}

/* Tick distance: 1, 2 or 5 times a power of ten, about ten ticks. */
static uint64_t tick_ns(uint64_t span_ns)
{
	uint64_t tick = 1;

	while (tick * 100 < span_ns)
		tick *= 10;
	if (tick * 20 >= span_ns)
		return tick * 2;
	return tick * 50 >= span_ns ? tick * 5 : tick * 10;
}

void sim_svg(FILE *file, const struct sim_vgpu *vgpus, uint32_t n_vgpus,
	     const struct turn_slice *slices, size_t n_slices, const char *title)
{
	double height = TOP + LANE * n_vgpus + BOTTOM;
	uint64_t begin_ns = UINT64_MAX, end_ns = 0, span_ns, tick;

	for (size_t i = 0; i < n_slices; i++) {
		if (slices[i].begin_ns < begin_ns)
			begin_ns = slices[i].begin_ns;
		if (slices[i].end_ns > end_ns)
			end_ns = slices[i].end_ns;
	}
	if (end_ns <= begin_ns) {
		begin_ns = 0;
		end_ns = 1;
	}
	span_ns = end_ns - begin_ns;
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"10\" y=\"22\" font-size=\"15\">",
		LEFT + WIDTH + 20, height);
	for (const char *c = title; *c; c++)
		if (*c == '<' || *c == '&')
			fprintf(file, "&#%d;", *c);
		else
			fputc(*c, file);
	fprintf(file, "</text>\n");
	tick = tick_ns(span_ns);
	for (uint64_t t = 0; t <= span_ns; t += tick) {
		double x = scale(begin_ns + t, begin_ns, span_ns);

		fprintf(file,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"#ddd\"/>"
			"<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\" fill=\"#555\">%g ms</text>\n",
			x, x, TOP - 4, height - BOTTOM + 4, x, height - 12, (double)t / 1e6);
	}
	for (uint32_t i = 0; i < n_vgpus; i++) {
		double y = TOP + LANE * i;
		uint64_t used_ns = 0;

		for (size_t j = 0; j < n_slices; j++)
			used_ns += slices[j].vgpu == i ? slices[j].used_ns : 0;
		fprintf(file,
			"<text x=\"10\" y=\"%.1f\">%s</text><text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">%.1f%%</text>\n<g fill=\"%s\">\n",
			y + 15, vgpus[i].name, LEFT - 8, y + 15,
			100.0 * (double)used_ns / (double)span_ns,
			colours[i % (sizeof(colours) / sizeof(colours[0]))]);
		for (size_t j = 0; j < n_slices; j++) {
			double x = scale(slices[j].begin_ns, begin_ns, span_ns);
			double w = scale(slices[j].end_ns, begin_ns, span_ns) - x;

			if (slices[j].vgpu == i)
				fprintf(file,
					"<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"20\"><title>%.3f-%.3f ms, overrun %.3f ms</title></rect>\n",
					x, y, w > 0.3 ? w : 0.3,
					(double)(slices[j].begin_ns - begin_ns) / 1e6,
					(double)(slices[j].end_ns - begin_ns) / 1e6,
					(double)slices[j].overrun_ns / 1e6);
		}
		fprintf(file, "</g>\n");
	}
	fprintf(file, "</svg>\n");
}
