// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu/edid.h"

#include <stdio.h>
#include <string.h>

#define EDID_BLOCK		128
#define EDID_DETAILED		54	/* first of four descriptors of 18 bytes */
#define EDID_DESCRIPTOR		18
#define EDID_DPI		96

static void edid_checksum(uint8_t *block)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < EDID_BLOCK - 1; i++)
		sum += block[i];
	block[EDID_BLOCK - 1] = (uint8_t)(0x100 - (sum & 0xff));
}

void edid_timing_cvt(struct edid_timing *timing, uint32_t width, uint32_t height)
{
	/* CVT 1.2, 3.4: blanking of 160 pixels, at least 460 us, front porch 3, back porch 6 lines */
	const double blank_us = 460.0;
	double line_us = (1e6 / EDID_REFRESH_HZ - blank_us) / height;
	uint32_t v_sync = 10, v_blank = (uint32_t)(blank_us / line_us) + 1;
	double khz;

	/* the width of vertical synchronisation tells the aspect ratio */
	if (width * 3 == height * 4)
		v_sync = 4;
	else if (width * 9 == height * 16)
		v_sync = 5;
	else if (width * 10 == height * 16)
		v_sync = 6;
	else if (width * 4 == height * 5 || width * 9 == height * 15)
		v_sync = 7;
	if (v_blank < 3 + v_sync + 6)
		v_blank = 3 + v_sync + 6;
	khz = (double)EDID_REFRESH_HZ * (height + v_blank) * (width + 160) / 1000.0;
	*timing = (struct edid_timing){
		/* steps of 250 kHz */
		.clock_10khz = (uint32_t)(khz / 250.0) * 25,
		.width = (uint16_t)width,
		.h_blank = 160,
		.h_front = 48,
		.h_sync = 32,
		.height = (uint16_t)height,
		.v_blank = (uint16_t)v_blank,
		.v_front = 3,
		.v_sync = (uint16_t)v_sync,
	};
}

static uint32_t edid_millimetres(uint32_t pixels)
{
	return (pixels * 254 + EDID_DPI * 5) / (EDID_DPI * 10);
}

/* 3.10.2: detailed timing, positive horizontal and negative vertical pulse as CVT-RB has it. */
static void edid_detailed(uint8_t *at, uint32_t width, uint32_t height)
{
	uint32_t mm_x = edid_millimetres(width), mm_y = edid_millimetres(height);
	struct edid_timing timing;

	edid_timing_cvt(&timing, width, height);
	at[0] = (uint8_t)timing.clock_10khz;
	at[1] = (uint8_t)(timing.clock_10khz >> 8);
	at[2] = (uint8_t)timing.width;
	at[3] = (uint8_t)timing.h_blank;
	at[4] = (uint8_t)((timing.width >> 8) << 4 | timing.h_blank >> 8);
	at[5] = (uint8_t)timing.height;
	at[6] = (uint8_t)timing.v_blank;
	at[7] = (uint8_t)((timing.height >> 8) << 4 | timing.v_blank >> 8);
	at[8] = (uint8_t)timing.h_front;
	at[9] = (uint8_t)timing.h_sync;
	at[10] = (uint8_t)((timing.v_front & 0xf) << 4 | (timing.v_sync & 0xf));
	at[11] = (uint8_t)((timing.h_front >> 8) << 6 | (timing.h_sync >> 8) << 4 |
			   (timing.v_front >> 4) << 2 | timing.v_sync >> 4);
	at[12] = (uint8_t)mm_x;
	at[13] = (uint8_t)mm_y;
	at[14] = (uint8_t)((mm_x >> 8) << 4 | mm_y >> 8);
	at[17] = 0x1a;
}

/* 3.10.3: text of up to 13 characters, ended by a line feed, filled with spaces. */
static void edid_text(uint8_t *at, uint8_t tag, const char *text)
{
	size_t length = strnlen(text, 13);

	at[3] = tag;
	memset(at + 5, ' ', 13);
	memcpy(at + 5, text, length);
	if (length < 13)
		at[5 + length] = '\n';
}

/* 3.9: x = (width / 8) - 31, the aspect ratio in the upper bits, refresh - 60 */
static void edid_standard(uint8_t *at, uint32_t width, uint8_t aspect)
{
	at[0] = (uint8_t)(width / 8 - 31);
	at[1] = (uint8_t)(aspect << 6);
}

static void edid_base(uint8_t *edid, uint32_t width, uint32_t height, unsigned int head)
{
	enum { ASPECT_16_10, ASPECT_4_3, ASPECT_5_4, ASPECT_16_9 };
	static const uint8_t header[8] = { 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0 };
	/* BT.709 primaries and D65, 3.7 */
	static const uint8_t colour[10] = { 0xee, 0x91, 0xa3, 0x54, 0x4c, 0x99, 0x26, 0x0f, 0x50,
					    0x54 };
	uint8_t *descriptor = edid + EDID_DETAILED;
	char serial[14];

	memcpy(edid, header, sizeof(header));
	edid[8] = (uint8_t)(('O' - '@') << 2 | ('C' - '@') >> 3); /* "OCT" in letters of five bits */
	edid[9] = (uint8_t)((('C' - '@') & 7) << 5 | ('T' - '@'));
	edid[10] = 1;		/* product */
	edid[12] = (uint8_t)(head + 1);
	edid[16] = 0xff;	/* no week: the next byte is the model year */
	edid[17] = 2026 - 1990;
	edid[18] = 1;
	edid[19] = 4;
	edid[20] = 0xa5;	/* digital, 8 bits a colour, DisplayPort */
	edid[21] = (uint8_t)((edid_millimetres(width) + 5) / 10);
	edid[22] = (uint8_t)((edid_millimetres(height) + 5) / 10);
	edid[23] = 120;		/* gamma 2.2 */
	edid[24] = 0x06;	/* sRGB, the preferred timing is the native one */
	memcpy(edid + 25, colour, sizeof(colour));
	edid[35] = 0x21;	/* 640x480, 800x600 at 60 Hz */
	edid[36] = 0x08;	/* 1024x768 at 60 Hz */
	edid_standard(edid + 38, 1280, ASPECT_16_9);
	edid_standard(edid + 40, 1280, ASPECT_16_10);
	edid_standard(edid + 42, 1280, ASPECT_5_4);
	edid_standard(edid + 44, 1440, ASPECT_16_10);
	edid_standard(edid + 46, 1600, ASPECT_16_9);
	edid_standard(edid + 48, 1680, ASPECT_16_10);
	edid_standard(edid + 50, 1920, ASPECT_16_9);
	edid_standard(edid + 52, 1920, ASPECT_16_10);

	edid_detailed(descriptor, width, height);
	descriptor += EDID_DESCRIPTOR;
	edid_text(descriptor, 0xfc, "Octavo vGPU");
	descriptor += EDID_DESCRIPTOR;
	snprintf(serial, sizeof(serial), "head %u", head);
	edid_text(descriptor, 0xff, serial);
	descriptor += EDID_DESCRIPTOR;
	descriptor[3] = 0xfd;	/* 3.10.3.3.1: range limits */
	descriptor[5] = 50;	/* Hz, vertical */
	descriptor[6] = 75;
	descriptor[7] = 1;	/* kHz, horizontal */
	descriptor[8] = 255;
	descriptor[9] = 60;	/* 10 MHz */
	descriptor[10] = 0x01;	/* limits only */
	descriptor[11] = '\n';
	memset(descriptor + 12, ' ', 6);

	edid[126] = 1;		/* extension blocks */
	edid_checksum(edid);
}

/* CTA-861-H, 7.3: a block whose data collection is empty but for video, and detailed timings */
static void edid_extension(uint8_t *block)
{
	static const struct {
		uint16_t width, height;
	} modes[] = {
		{ 3840, 2160 }, { 2560, 1600 }, { 2560, 1440 }, { 1368, 768 }, { 2048, 1152 },
	};
	/* 1920x1080, 1280x720, 640x480 at 60 Hz */
	static const uint8_t video[] = { 2 << 5 | 3, 16, 4, 1 };
	uint8_t *at;

	block[0] = 0x02;
	block[1] = 3;
	block[2] = 4 + sizeof(video);
	block[3] = 0x80 | 1;	/* underscans; one native timing, that of the base block */
	memcpy(block + 4, video, sizeof(video));
	at = block + 4 + sizeof(video);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		edid_detailed(at, modes[i].width, modes[i].height);
		at += EDID_DESCRIPTOR;
	}
	edid_checksum(block);
}

void edid_build(uint8_t edid[EDID_BYTES], uint32_t width, uint32_t height, unsigned int head)
{
	memset(edid, 0, EDID_BYTES);
	edid_base(edid, width, height, head);
	edid_extension(edid + EDID_BLOCK);
}
