// Asynchronous program as calls of the executor in runtime/async.h.
// The calls of a stream share a run context, which only one of them uses at a time. So an error in
// it belongs to a known call.
#include "base/alloc.h"
#include "runtime/async.h"
#include "runtime/flow.h"
#include "runtime/instance_inner.h"

// The first error of a stream.
typedef struct failure {
    int error; // as in bel_run_context; 0: none
    int64_t bad_value, bad_low, bad_limit;
} failure;

struct bel_instance_async {
    const bel_instance *instance;
    bel_async *executor;
    bel_run_context *contexts;  // by stream
    failure *failures;          // by stream
    int *first_publications;    // [call_count + 1]
    bel_instance_run_args args; // current run's
};

// Runs a part of a call: one tile if the call has several parts, else all tiles.
static void run_part(void *context, int call, int64_t part)
{
    const bel_instance_async *async = context;
    const bel_instance *instance = async->instance;
    if (instance->program->flow->part_counts[call] > 1) {
        bel_instance_run_tile(instance, &async->args, call, part);
        return;
    }
    for (int64_t tile = 0; tile < instance->calls[call].tile_count; tile++)
        bel_instance_run_tile(instance, &async->args, call, tile);
}

// Runs on the thread that finished the last part. The calls of a stream follow each other, so an
// error in the stream's context is this call's. It is kept, and cleared for the next call. Relaxed
// access is enough, as the executor has ordered all parts before.
static bool finish_call(void *context, int call)
{
    bel_instance_async *async = context;
    int stream = async->instance->program->flow->streams.stream_of[call];
    bel_run_context *own = &async->contexts[stream];
    int error = atomic_load_explicit(&own->error, memory_order_relaxed);
    if (error != 0) {
        if (async->failures[stream].error == 0) {
            async->failures[stream] =
                (failure){error, own->bad_value, own->bad_low, own->bad_limit};
        }
        atomic_store_explicit(&own->error, 0, memory_order_relaxed);
        return false;
    }
    int next = async->first_publications[call];
    bel_instance_publish(async->instance, &async->args, call + 1, &next);
    return true;
}

bel_instance_async *bel_instance_async_create(const bel_instance *instance)
{
    const bel_program *program = instance->program;
    const bel_flow *flow = program->flow;
    bel_instance_async *async = bel_xcalloc(1, sizeof *async);
    size_t streams = (size_t)flow->streams.count;
    async->instance = instance;
    async->contexts = bel_xcalloc(streams, sizeof *async->contexts);
    async->failures = bel_xcalloc(streams, sizeof *async->failures);
    async->first_publications =
        bel_xcalloc((size_t)program->call_count, sizeof *async->first_publications);
    int next = 0;
    for (int c = 0; c < program->call_count; c++) {
        async->first_publications[c] = next;
        while (next < instance->publication_count && instance->publications[next].call == c)
            next++;
    }
    const bel_async_calls calls = {
        .run = run_part, .finish = finish_call, .context = async, .part_counts = flow->part_counts};
    async->executor = bel_async_create(&flow->dag, &flow->streams, &calls);
    return async;
}

void bel_instance_async_destroy(bel_instance_async *async)
{
    if (async == NULL) return;
    bel_async_destroy(async->executor);
    bel_free(async->contexts);
    bel_free(async->failures);
    bel_free(async->first_publications);
    bel_free(async);
}

// Copies the fields that kernels read to each stream's context. Calls are bound to theirs once.
static void instance_async_prepare(bel_instance *instance, const bel_run_context *context)
{
    bel_instance_async *async = instance->async;
    const bel_streams *streams = &instance->program->flow->streams;
    for (int s = 0; s < streams->count; s++) {
        bel_run_context *own = &async->contexts[s];
        own->seed = context->seed;
        own->step = context->step;
        own->local_step = context->local_step;
        own->local_steps = context->local_steps;
        own->replica = context->replica;
        own->round = context->round;
        async->failures[s].error = 0;
    }
    if (instance->context == async->contexts) return;
    for (int c = 0; c < instance->program->call_count; c++)
        instance->calls[c].context = &async->contexts[streams->stream_of[c]];
    instance->context = async->contexts;
}

// Collects the error of the program's first failed call.
static void collect_error(const bel_instance_async *async, bel_run_context *context)
{
    const failure *first = NULL;
    for (int s = 0; s < async->instance->program->flow->streams.count; s++) {
        const failure *f = &async->failures[s];
        if (f->error != 0 && (first == NULL || f->error < first->error)) first = f;
    }
    if (first == NULL) return;
    context->bad_value = first->bad_value;
    context->bad_low = first->bad_low;
    context->bad_limit = first->bad_limit;
    atomic_store_explicit(&context->error, first->error, memory_order_relaxed);
}

bel_status *bel_instance_async_run(bel_instance *instance, bel_team *team, bel_run_context *context,
                                   const bel_instance_run_args *args)
{
    bel_instance_async *async = instance->async;
    async->args = *args;
    instance_async_prepare(instance, context);
    bel_future_state end = bel_async_run(async->executor, team);
    if (end == BEL_FUTURE_READY) return NULL;
    if (end == BEL_FUTURE_CANCELLED) return BEL_ERR(BEL_CANCELLED, "the run was cancelled");
    collect_error(async, context);
    return bel_instance_data_error(instance->program, context);
}

bel_future *bel_instance_future(bel_instance *instance, int output)
{
    int call = instance->writers[instance->program->outputs[output].buffer].call;
    return call < 0 ? NULL : bel_async_future(instance->async->executor, call);
}

void bel_instance_cancel(bel_instance *instance)
{
    bel_async_cancel(instance->async->executor);
}
