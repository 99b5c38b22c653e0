// Traces: activity of threads, as spans of CLOCK_MONOTONIC.
//
// When off, a trace point costs one predictable branch. When on, a span is a copy to the ring of
// its thread: no lock, no allocation (a thread's first span makes its ring). The newest
// BEL_TRACE_RING spans of each thread stay; dropped ones are counted.
//
// Rings are in a part file that is mapped into memory, one for each process, so a killed process
// loses no recorded span. At the end, bel_trace_merge (trace_merge.c) makes one Chrome trace of all
// part files of a folder. Their byte order is the host's: the program that wrote a part file also
// reads it.
#ifndef BELFRY_BASE_TRACE_H
#define BELFRY_BASE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "belfry/status.h"

enum { BEL_TRACE_RING = 1 << 16 };

// Role of a span; in one process a thread may work for several.
typedef enum bel_trace_role {
    BEL_TRACE_MASTER,
    BEL_TRACE_WORKER,
    BEL_TRACE_SHARD,
    BEL_TRACE_EVALUATOR,
    BEL_TRACE_SERVER, // answers with models
    BEL_TRACE_ROLE_COUNT
} bel_trace_role;

// Row of a span: its thread's, or a device's. A device has two rows for each tower, as copies of
// reports overlap the next computation.
typedef enum bel_trace_row {
    BEL_TRACE_OF_THREAD,
    BEL_TRACE_OF_DEVICE,
    BEL_TRACE_OF_COPIES,
} bel_trace_row;

// id, name in the file, meaning of `part` ("" for unused), the row
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
    X(READ, "read", "model", THREAD)                                                               \
    X(QUEUE, "queue", "model", THREAD)                                                             \
    X(RUN, "run", "model", THREAD)                                                                 \
    X(WRITE, "write", "model", THREAD)                                                             \
    X(LOAD, "load", "model", THREAD)                                                               \
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
    int64_t step;     // wait and publication: the version
    uint64_t workers; // PASS, SUM, TABLE: bits of the workers whose reports are in it; all:
                      // BEL_TRACE_EVERYBODY
    int32_t part;
    int16_t index; // index within the role
    uint8_t role, span;
    uint8_t device; // COMPUTE, rows of devices: 1 + the number of the GPU; 0: the processor
    uint16_t tower; // rows of devices: the worker's tower
} bel_trace_event;

enum { BEL_TRACE_MOST_CARDS = 64 };

#define BEL_TRACE_EVERYBODY UINT64_MAX

extern atomic_bool bel_trace_on; // for the functions below

static inline bool bel_trace_is_on(void)
{
    return atomic_load_explicit(&bel_trace_on, memory_order_relaxed);
}

// Returns the time for bel_trace_end, or 0 when recording is off.
static inline int64_t bel_trace_begin(void)
{
    return bel_trace_is_on() ? bel_clock_ns() : 0;
}

void bel_trace_put(const bel_trace_event *event);

// Records a span with known times.
static inline void bel_trace_add(bel_trace_event event, int64_t begun_ns, int64_t ended_ns)
{
    if (!bel_trace_is_on()) return;
    event.begun_ns = begun_ns;
    event.ended_ns = ended_ns;
    bel_trace_put(&event);
}

// Records a span that ends now; does nothing if begun_ns is 0.
static inline void bel_trace_end(bel_trace_event event, int64_t begun_ns)
{
    if (begun_ns != 0) bel_trace_add(event, begun_ns, bel_clock_ns());
}

// --- A process's part ----------------------------------------------------------------------------

// Creates folder/NAME.trace-part, and the folder if it is missing, and starts recording; does
// nothing if this process already records. RESOURCE_EXHAUSTED: no space on the disk.
bel_status *bel_trace_start(const char *folder, const char *name) BEL_MUST_USE;

// Sets the lead of the trace's clock over this process's, if it runs on another host.
void bel_trace_set_lead(int64_t lead_ns);

// Stops recording. No thread may be recording. The part stays for bel_trace_merge.
void bel_trace_stop(void);

// --- Merge --------------------------------------------------------------------------------------

// Removes the parts of an earlier job.
bel_status *bel_trace_clear(const char *folder) BEL_MUST_USE;

// Writes the parts in the folder as one Chrome trace (a JSON array), and removes them. Tracks are
// the roles ("worker 1"), whose rows are the threads, and their devices ("worker 1 on cuda:0"). A
// flow joins a report, the pass that included it, and the wait that ended with the outcome, if all
// of them were recorded. A damaged part is skipped with a warning. Errors: those of writing `path`.
bel_status *bel_trace_merge(const char *folder, const char *path) BEL_MUST_USE;

#endif
