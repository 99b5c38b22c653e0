// Traces: what threads did when, as spans of CLOCK_MONOTONIC.
//
// Off, a place that could record costs one predictable branch. On, a span is a copy into the ring
// of its thread: no lock, no allocation (a thread's first span makes its ring). The newest
// BEL_TRACE_RING spans of each thread stay; how many were dropped is kept.
//
// Rings lie in a part file that is mapped into memory, one for each process: a process that is
// killed loses nothing that it has recorded. bel_trace_merge (trace_merge.c) makes one Chrome trace
// of all part files of a folder, in the end. Their layout is the host's own: a part file is read by
// the same program that wrote it.
#ifndef BELFRY_BASE_TRACE_H
#define BELFRY_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "belfry/status.h"

enum { BEL_TRACE_RING = 1 << 16 };

// Whose work it is; in one process a thread may work for several.
typedef enum bel_trace_role {
    BEL_TRACE_MASTER,
    BEL_TRACE_WORKER,
    BEL_TRACE_SHARD,
    BEL_TRACE_EVALUATOR,
    BEL_TRACE_ROLE_COUNT
} bel_trace_role;

// The row that a span is in: its thread's, or one of a device's, which has two for each tower, as
// copies of reports run beside what comes next.
typedef enum bel_trace_row {
    BEL_TRACE_OF_THREAD,
    BEL_TRACE_OF_DEVICE,
    BEL_TRACE_OF_COPIES,
    BEL_TRACE_ROW_COUNT
} bel_trace_row;

// id, name in the file, what `part` is ("" for nothing), the row
#define BEL_TRACE_SPANS(X)                                                                         \
    X(INPUT, "wait for input", "replica", THREAD)                                                  \
    X(COMPUTE, "compute", "replica", THREAD)                                                       \
    X(REPORT, "report", "chunk", THREAD)                                                           \
    X(WAIT, "wait for version", "", THREAD)                                                        \
    X(EXCHANGE, "exchange", "exchange", THREAD)                                                    \
    X(WAIT_ROWS, "wait for rows", "", THREAD)                                                      \
    X(REPORT_ROWS, "report of rows", "table", THREAD)                                              \
    X(PASS, "pass", "chunk", THREAD)                                                               \
    X(SUM, "sum", "chunk", THREAD)                                                                 \
    X(UPDATE, "update", "chunk", THREAD)                                                           \
    X(COPY, "copy", "chunk", THREAD)                                                               \
    X(ROWS, "rows", "table", THREAD)                                                               \
    X(TABLE, "update of table", "table", THREAD)                                                   \
    X(PUBLISH, "publish", "", THREAD)                                                              \
    X(SAVE, "save", "", THREAD)                                                                    \
    X(EVALUATE, "evaluate", "", THREAD)                                                            \
    X(COPY_IN, "copies in", "", DEVICE)                                                            \
    X(KERNELS, "kernels", "segment", DEVICE)                                                       \
    X(COPY_RESULTS, "copies of results", "", DEVICE)                                               \
    X(COPY_REPORTS, "copies of reports", "segment", COPIES)

typedef enum bel_trace_span {
#define X(id, name, part, row) BEL_TRACE_##id,
    BEL_TRACE_SPANS(X)
#undef X
        BEL_TRACE_SPAN_COUNT
} bel_trace_span;

typedef struct bel_trace_event {
    int64_t begun_ns, ended_ns;
    int64_t step; // of a wait and a publication: the version
    uint64_t
        workers; // PASS, SUM, TABLE: whose reports are in it, as bits; all: BEL_TRACE_EVERYBODY
    int32_t part;
    int16_t index; // of the role
    uint8_t role, span;
    uint8_t device; // COMPUTE, rows of devices: 1 + the number of the card; 0: the processor
    uint16_t tower; // rows of devices: of the worker
} bel_trace_event;

enum { BEL_TRACE_MOST_CARDS = 64 };

#define BEL_TRACE_EVERYBODY UINT64_MAX

extern atomic_bool bel_trace_on; // for the functions below

static inline bool bel_trace_is_on(void)
{
    return atomic_load_explicit(&bel_trace_on, memory_order_relaxed);
}

// The time, or 0 when nothing is recorded: what bel_trace_end is given.
static inline int64_t bel_trace_begin(void)
{
    return bel_trace_is_on() ? bel_clock_ns() : 0;
}

void bel_trace_put(const bel_trace_event *event);

// Records a span whose times are known.
static inline void bel_trace_add(bel_trace_event event, int64_t begun_ns, int64_t ended_ns)
{
    if (!bel_trace_is_on()) return;
    event.begun_ns = begun_ns;
    event.ended_ns = ended_ns;
    bel_trace_put(&event);
}

// Records a span that ends now; nothing when begun_ns is 0.
static inline void bel_trace_end(bel_trace_event event, int64_t begun_ns)
{
    if (begun_ns != 0) bel_trace_add(event, begun_ns, bel_clock_ns());
}

// --- A process's part ----------------------------------------------------------------------------

// Creates folder/NAME.trace-part, the folder too if it is missing, and records from now on; when
// this process records already, nothing happens. RESOURCE_EXHAUSTED: no room on the disk.
bel_status *bel_trace_start(const char *folder, const char *name) BEL_MUST_USE;

// By how much this process's clock is behind the trace's, where it runs on another host.
void bel_trace_set_lead(int64_t lead_ns);

// No thread may be recording. The part stays for bel_trace_merge.
void bel_trace_stop(void);

// --- The whole ----------------------------------------------------------------------------------

// Removes the parts that an earlier job has left.
bel_status *bel_trace_clear(const char *folder) BEL_MUST_USE;

// Writes the parts in the folder as one Chrome trace (a JSON array), and removes them. Tracks are
// the roles ("worker 1"), whose rows are the threads, and their devices ("worker 1 on cuda:0").
// Where a report, the pass that it was part of, and the wait that ended with the outcome are all
// there, a flow joins them. A part that is damaged is left out with a warning. Errors: those of
// writing `path`.
bel_status *bel_trace_merge(const char *folder, const char *path) BEL_MUST_USE;

#endif
