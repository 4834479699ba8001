/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vq.h - a virtio-gpu's control queue, driven from user space so that nothing of DRM is in the way
 *
 * For root in a guest without IOMMU, after virtio-pci has been unbound from the function. One device
 * and one request at a time; no interrupts. Whatever is wrong ends the program with a message.
 */
#ifndef OCTAVO_TESTS_VQ_H
#define OCTAVO_TESTS_VQ_H

#include <linux/virtio_gpu.h>
#include <stdbool.h>
#include <stdint.h>

#define VQ_PAGE		4096u
#define VQ_LATE_NS	5000000000ull	/* no answer after this long is a lost kick */

struct vq_buffer {
	uint64_t physical;
	void *bytes;		/* VQ_PAGE of them */
};

/* Pages that the device is told of: one for a request, one for its answer, one to spare. */
extern struct vq_buffer vq_request, vq_answer, vq_spare;

__attribute__((noreturn, format(printf, 1, 2))) void vq_die(const char *format, ...);
uint64_t vq_now_ns(void);

/* @address: of the PCI function. */
void vq_map(const char *address);
/* Where the guest sees a BAR of the function, and its size. */
uint64_t vq_bar(const char *address, unsigned int index, uint64_t *bytes);
/* Resets the device and sets it up; true if event indexes were agreed on. */
bool vq_start(bool event_idx);
void vq_stop(void);
bool vq_needs_reset(void);

/*
 * Sends @out bytes at @physical, the answer goes to vq_answer; kicks if the device wants it, which
 * counts in *kicks. False: no answer came, and the device asks to be reset; VQ_LATE_NS without
 * either ends the program. *spent_ns: how long it took.
 */
bool vq_send(uint64_t physical, uint32_t out, unsigned long *kicks, uint64_t *spent_ns);

#endif
