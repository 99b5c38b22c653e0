// Instance on a GPU, shared by graph_bind.c, which creates it, graph_executor.c, which runs it, and
// graph_profile.c.
#ifndef BELFRY_CUDA_GRAPH_EXECUTOR_H
#define BELFRY_CUDA_GRAPH_EXECUTOR_H

#include "base/rng.h"
#include "cuda/device.h"
#include "cuda/marks.h"

// A launch with all its arguments.
typedef struct bel_cuda_bound_launch {
    const bel_cuda_launch *launch;
    int call;
} bel_cuda_bound_launch;

// Range of calls that is launched together.
typedef struct bel_cuda_segment {
    int first, end; // calls
} bel_cuda_segment;

// Addresses of the buffers, and the graphs that replay the segments with them. Programs bound on
// the GPU may have several bindings, as their callers may bind other memory: the gradients of one
// replica after another. Other programs have one.
enum { BEL_CUDA_MOST_BINDINGS = 64 }; // replicas of one process, at most
typedef struct bel_cuda_binding {
    void **addresses; // by buffer; NULL: the binding is unused
    void **graphs;    // by segment; NULL: not yet made
    bool *ran;        // by segment
} bel_cuda_binding;

// Memory of the process that the GPU copies to and from.
typedef struct bel_cuda_staging {
    char *memory;
    size_t bytes;
    size_t *results;                      // by output: its offset; SIZE_MAX: none
    size_t *exchanged_in, *exchanged_out; // by call
} bel_cuda_staging;

// Inputs of the next run, copied to the GPU on a separate stream while this run computes. The next
// run copies them from there to the memory that its kernels read.
typedef struct bel_cuda_ahead {
    bel_device_memory memory; // empty: not yet allocated
    bool refused;             // there is no room
    size_t bytes, *places;    // total of all inputs, and by buffer
    const void **brought;     // by buffer: the process's memory whose copy is there; NULL: nothing
    void *stream, *there, *taken; // events: all of it has arrived; the previous run has read it
    bool queued;                  // there is work on the stream in this run
} bel_cuda_ahead;

typedef struct bel_cuda_executor {
    bel_cuda_device *device;
    const bel_cuda_api *api;
    const bel_instance *instance;
    void *work, *out; // streams
    bool reports;     // there is work on `out` in this run
    bel_cuda_ahead ahead;
    bel_cuda_bound_launch *launches;
    int *first_launches;         // [call_count + 1]
    bel_cuda_operands *operands; // by call
    bel_device_memory state;     // on the GPU: bel_cuda_state and the keys
    size_t state_bytes;
    bel_rng_key *keys;       // after the bel_cuda_state in `staged`, by call
    bel_cuda_staging staged; // starts with the bytes that go to `state`
    bel_cuda_segment *segments;
    int segment_count;
    bel_cuda_binding bindings[BEL_CUDA_MOST_BINDINGS], *bound; // `bound`: the operands' binding
    int next_binding;                                          // replaced next, when all are used
    void **ready, **gone; // events, by segment: it has run; its reports have been copied
    void *done[3];        // events: all work on `work`, on `out` and ahead is done
    uint64_t seed;        // for the keys
    bool keyed;
    bel_cuda_marks marks; // three, and three of each segment
} bel_cuda_executor;

static inline uint64_t bel_cuda_address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

// Sets the operands of all calls, and the binding, from the addresses bound now.
void bel_cuda_follow_binding(bel_cuda_executor *x);

// The launches of a call; NULL: it has none.
const bel_cuda_call *bel_cuda_launches(const bel_kernel_call *call);

// --- Queueing (graph_executor.c): on `work`, in the order of the calls ---------------------------

bel_status *bel_cuda_send_state(bel_cuda_executor *x) BEL_MUST_USE;

// Copies inputs always, and variables if they may differ from those there. With `fresh` also
// constants: another program has used the memory since.
bel_status *bel_cuda_send_all(bel_cuda_executor *x, bool fresh) BEL_MUST_USE;

// Launches calls [first, end) one by one.
bel_status *bel_cuda_launch_calls(bel_cuda_executor *x, int first, int end) BEL_MUST_USE;

// Launches a segment, or replays its graph.
bel_status *bel_cuda_run_segment(bel_cuda_executor *x, int segment) BEL_MUST_USE;

// Copies from the GPU to `place` in the staged memory.
bel_status *bel_cuda_fetch(bel_cuda_executor *x, size_t place, const void *from,
                           size_t bytes) BEL_MUST_USE;

// --- Waiting (graph_executor.c) ------------------------------------------------------------------

// Waits for all queued work, after any `status` of queueing it. Returns that error, or else the
// error of the work. If the work did not succeed the GPU counts as lost (bel_device_is_lost).
bel_status *bel_cuda_finish(bel_cuda_executor *x, bel_status *status) BEL_MUST_USE;

// Copies a run's data error to the instance's context, after bel_cuda_finish.
void bel_cuda_take_error(const bel_cuda_executor *x);

#endif
