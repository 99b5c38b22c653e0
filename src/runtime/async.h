// Asynchronous executor: runs the calls of a graph on the threads of a team, each as soon as its
// dependencies are done.
// Every call has a future. One thread at a time runs a stream (runtime/streams.h), call by call. If
// the next call waits for calls of other streams, the thread leaves the stream. The continuation of
// the last of those futures makes the stream ready again, for any thread. Ready streams are run by
// urgency: the most urgent has the costliest remaining path to the end. The parts of a call may run
// on several threads at once. All memory is allocated with the executor: a run allocates nothing
// and takes no lock.
#ifndef BELFRY_RUNTIME_ASYNC_H
#define BELFRY_RUNTIME_ASYNC_H

#include "base/thread.h"
#include "runtime/future.h"
#include "runtime/streams.h"

typedef struct bel_async bel_async;

// Callbacks that run calls on threads of the team. Calls of one stream run one after another; parts
// of one call may run at the same time.
typedef struct bel_async_calls {
    void (*run)(void *context, int call, int64_t part);
    bool (*finish)(void *context, int call); // after the last part; false: the call failed
    void *context;
    const int64_t *part_counts; // by call, at least 1
} bel_async_calls;

// The calls are the nodes of `dag`, which must outlive the executor. `streams` and `calls` are
// copied. One thread at a time may use the executor.
bel_async *bel_async_create(const bel_dag *dag, const bel_streams *streams,
                            const bel_async_calls *calls);
void bel_async_destroy(bel_async *async);

// The future of a call. Continuations may be added before a run.
bel_future *bel_async_future(bel_async *async, int call);

// Runs all calls except those that depend, over data edges, on a failed call, and returns when all
// are settled. READY: all have run. CANCELLED or, without a cancellation, FAILED: some have not;
// their futures say which.
bel_future_state bel_async_run(bel_async *async, bel_team *team);

// Stops the current run, or else the next one, from starting more calls. Any thread.
void bel_async_cancel(bel_async *async);

#endif
