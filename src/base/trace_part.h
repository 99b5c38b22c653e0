// Layout of a trace's part file: a header, then rings, each in separate pages, whatever this
// kernel's page size is (up to 64 KiB on aarch64).
#ifndef BELFRY_BASE_TRACE_PART_H
#define BELFRY_BASE_TRACE_PART_H

#include "base/trace.h"

enum { BEL_TRACE_PAGE = 65536, BEL_TRACE_MOST_RINGS = 256 };

#define BEL_TRACE_SUFFIX ".trace-part"
#define BEL_TRACE_MAGIC 0x3154524c4542u // "BELTR1"

typedef struct bel_trace_header {
    uint64_t magic;
    uint32_t event_bytes, ring_events;
    _Atomic int64_t lead_ns; // added to all times
    _Atomic int64_t lost;    // spans of threads without a ring
} bel_trace_header;

typedef struct bel_trace_ring {
    _Atomic uint64_t written; // event n is at n mod BEL_TRACE_RING
    char rest_of_page[BEL_TRACE_PAGE - sizeof(uint64_t)];
    bel_trace_event events[BEL_TRACE_RING];
} bel_trace_ring;

_Static_assert(sizeof(bel_trace_ring) % BEL_TRACE_PAGE == 0, "rings are mapped one by one");

#endif
