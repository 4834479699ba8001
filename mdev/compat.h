/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.h - what differs between the kernels that octavo.ko is built for (6.12 and later)
 */
#ifndef OCTAVO_COMPAT_H
#define OCTAVO_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>
#include <linux/vfio.h>
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#include <linux/pfn_t.h>
#endif

/* 6.19: the VFIO core answers VFIO_DEVICE_GET_REGION_INFO and asks the driver for the contents. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define OCTAVO_CORE_REGION_INFO 1
#else
#define OCTAVO_CORE_REGION_INFO 0
#endif

/* 6.17: a plain frame number instead of pfn_t. */
static inline vm_fault_t compat_insert_pfn_pmd(struct vm_fault *vmf, unsigned long pfn)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
	return vmf_insert_pfn_pmd(vmf, pfn, true);
#else
	return vmf_insert_pfn_pmd(vmf, __pfn_to_pfn_t(pfn, PFN_DEV), true);
#endif
}

#endif /* OCTAVO_COMPAT_H */
