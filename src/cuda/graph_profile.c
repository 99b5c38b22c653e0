// Times of calls on a GPU, by its clock, for graph --cost. Each call is timed by events around it,
// with calls queued one by one; the shortest of some runs counts. The total is the time of a
// replayed run, since replayed graphs have no gaps. Nothing is published.
#include "base/alloc.h"
#include "cuda/graph_executor.h"

// Queues one replayed run, then all calls one by one, each between two of `events`, call after
// call. Inputs are copied again in between, as the run may have overwritten them. The calls are
// queued while the GPU executes the run, so their times do not include queueing, unless the run
// finishes sooner.
static bel_status *queue_profile(bel_cuda_executor *x, void **events)
{
    int calls = x->instance->program->call_count;
    BEL_TRY(bel_cuda_send_all(x, false));
    BEL_TRY(bel_cuda_status(x->api->event_record(events[calls + 1], x->work), "record an event"));
    for (int s = 0; s < x->segment_count; s++)
        BEL_TRY(bel_cuda_run_segment(x, s));
    BEL_TRY(bel_cuda_status(x->api->event_record(events[calls + 2], x->work), "record an event"));
    BEL_TRY(bel_cuda_send_all(x, false));
    for (int c = 0; c < calls; c++) {
        BEL_TRY(bel_cuda_status(x->api->event_record(events[c], x->work), "record an event"));
        BEL_TRY(bel_cuda_launch_calls(x, c, c + 1));
    }
    return bel_cuda_status(x->api->event_record(events[calls], x->work), "record an event");
}

static bel_status *keep_shortest(const bel_cuda_executor *x, void *from, void *to, int64_t *out_ns)
{
    float ms;
    BEL_TRY(bel_cuda_status(x->api->event_elapsed(&ms, from, to), "read a GPU's clock"));
    int64_t ns = (int64_t)((double)ms * 1e6);
    if (ns < *out_ns) *out_ns = ns;
    return NULL;
}

// Memory that nothing here writes, such as results of exchanges, is zero. The first run does not
// count: graphs are made after it.
static bel_status *run_profile(bel_cuda_executor *x, void **events, int runs, int64_t *out_ns,
                               int64_t *out_all_ns)
{
    const bel_instance *instance = x->instance;
    int calls = instance->program->call_count;
    for (int c = 0; c < calls; c++)
        out_ns[c] = INT64_MAX;
    *out_all_ns = INT64_MAX;
    BEL_TRY(bel_cuda_status(x->api->fill(bel_cuda_address(instance->memory->address), 0,
                                         instance->memory->bytes, x->work),
                            "fill memory"));
    BEL_TRY(bel_cuda_send_state(x));
    BEL_TRY(bel_cuda_send_all(x, true));
    for (int run = 0; run <= runs; run++) {
        BEL_TRY(queue_profile(x, events));
        BEL_TRY(bel_cuda_finish(x, NULL));
        for (int c = 0; run > 0 && c < calls; c++)
            BEL_TRY(keep_shortest(x, events[c], events[c + 1], &out_ns[c]));
        if (run > 0) BEL_TRY(keep_shortest(x, events[calls + 1], events[calls + 2], out_all_ns));
    }
    return bel_cuda_fetch(x, 0, x->state.address, sizeof(bel_cuda_state));
}

bel_status *bel_cuda_profile(bel_instance *instance, int runs, int64_t *out_ns, int64_t *out_all_ns)
{
    bel_cuda_executor *x = instance->on_device;
    int count = instance->program->call_count + 3; // around each call, and around the run
    BEL_TRY(bel_cuda_enter(x->device));
    if (instance->rebound) bel_cuda_follow_binding(x);
    instance->rebound = false;
    void **events = bel_xcalloc((size_t)count, sizeof *events);
    bel_status *status = NULL;
    instance->memory->user = NULL;
    for (int e = 0; e < count && status == NULL; e++)
        status = bel_cuda_status(x->api->event_create(&events[e], BEL_CUDA_EVENT_TIMED),
                                 "make an event");
    if (status == NULL) status = run_profile(x, events, runs, out_ns, out_all_ns);
    status = bel_cuda_finish(x, status);
    if (status == NULL) bel_cuda_take_error(x);
    for (int e = 0; e < count; e++)
        if (events[e] != NULL) x->api->event_destroy(events[e]);
    bel_free(events);
    return bel_status_wrap(status, __FILE__, __LINE__, "%s", x->device->device.name);
}
