// State and a list of continuations, run in the order they were added. The state is stored with
// release before they run and loaded with acquire, so a thread that sees READY may read the
// future's result. The list serves every run, so a run allocates nothing. It has no lock, which is
// why continuations are added only between runs.
#include "runtime/future.h"

#include <stddef.h>

bel_future_state bel_future_look(const bel_future *future)
{
    return (bel_future_state)atomic_load_explicit(&future->state, memory_order_acquire);
}

void bel_future_then(bel_future *future, bel_continuation *continuation)
{
    bel_continuation **end = &future->first;
    while (*end != NULL)
        end = &(*end)->next;
    continuation->next = NULL;
    *end = continuation;
}

void bel_future_settle(bel_future *future, bel_future_state state)
{
    atomic_store_explicit(&future->state, (int)state, memory_order_release);
    for (bel_continuation *c = future->first; c != NULL; c = c->next)
        c->run(c->context, state);
}

void bel_future_reset(bel_future *future)
{
    atomic_store_explicit(&future->state, BEL_FUTURE_PENDING, memory_order_relaxed);
}
