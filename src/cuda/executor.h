// An instance on a card, for bind.c, which makes it, executor.c, which runs it, and profile.c.
#ifndef BELFRY_CUDA_EXECUTOR_H
#define BELFRY_CUDA_EXECUTOR_H

#include "base/rng.h"
#include "cuda/device.h"
#include "cuda/marks.h"

// A launch with all its arguments.
typedef struct bel_cuda_bound_launch {
    const bel_cuda_launch *launch;
    int call;
} bel_cuda_bound_launch;

// A stretch of launches.
typedef struct bel_cuda_segment {
    int first, end; // calls
} bel_cuda_segment;

// Addresses of the buffers, and what replays the segments with them. There is one but for programs
// that are bound on the card, whose callers may bind other memory: the gradients of one replica
// after another.
enum { BEL_CUDA_MOST_BINDINGS = 64 }; // replicas of one process, at most
typedef struct bel_cuda_binding {
    void **addresses; // by buffer; NULL: the binding is not in use
    void **graphs;    // by segment; NULL: not yet
    bool *ran;        // by segment
} bel_cuda_binding;

// Memory of the process that the card copies to and from.
typedef struct bel_cuda_staging {
    char *memory;
    size_t bytes;
    size_t *results;                      // by output: where it is; SIZE_MAX: nowhere
    size_t *exchanged_in, *exchanged_out; // by call
} bel_cuda_staging;

// Inputs of the next run, which are copied to the card while this one computes, on a stream of
// their own; that run copies them from there to where its kernels read them.
typedef struct bel_cuda_ahead {
    bel_device_memory memory; // empty: not yet
    bool refused;             // there is no room
    size_t bytes, *places;    // of all inputs, and by buffer
    const void **brought;     // by buffer: what is there, of the process's memory; NULL: nothing
    void *stream, *there, *taken; // events: all of it has come; the run before has read it
    bool queued;                  // on the stream in this run
} bel_cuda_ahead;

typedef struct bel_cuda_executor {
    bel_cuda_device *device;
    const bel_cuda_api *api;
    const bel_instance *instance;
    void *work, *out; // streams
    bool reports;     // something was queued on `out` in this run
    bel_cuda_ahead ahead;
    bel_cuda_bound_launch *launches;
    int *first_launches;         // by call, and one behind
    bel_cuda_operands *operands; // by call
    bel_device_memory state;     // on the card: bel_cuda_state and the keys
    size_t state_bytes;
    bel_rng_key *keys;       // behind the bel_cuda_state in `staged`, by call
    bel_cuda_staging staged; // begins with what goes to `state`
    bel_cuda_segment *segments;
    int segment_count;
    bel_cuda_binding bindings[BEL_CUDA_MOST_BINDINGS], *bound; // the one that operands are of
    int next_binding;                                          // which gives way, when all are used
    void **ready, **gone; // events, by segment: it has run; its reports have been copied
    void *done[3];        // events: all that was queued on `work`, on `out` and ahead
    uint64_t seed;        // of the keys
    bool keyed;
    bel_cuda_marks marks; // three, and three of each segment
} bel_cuda_executor;

static inline uint64_t bel_cuda_address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

// Operands of all calls, and the binding, by what is bound now.
void bel_cuda_follow_binding(bel_cuda_executor *x);

// The launches of a call; NULL: it has none.
const bel_cuda_call *bel_cuda_launches(const bel_kernel_call *call);

// --- Queueing (executor.c): on `work`, in the order of the calls ---------------------------------

bel_status *bel_cuda_send_state(bel_cuda_executor *x) BEL_MUST_USE;

// Inputs always; variables where they may be others than those there; with `fresh` constants, too:
// another program has used the memory since.
bel_status *bel_cuda_send_all(bel_cuda_executor *x, bool fresh) BEL_MUST_USE;

// The launches of calls [first, end) one by one; and those of a segment, as they are run.
bel_status *bel_cuda_launch_calls(bel_cuda_executor *x, int first, int end) BEL_MUST_USE;
bel_status *bel_cuda_run_segment(bel_cuda_executor *x, int segment) BEL_MUST_USE;

// Copies from the card to `place` in the staged memory.
bel_status *bel_cuda_fetch(bel_cuda_executor *x, size_t place, const void *from,
                           size_t bytes) BEL_MUST_USE;

// --- Waiting (executor.c) ------------------------------------------------------------------------

// Until all that was queued is done, whatever `status` has come of queueing it; gives that, or else
// what has come of the work. Where that has not ended well the card is lost (bel_device_is_lost).
bel_status *bel_cuda_finish(bel_cuda_executor *x, bel_status *status) BEL_MUST_USE;

// After that: data errors go to the instance's context.
void bel_cuda_take_error(const bel_cuda_executor *x);

#endif
