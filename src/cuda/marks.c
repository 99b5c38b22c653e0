// Marks: see marks.h. Each run relates the GPU's clock to the process's again. The process takes
// the time before it queues the first mark, when the GPU cannot have reached it. It takes it again
// when all work is done, when the GPU has passed the last mark. Spans are placed at the earliest
// times that this allows. The true times may all be later, at most by the time between the end of
// the last span and the end of the run. (As the streams were idle, the GPU reaches the first mark
// within microseconds of its queueing.)
#include "cuda/marks.h"

#include "base/alloc.h"

bel_status *bel_cuda_marks_make(bel_cuda_marks *marks, const bel_cuda_api *api, int most)
{
    if (!bel_trace_is_on()) return NULL;
    marks->api = api;
    marks->most = most;
    marks->rows = bel_xcalloc((size_t)most, sizeof *marks->rows);
    for (int m = 0; m < most; m++)
        BEL_TRY(bel_cuda_status(api->event_create(&marks->rows[m].event, BEL_CUDA_EVENT_TIMED),
                                "make an event"));
    return NULL;
}

void bel_cuda_marks_free(bel_cuda_marks *marks)
{
    for (int m = 0; marks->rows != NULL && m < marks->most; m++)
        if (marks->rows[m].event != NULL) marks->api->event_destroy(marks->rows[m].event);
    bel_free(marks->rows);
    *marks = (bel_cuda_marks){.rows = NULL};
}

bel_status *bel_cuda_marks_begin(bel_cuda_marks *marks, void *stream)
{
    marks->begun_ns = bel_trace_begin();
    marks->count = 0;
    return bel_cuda_mark(marks, stream, BEL_CUDA_BEGINS, 0);
}

bel_status *bel_cuda_mark(bel_cuda_marks *marks, void *stream, int span, int part)
{
    if (marks->rows == NULL) return NULL;
    bel_cuda_mark_row *row = &marks->rows[marks->count++];
    row->stream = stream;
    row->span = span;
    row->part = part;
    return bel_cuda_status(marks->api->event_record(row->event, stream), "record an event");
}

static const bel_cuda_mark_row *before_on_stream(const bel_cuda_marks *marks, int m)
{
    for (int before = m - 1; before >= 0; before--)
        if (marks->rows[before].stream == marks->rows[m].stream) return &marks->rows[before];
    return NULL;
}

// Nanoseconds since the first mark; -1: the driver does not report it.
static int64_t time_of(const bel_cuda_marks *marks, const bel_cuda_mark_row *row)
{
    float ms = 0;
    if (row == marks->rows) return 0;
    int error = marks->api->event_elapsed(&ms, marks->rows[0].event, row->event);
    return error == 0 && ms >= 0 ? (int64_t)((double)ms * 1e6) : -1;
}

// Events are accurate to half a microsecond, so ends are kept within the run.
void bel_cuda_marks_end(const bel_cuda_marks *marks, const bel_run_context *context, int card)
{
    if (marks->begun_ns == 0 || context->traced_as == 0) return;
    int64_t begun = marks->begun_ns, most = bel_clock_ns() - begun;
    for (int m = 0; m < marks->count; m++) {
        const bel_cuda_mark_row *row = &marks->rows[m], *before = before_on_stream(marks, m);
        if (row->span == BEL_CUDA_BEGINS || before == NULL) continue;
        int64_t from = time_of(marks, before), to = time_of(marks, row);
        if (from < 0 || to < from) continue;
        bel_trace_add((bel_trace_event){.role = BEL_TRACE_WORKER,
                                        .index = (int16_t)(context->traced_as - 1),
                                        .step = context->step,
                                        .part = row->part,
                                        .span = (uint8_t)row->span,
                                        .tower = (uint16_t)context->tower,
                                        .device = (uint8_t)(card + 1)},
                      begun + (from < most ? from : most), begun + (to < most ? to : most));
    }
}
