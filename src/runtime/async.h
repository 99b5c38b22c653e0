// The asynchronous executor: runs the calls of a graph on the threads of a team, each as soon as
// those that it waits for are done.
//
// Every call has a future. A stream (runtime/streams.h) is run call by call, by one thread at a
// time. Where the next call waits for calls of other streams, the thread leaves the stream, and the
// continuation of the last of their futures makes it ready again, for any thread. Of what is ready
// the most urgent is taken first: what has the costliest path to the end before it. The parts of a
// call may run on several threads at once. All memory is made with the executor: a run allocates
// nothing and takes no lock.
#ifndef BELFRY_RUNTIME_ASYNC_H
#define BELFRY_RUNTIME_ASYNC_H

#include "base/thread.h"
#include "runtime/future.h"
#include "runtime/streams.h"

typedef struct bel_async bel_async;

// How calls are run. On threads of the team: those of one stream one after another, but for the
// parts of a call.
typedef struct bel_async_calls {
    void (*run)(void *context, int call, int64_t part);
    bool (*finish)(void *context, int call); // behind the last part; false: the call has failed
    void *context;
    const int64_t *part_counts; // by call, at least 1
} bel_async_calls;

// Calls are the nodes of `dag`, which must outlive the executor. `streams` and `calls` are copied.
// Bound to one thread at a time.
bel_async *bel_async_create(const bel_dag *dag, const bel_streams *streams,
                            const bel_async_calls *calls);
void bel_async_destroy(bel_async *async);

// What becomes of a call: continuations may be added before a run.
bel_future *bel_async_future(bel_async *async, int call);

// Runs all calls but those that, over edges of data, depend on one that failed. Returns when none
// is left: READY if all have run; CANCELLED, else FAILED if some were not. The futures tell which.
bel_future_state bel_async_run(bel_async *async, bel_team *team);

// Any thread: no more calls are begun by the run that is under way, or else by the next one.
void bel_async_cancel(bel_async *async);

#endif
