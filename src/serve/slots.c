// The queue is a list of entries on the stacks of the waiting threads. One mutex guards it. An entry
// leaves the list when a slot takes it, or when its thread gives up; after that only the other side
// looks at it.
#include "serve/slots.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

enum { IDLE_NS = 1000000000 }; // an idle slot looks this often whether the server ends

typedef struct entry {
    void (*job)(void *argument, int slot);
    void *argument;
    struct entry *next;
    bool taken, done;
    pthread_cond_t finished;
} entry;

struct bel_slots {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    entry *first, **last;
    int count, queue, wait_ms, busy, waiting, started;
    bool ending;
    pthread_t *threads;
};

typedef struct slot_thread {
    bel_slots *slots;
    int slot;
} slot_thread;

static entry *take_first(bel_slots *slots)
{
    entry *e = slots->first;
    slots->first = e->next;
    if (slots->first == NULL) slots->last = &slots->first;
    e->taken = true;
    slots->waiting--;
    slots->busy++;
    return e;
}

static void *run_slot(void *argument)
{
    slot_thread me = *(slot_thread *)argument;
    bel_slots *slots = me.slots;
    bel_free(argument);
    pthread_mutex_lock(&slots->mutex);
    while (!slots->ending) {
        if (slots->first == NULL) {
            (void)bel_cond_wait_until(&slots->arrived, &slots->mutex, bel_clock_ns() + IDLE_NS);
            continue;
        }
        entry *e = take_first(slots);
        pthread_mutex_unlock(&slots->mutex);
        e->job(e->argument, me.slot);
        pthread_mutex_lock(&slots->mutex);
        slots->busy--;
        e->done = true;
        pthread_cond_signal(&e->finished); // under the mutex: the entry ends with its thread's wait
    }
    pthread_mutex_unlock(&slots->mutex);
    return NULL;
}

bel_status *bel_slots_create(int count, int queue, int wait_ms, bel_slots **out_slots)
{
    bel_slots *slots = bel_xcalloc(1, sizeof *slots);
    bel_status *status = NULL;
    *slots = (bel_slots){.count = count, .queue = queue, .wait_ms = wait_ms};
    slots->last = &slots->first;
    slots->threads = bel_xcalloc((size_t)count, sizeof *slots->threads);
    pthread_mutex_init(&slots->mutex, NULL);
    bel_cond_init(&slots->arrived);
    while (slots->started < count && status == NULL) {
        slot_thread *me = bel_xmalloc(sizeof *me);
        *me = (slot_thread){slots, slots->started};
        status = bel_thread_start(&slots->threads[slots->started], run_slot, me);
        if (status == NULL) slots->started++;
        if (status != NULL) bel_free(me);
    }
    if (status != NULL) {
        bel_slots_destroy(slots);
        return status;
    }
    *out_slots = slots;
    return NULL;
}

void bel_slots_destroy(bel_slots *slots)
{
    if (slots == NULL) return;
    pthread_mutex_lock(&slots->mutex);
    slots->ending = true;
    pthread_cond_broadcast(&slots->arrived);
    pthread_mutex_unlock(&slots->mutex);
    for (int i = 0; i < slots->started; i++)
        pthread_join(slots->threads[i], NULL);
    pthread_cond_destroy(&slots->arrived);
    pthread_mutex_destroy(&slots->mutex);
    bel_free(slots->threads);
    bel_free(slots);
}

static void remove_entry(bel_slots *slots, const entry *e)
{
    entry **at = &slots->first;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    if (e->next == NULL) slots->last = at;
    slots->waiting--;
}

// Waits with the mutex until the entry is done. A job that has begun cannot be stopped, so only the
// wait before it has a deadline.
static bel_status *wait_until_done(bel_slots *slots, entry *e)
{
    int64_t deadline = bel_clock_ns() + slots->wait_ms * INT64_C(1000000);
    bool in_time = true;
    while (!e->done && (in_time || e->taken)) {
        int64_t until = e->taken ? bel_clock_ns() + IDLE_NS : deadline;
        in_time = bel_cond_wait_until(&e->finished, &slots->mutex, until);
    }
    if (e->done) return NULL;
    remove_entry(slots, e);
    return BEL_ERR(BEL_DEADLINE_EXCEEDED, "the request waited %d ms for %d others", slots->wait_ms,
                   slots->busy);
}

bel_status *bel_slots_run(bel_slots *slots, void (*job)(void *argument, int slot), void *argument)
{
    entry e = {.job = job, .argument = argument};
    bel_status *status = NULL;
    pthread_mutex_lock(&slots->mutex);
    if (slots->busy + slots->waiting >= slots->count + slots->queue) {
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                         "%d requests compute and %d wait; hint: --queue allows more", slots->busy,
                         slots->waiting);
    } else {
        bel_cond_init(&e.finished);
        *slots->last = &e;
        slots->last = &e.next;
        slots->waiting++;
        pthread_cond_signal(&slots->arrived);
        status = wait_until_done(slots, &e);
        pthread_cond_destroy(&e.finished);
    }
    pthread_mutex_unlock(&slots->mutex);
    return status;
}

void bel_slots_look(bel_slots *slots, int *out_busy, int *out_waiting)
{
    pthread_mutex_lock(&slots->mutex);
    *out_busy = slots->busy;
    *out_waiting = slots->waiting;
    pthread_mutex_unlock(&slots->mutex);
}
