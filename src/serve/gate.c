// The free slots are a stack: the slot that was returned last has its memory in the cache.
#include "serve/gate.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

struct bel_gate {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    int *free; // stack of slots
    int free_count, slots, queue, waiting, wait_ms;
};

bel_gate *bel_gate_create(int slots, int queue, int wait_ms)
{
    bel_gate *gate = bel_xcalloc(1, sizeof *gate);
    pthread_mutex_init(&gate->mutex, NULL);
    bel_cond_init(&gate->freed);
    gate->free = bel_xcalloc((size_t)slots, sizeof *gate->free);
    for (int i = 0; i < slots; i++)
        gate->free[i] = slots - 1 - i;
    gate->free_count = gate->slots = slots;
    gate->queue = queue;
    gate->wait_ms = wait_ms;
    return gate;
}

void bel_gate_destroy(bel_gate *gate)
{
    if (gate == NULL) return;
    pthread_cond_destroy(&gate->freed);
    pthread_mutex_destroy(&gate->mutex);
    bel_free(gate->free);
    bel_free(gate);
}

// Called with the mutex.
static bel_status *wait_for_slot(bel_gate *gate)
{
    if (gate->waiting >= gate->queue) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "%d requests are computed and %d wait; hint: --queue allows more",
                       gate->slots - gate->free_count, gate->waiting);
    }
    int64_t deadline = bel_clock_ns() + gate->wait_ms * INT64_C(1000000);
    bool in_time = true;
    gate->waiting++;
    while (gate->free_count == 0 && in_time)
        in_time = bel_cond_wait_until(&gate->freed, &gate->mutex, deadline);
    gate->waiting--;
    if (gate->free_count > 0) return NULL;
    return BEL_ERR(BEL_DEADLINE_EXCEEDED, "the request waited %d ms for %d others", gate->wait_ms,
                   gate->slots);
}

bel_status *bel_gate_enter(bel_gate *gate, int *out_slot)
{
    pthread_mutex_lock(&gate->mutex);
    bel_status *status = gate->free_count == 0 ? wait_for_slot(gate) : NULL;
    if (status == NULL) *out_slot = gate->free[--gate->free_count];
    pthread_mutex_unlock(&gate->mutex);
    return status;
}

void bel_gate_leave(bel_gate *gate, int slot)
{
    pthread_mutex_lock(&gate->mutex);
    gate->free[gate->free_count++] = slot;
    if (gate->waiting > 0) pthread_cond_signal(&gate->freed);
    pthread_mutex_unlock(&gate->mutex);
}

void bel_gate_look(bel_gate *gate, int *out_busy, int *out_waiting)
{
    pthread_mutex_lock(&gate->mutex);
    *out_busy = gate->slots - gate->free_count;
    *out_waiting = gate->waiting;
    pthread_mutex_unlock(&gate->mutex);
}
