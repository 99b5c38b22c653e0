// Times of the GPU's work for a trace (base/trace.h). While a trace is recorded, timed events
// (*marks*) separate the parts of a run on each stream, and become spans when the run has finished.
// Without a trace there are no marks, and all functions here do nothing.
#ifndef BELFRY_CUDA_MARKS_H
#define BELFRY_CUDA_MARKS_H

#include "base/trace.h"
#include "cuda/api.h"
#include "ops/op.h"

// An event, and the span that ends at it and starts at the previous mark on its stream.
typedef struct bel_cuda_mark_row {
    void *event, *stream;
    int span, part; // a bel_trace_span; BEL_CUDA_BEGINS: no span ends here
} bel_cuda_mark_row;

enum { BEL_CUDA_BEGINS = -1 };

typedef struct bel_cuda_marks {
    const bel_cuda_api *api;
    bel_cuda_mark_row *rows; // NULL: no trace is recorded
    int most, count;         // marks of a run; so far
    int64_t begun_ns;
} bel_cuda_marks;

// Makes room for `most` marks of a run, if a trace is recorded. The GPU's context must be current
// here and below. bel_cuda_marks_free is needed after an error, too.
bel_status *bel_cuda_marks_make(bel_cuda_marks *marks, const bel_cuda_api *api,
                                int most) BEL_MUST_USE;
void bel_cuda_marks_free(bel_cuda_marks *marks);

// Starts a run, on idle streams, before any work is queued.
bel_status *bel_cuda_marks_begin(bel_cuda_marks *marks, void *stream) BEL_MUST_USE;
bel_status *bel_cuda_mark(bel_cuda_marks *marks, void *stream, int span, int part) BEL_MUST_USE;

// Records the spans of finished work, if the context says whose they are.
void bel_cuda_marks_end(const bel_cuda_marks *marks, const bel_run_context *context, int card);

#endif
