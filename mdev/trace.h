/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace.h - tracepoints: what happens between a guest and its worker, and when
 *
 * A vGPU is named by the number of its VFIO open, as in octavo_vgpu.session.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM octavo

#if !defined(OCTAVO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define OCTAVO_TRACE_H

#include <linux/tracepoint.h>

/* The guest's write to a doorbell has arrived; the worker is woken up next. */
TRACE_EVENT(octavo_kick,
	TP_PROTO(u64 session, u32 queue),
	TP_ARGS(session, queue),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u32, queue)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->queue = queue;
	),
	TP_printk("session=%llu queue=%u", __entry->session, __entry->queue)
);

/* An interrupt towards the guest; @vector 0xffff: the guest wants none. */
TRACE_EVENT(octavo_interrupt,
	TP_PROTO(u64 session, u16 vector),
	TP_ARGS(session, vector),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u16, vector)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->vector = vector;
	),
	TP_printk("session=%llu vector=%u", __entry->session, __entry->vector)
);

/* A new generation: the guest, firmware or VFIO has reset the device. */
TRACE_EVENT(octavo_reset,
	TP_PROTO(u64 session, u32 generation),
	TP_ARGS(session, generation),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u32, generation)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->generation = generation;
	),
	TP_printk("session=%llu generation=%u", __entry->session, __entry->generation)
);

/* A fault that was served: in BAR2 (@offset in it) or in the guest-memory window (an IOVA). */
DECLARE_EVENT_CLASS(octavo_fault,
	TP_PROTO(u64 session, u64 offset, bool write),
	TP_ARGS(session, offset, write),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u64, offset)
		__field(bool, write)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->offset = offset;
		__entry->write = write;
	),
	TP_printk("session=%llu offset=0x%llx %s", __entry->session, __entry->offset,
		  __entry->write ? "write" : "read")
);
DEFINE_EVENT(octavo_fault, octavo_window_fault,
	TP_PROTO(u64 session, u64 offset, bool write),
	TP_ARGS(session, offset, write)
);
DEFINE_EVENT(octavo_fault, octavo_guest_fault,
	TP_PROTO(u64 session, u64 offset, bool write),
	TP_ARGS(session, offset, write)
);

#endif /* OCTAVO_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
