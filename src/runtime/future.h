// Future: the state of a result, with continuations that run when it is known. One thread settles
// it, once a run. Its continuations then run on that thread, in the order they were added.
#ifndef BELFRY_RUNTIME_FUTURE_H
#define BELFRY_RUNTIME_FUTURE_H

#include <stdatomic.h>

typedef enum bel_future_state {
    BEL_FUTURE_PENDING,
    BEL_FUTURE_READY,
    BEL_FUTURE_FAILED,  // the call that makes it met an error
    BEL_FUTURE_SKIPPED, // a dependency did not become ready
    BEL_FUTURE_CANCELLED,
} bel_future_state;

// Callback of a future; must not wait for anything. The caller that adds it owns its memory, which
// must live as long as the future.
typedef struct bel_continuation {
    void (*run)(void *context, bel_future_state state);
    void *context;
    struct bel_continuation *next;
} bel_continuation;

typedef struct bel_future {
    atomic_int state;
    bel_continuation *first;
} bel_future;

// State of a future; any thread. After READY its result may be read.
bel_future_state bel_future_look(const bel_future *future);

// Adds a continuation, which runs in every run. Not while another thread may settle the future.
void bel_future_then(bel_future *future, bel_continuation *continuation);

void bel_future_settle(bel_future *future, bel_future_state state);
void bel_future_reset(bel_future *future); // pending again

#endif
