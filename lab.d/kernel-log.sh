# SPDX-License-Identifier: LGPL-2.1-or-later
# What a kernel log says when the kernel is at fault. Sourced by ./lab and, in the host VM, by tests.

# Pass on lines that mean a fault in the kernel; false when there is none.
kernel_complaints() {
	grep -E 'WARNING:|BUG:|BUG |Oops|general protection fault|INFO: task .* blocked|rcu: INFO: .*(stall|detected)|soft lockup|circular locking|suspicious RCU|KASAN|UBSAN|refcount_t:|list_(add|del) corruption|unreferenced object|Bad page|Kernel panic|segfault at' "$@"
}
