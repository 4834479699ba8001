// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tools/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KVM_SECONDS	2u
#define KVM_CODE_ADDR	0x1000u
#define KVM_PAGE	0x1000u
#define KVM_PORT	0x10u
#define KVM_ANSWER	0x42u

/* mov $0x42,%al; out %al,$0x10; hlt */
static const unsigned char kvm_code[] = { 0xb0, KVM_ANSWER, 0xe6, KVM_PORT, 0xf4 };

static bool kvm_run_until_halt(int vcpu, const struct kvm_run *run)
{
	bool answered = false;

	for (;;) {
		if (ioctl(vcpu, KVM_RUN, 0) < 0)
			return false;
		if (run->exit_reason == KVM_EXIT_HLT)
			return answered;
		if (run->exit_reason != KVM_EXIT_IO || run->io.port != KVM_PORT ||
		    *((const unsigned char *)run + run->io.data_offset) != KVM_ANSWER)
			return false;
		answered = true;
	}
}

/* Runs in a child: whatever it leaves open goes with it. */
static bool kvm_run_guest(int kvm)
{
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = KVM_CODE_ADDR,
		.memory_size = KVM_PAGE,
	};
	struct kvm_regs registers = { .rip = KVM_CODE_ADDR, .rflags = 2 };
	struct kvm_sregs segments;
	struct kvm_run *run;
	int vm, vcpu, run_bytes;
	void *page;

	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	page = mmap(NULL, KVM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (vm < 0 || page == MAP_FAILED)
		return false;
	memcpy(page, kvm_code, sizeof(kvm_code));
	region.userspace_addr = (unsigned long)page;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return false;
	vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	run_bytes = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (vcpu < 0 || run_bytes < (int)sizeof(*run))
		return false;
	run = mmap(NULL, (size_t)run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	if (run == MAP_FAILED || ioctl(vcpu, KVM_GET_SREGS, &segments) < 0)
		return false;
	segments.cs.base = 0;
	segments.cs.selector = 0;
	if (ioctl(vcpu, KVM_SET_SREGS, &segments) < 0 || ioctl(vcpu, KVM_SET_REGS, &registers) < 0)
		return false;
	return kvm_run_until_halt(vcpu, run);
}

enum kvm_result kvm_try(const char *path)
{
	int kvm, status;
	pid_t child;

	kvm = open(path, O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		return errno == EACCES || errno == EPERM ? KVM_DENIED : KVM_ABSENT;
	child = fork();
	if (child == 0) {
		alarm(KVM_SECONDS);
		_exit(kvm_run_guest(kvm) ? 0 : 1);
	}
	close(kvm);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return KVM_BROKEN;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? KVM_RUNS : KVM_BROKEN;
}
