// When a card did what: while a trace is recorded (base/trace.h), events with times, *marks*, stand
// between the parts of a run on each of its streams, and become spans when it has ended. Without a
// trace there are none, and nothing here does anything.
#ifndef BELFRY_CUDA_MARKS_H
#define BELFRY_CUDA_MARKS_H

#include "base/trace.h"
#include "cuda/api.h"
#include "ops/op.h"

// An event, and the span that ends there; it begins at the mark before it on its stream.
typedef struct bel_cuda_mark_row {
    void *event, *stream;
    int span, part; // a bel_trace_span; BEL_CUDA_BEGINS: none ends
} bel_cuda_mark_row;

enum { BEL_CUDA_BEGINS = -1 };

typedef struct bel_cuda_marks {
    const bel_cuda_api *api;
    bel_cuda_mark_row *rows; // NULL: no trace is recorded
    int most, count;         // of a run; so far
    int64_t begun_ns;
} bel_cuda_marks;

// Room for `most` marks of a run, if a trace is recorded. The card's context must be the thread's,
// here as below. What was made is freed after an error, too.
bel_status *bel_cuda_marks_make(bel_cuda_marks *marks, const bel_cuda_api *api,
                                int most) BEL_MUST_USE;
void bel_cuda_marks_free(bel_cuda_marks *marks);

// A run begins, on idle streams: nothing of it is queued yet.
bel_status *bel_cuda_marks_begin(bel_cuda_marks *marks, void *stream) BEL_MUST_USE;
bel_status *bel_cuda_mark(bel_cuda_marks *marks, void *stream, int span, int part) BEL_MUST_USE;

// All that was queued has been done: records the spans, if the context says whose they are.
void bel_cuda_marks_end(const bel_cuda_marks *marks, const bel_run_context *context, int card);

#endif
