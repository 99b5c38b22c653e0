// A future: whether something is there yet, and what is to happen when it is. It is settled once a
// run, by one thread; its continuations then run on that thread, in the order of being added.
#ifndef BELFRY_RUNTIME_FUTURE_H
#define BELFRY_RUNTIME_FUTURE_H

#include <stdatomic.h>

typedef enum bel_future_state {
    BEL_FUTURE_PENDING,
    BEL_FUTURE_READY,
    BEL_FUTURE_FAILED,  // what makes it met an error
    BEL_FUTURE_SKIPPED, // something that it depends on did not become ready
    BEL_FUTURE_CANCELLED,
} bel_future_state;

// Must not wait for anything. Its memory belongs to whoever adds it and must stay as long as the
// future.
typedef struct bel_continuation {
    void (*run)(void *context, bel_future_state state);
    void *context;
    struct bel_continuation *next;
} bel_continuation;

typedef struct bel_future {
    atomic_int state;
    bel_continuation *first;
} bel_future;

// Any thread; what a ready future stands for may then be read.
bel_future_state bel_future_look(const bel_future *future);

// Not while it may be settled. The continuation follows every run.
void bel_future_then(bel_future *future, bel_continuation *continuation);

void bel_future_settle(bel_future *future, bel_future_state state);
void bel_future_reset(bel_future *future); // pending again

#endif
