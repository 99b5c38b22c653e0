// Waiting requests are a list in the order of their arrival. Three events let a request be taken:
// a slot becomes free, its delay passes, its run is full. The first two wake a thread; the thread
// that makes a run full takes it. A request that leaves without a slot, or a slot that stays free,
// wakes the next one, so that no slot is free while a request could take it. The free slots are a
// stack: the slot that was returned last has its memory in the cache.
#include "serve/gate.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/thread.h"

enum { WAITING, TAKEN, COMPUTED };
enum { MOST_TOGETHER = 1024 };

struct bel_gate {
    pthread_mutex_t mutex;
    int *free;                                         // stack of slots
    int free_count, slots, queue, admitted, computing; // the last: requests in runs
    int64_t delay_ns;
    bool stopped;
    bel_gate_request *first, **end; // requests that wait
    uint64_t runs, requests;
};

bel_gate *bel_gate_create(int slots, int queue, int delay_us)
{
    bel_gate *gate = bel_xcalloc(1, sizeof *gate);
    pthread_mutex_init(&gate->mutex, NULL);
    gate->free = bel_xcalloc((size_t)slots, sizeof *gate->free);
    for (int i = 0; i < slots; i++)
        gate->free[i] = slots - 1 - i;
    gate->free_count = gate->slots = slots;
    gate->queue = queue;
    gate->delay_ns = delay_us * INT64_C(1000);
    gate->end = &gate->first;
    return gate;
}

void bel_gate_destroy(bel_gate *gate)
{
    if (gate == NULL) return;
    pthread_mutex_destroy(&gate->mutex);
    bel_free(gate->free);
    bel_free(gate);
}

// --- Admission ----------------------------------------------------------------------------------

bel_status *bel_gate_admit(bel_gate *gate)
{
    bel_status *status = NULL;
    pthread_mutex_lock(&gate->mutex);
    if (gate->admitted - gate->slots >= gate->queue) {
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                         "%d requests are computed and %d wait; hint: --queue allows more",
                         gate->computing, gate->admitted - gate->computing);
    } else {
        gate->admitted++;
    }
    pthread_mutex_unlock(&gate->mutex);
    return status;
}

void bel_gate_dismiss(bel_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->admitted--;
    pthread_mutex_unlock(&gate->mutex);
}

// --- Runs ---------------------------------------------------------------------------------------
// All functions here but bel_gate_pass are called with the mutex.

static bool fits(const bel_gate_request *a, const bel_gate_request *b)
{
    return a->key_bytes == b->key_bytes && memcmp(a->key, b->key, a->key_bytes) == 0;
}

// Number of waiting requests that could run with this one, itself included; at most its `most`.
static int count_together(const bel_gate *gate, const bel_gate_request *request)
{
    int count = 0;
    for (const bel_gate_request *r = gate->first; r != NULL && count < request->most; r = r->next)
        count += r == request || fits(r, request);
    return count;
}

// Time at which a request waits for others no longer, at the latest in the middle of its time.
static int64_t delayed_until(const bel_gate *gate, const bel_gate_request *request)
{
    int64_t half = (request->deadline_ns - request->arrived_ns) / 2;
    return request->arrived_ns + (gate->delay_ns < half ? gate->delay_ns : half);
}

static bool is_ready(const bel_gate *gate, const bel_gate_request *request, int64_t now)
{
    if (request->most == 1 || now >= delayed_until(gate, request)) return true;
    return count_together(gate, request) == request->most;
}

// Wakes the oldest request that could take a slot.
static void wake_next(bel_gate *gate)
{
    if (gate->free_count == 0 || gate->first == NULL) return;
    int64_t now = bel_clock_ns();
    for (bel_gate_request *r = gate->first; r != NULL; r = r->next) {
        if (!is_ready(gate, r, now)) continue;
        pthread_cond_signal(&r->wake);
        return;
    }
}

static void unlink_request(bel_gate *gate, bel_gate_request **link)
{
    bel_gate_request *request = *link;
    *link = request->next;
    if (gate->end == &request->next) gate->end = link;
}

static bel_gate_request **find_link(bel_gate *gate, const bel_gate_request *request)
{
    bel_gate_request **link = &gate->first;
    while (*link != request)
        link = &(*link)->next;
    return link;
}

// Takes the oldest requests that fit, this one among them: the largest power of two.
static int take(bel_gate *gate, bel_gate_request *request, bel_gate_request **out_requests)
{
    int count = 1, together = count_together(gate, request), taken = 0;
    const int64_t now = bel_clock_ns();
    while (2 * count <= together && 2 * count <= MOST_TOGETHER)
        count *= 2;
    int others = count - 1;
    for (bel_gate_request **link = &gate->first; *link != NULL && taken < count;) {
        bel_gate_request *r = *link;
        bool takes = r == request || (others > 0 && fits(r, request));
        others -= takes && r != request;
        if (!takes) {
            link = &r->next;
            continue;
        }
        unlink_request(gate, link);
        r->state = TAKEN;
        r->taken_ns = now;
        out_requests[taken++] = r;
    }
    gate->runs++;
    gate->requests += (uint64_t)taken;
    gate->computing += taken;
    return taken;
}

// Takes a slot and runs. The mutex is not held while the requests are computed.
static void run_together(bel_gate *gate, bel_gate_request *request)
{
    bel_gate_request *requests[MOST_TOGETHER];
    int slot = gate->free[--gate->free_count], count = take(gate, request, requests);
    wake_next(gate);
    pthread_mutex_unlock(&gate->mutex);
    bel_fault_point("serves");
    request->run(requests, count, slot);
    const int64_t now = bel_clock_ns();
    pthread_mutex_lock(&gate->mutex);
    for (int i = 0; i < count; i++) {
        requests[i]->state = COMPUTED;
        requests[i]->computed_ns = now;
        if (requests[i] != request) pthread_cond_signal(&requests[i]->wake);
    }
    gate->computing -= count;
    gate->free[gate->free_count++] = slot;
    wake_next(gate);
}

// Ends the wait of a request that was not taken.
static void leave(bel_gate *gate, const bel_gate_request *request)
{
    unlink_request(gate, find_link(gate, request));
    wake_next(gate);
}

static bel_status *wait_for_run(bel_gate *gate, bel_gate_request *request)
{
    for (;;) {
        if (request->state == COMPUTED) return NULL;
        if (request->state == TAKEN) { // another thread computes it now
            (void)bel_cond_wait_until(&request->wake, &gate->mutex, INT64_MAX);
            continue;
        }
        if (gate->stopped) {
            leave(gate, request);
            return BEL_ERR(BEL_UNAVAILABLE, "the server is stopping");
        }
        int64_t now = bel_clock_ns(), wake_ns = request->deadline_ns;
        if (now >= request->deadline_ns) {
            leave(gate, request);
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "the request waited %lld ms in the queue",
                           (long long)((now - request->arrived_ns) / 1000000));
        }
        if (gate->free_count > 0 && is_ready(gate, request, now)) {
            run_together(gate, request);
            return NULL;
        }
        // Also if its run is full now: the others of this run may be taken, or leave.
        int64_t delayed = delayed_until(gate, request);
        if (request->most > 1 && now < delayed) wake_ns = delayed;
        (void)bel_cond_wait_until(&request->wake, &gate->mutex, wake_ns);
    }
}

bel_status *bel_gate_pass(bel_gate *gate, bel_gate_request *request)
{
    request->state = WAITING;
    request->next = NULL;
    request->arrived_ns = bel_clock_ns();
    bel_cond_init(&request->wake);
    pthread_mutex_lock(&gate->mutex);
    *gate->end = request;
    gate->end = &request->next;
    bel_status *status = wait_for_run(gate, request);
    pthread_mutex_unlock(&gate->mutex);
    pthread_cond_destroy(&request->wake);
    return status;
}

void bel_gate_stop(bel_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->stopped = true;
    for (bel_gate_request *r = gate->first; r != NULL; r = r->next)
        pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&gate->mutex);
}

bel_gate_numbers bel_gate_look(bel_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    bel_gate_numbers numbers = {
        .busy = gate->slots - gate->free_count, .runs = gate->runs, .requests = gate->requests};
    numbers.waiting = gate->admitted - gate->computing;
    pthread_mutex_unlock(&gate->mutex);
    return numbers;
}
