/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kvm - can /dev/kvm run a guest?
 *
 * That the node exists says little: some hosts offer one that starts no guest. So a VM of one page
 * and one vCPU is really run.
 */
#ifndef OCTAVO_TOOLS_KVM_H
#define OCTAVO_TOOLS_KVM_H

enum kvm_result {
	KVM_RUNS,		/* a few real-mode instructions did what they should */
	KVM_ABSENT,		/* no /dev/kvm */
	KVM_DENIED,		/* this user may not open it */
	KVM_BROKEN,		/* it is there and does not run a guest */
};

/* Takes at most two seconds, also when the vCPU hangs. */
enum kvm_result kvm_try(const char *path);

#endif /* OCTAVO_TOOLS_KVM_H */
