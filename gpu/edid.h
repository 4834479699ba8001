/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * edid.h - the description of a monitor that a guest's head is connected to
 *
 * A base block of EDID 1.4 and one CTA-861 extension. The first detailed timing is the preferred
 * mode, any from 64x64 to 3840x2160 with a width that is a multiple of 8; the common modes up to
 * 3840x2160 follow, so that a guest's display settings have something to choose from.
 */
#ifndef OCTAVO_GPU_EDID_H
#define OCTAVO_GPU_EDID_H

#include <stdint.h>

#define EDID_BYTES	256
#define EDID_REFRESH_HZ	60

struct edid_timing {
	uint32_t clock_10khz;
	uint16_t width, h_blank, h_front, h_sync;	/* pixels */
	uint16_t height, v_blank, v_front, v_sync;	/* lines */
};

/* Timing of reduced blanking by the rules of VESA CVT 1.2 for 60 Hz. */
void edid_timing_cvt(struct edid_timing *timing, uint32_t width, uint32_t height);

/* @head numbers the monitor, so that desktops keep settings apart. */
void edid_build(uint8_t edid[EDID_BYTES], uint32_t width, uint32_t height, unsigned int head);

#endif
