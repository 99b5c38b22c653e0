// The gate: each slot has one run, equal requests run together, the queue is bounded, and so is the
// wait. label: threads
#include "serve/gate.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/thread.h"
#include "support/bel_test.h"

enum { SLOTS = 3, THREADS = 8, ROUNDS = 500, MOST = 4, KEYS = 2 };

static int64_t in_ms(int ms)
{
    return bel_clock_ns() + ms * INT64_C(1000000);
}

// --- Many threads -------------------------------------------------------------------------------

typedef struct bench {
    bel_gate *gate;
    _Atomic int holders[SLOTS], runs, wrong;
} bench;

typedef struct job {
    bel_gate_request request; // first: a bel_gate_request * is a job *
    bench *bench;
    int key, computed;
} job;

static void compute(bel_gate_request *const *requests, int count, int slot)
{
    job *first = (job *)requests[0];
    bench *b = first->bench;
    bool good = slot >= 0 && slot < SLOTS && (count == 1 || count == 2 || count == MOST);
    if (!good || atomic_fetch_add(&b->holders[slot], 1) != 0) atomic_fetch_add(&b->wrong, 1);
    for (int i = 0; i < count; i++) {
        job *one = (job *)requests[i];
        if (one->key != first->key || one->computed++ != 0) atomic_fetch_add(&b->wrong, 1);
    }
    atomic_fetch_add(&b->runs, 1);
    if (good) atomic_fetch_sub(&b->holders[slot], 1);
}

static void *pass_often(void *argument)
{
    bench *b = argument;
    for (int i = 0; i < ROUNDS; i++) {
        job j = {.bench = b, .key = i % KEYS};
        j.request = (bel_gate_request){.key = &j.key,
                                       .key_bytes = sizeof j.key,
                                       .most = MOST,
                                       .deadline_ns = in_ms(60000),
                                       .run = compute};
        bel_status *status = bel_gate_admit(b->gate);
        if (status == NULL) {
            status = bel_gate_pass(b->gate, &j.request);
            bel_gate_dismiss(b->gate);
        }
        if (status != NULL || j.computed != 1) atomic_fetch_add(&b->wrong, 1);
        bel_status_ignore(status); // counts as wrong
    }
    return NULL;
}

// Each request is computed once, with its equals only, whatever the delay.
static void test_many_threads(void **state)
{
    (void)state;
    static const int delays_us[] = {0, 200};
    for (size_t d = 0; d < sizeof delays_us / sizeof delays_us[0]; d++) {
        bench b = {.gate = bel_gate_create(SLOTS, THREADS, delays_us[d])};
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            BEL_ASSERT_OK(bel_thread_start(&threads[i], pass_often, &b));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&b.wrong), 0);
        const bel_gate_numbers numbers = bel_gate_look(b.gate);
        assert_int_equal(numbers.requests, THREADS * ROUNDS);
        assert_int_equal(numbers.runs, atomic_load(&b.runs));
        assert_int_equal(numbers.busy + numbers.waiting, 0);
        bel_gate_destroy(b.gate);
    }
    bel_gate_destroy(NULL);
}

// --- Bounds -------------------------------------------------------------------------------------

static void test_queue_is_bounded(void **state)
{
    (void)state;
    bel_gate *gate = bel_gate_create(1, 0, 0);
    BEL_ASSERT_OK(bel_gate_admit(gate));
    BEL_ASSERT_FAILS(bel_gate_admit(gate), BEL_RESOURCE_EXHAUSTED,
                     "0 requests are computed and 1 wait");
    bel_gate_dismiss(gate);
    BEL_ASSERT_OK(bel_gate_admit(gate));
    bel_gate_dismiss(gate);
    bel_gate_destroy(gate);
}

// Run that waits until it is allowed to end.
typedef struct held {
    bel_gate_request request; // first
    bel_gate *gate;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool runs, may_end;
} held;

static void hold(bel_gate_request *const *requests, int count, int slot)
{
    (void)count, (void)slot;
    held *h = (held *)requests[0];
    pthread_mutex_lock(&h->mutex);
    h->runs = true;
    pthread_cond_broadcast(&h->cond);
    while (!h->may_end)
        (void)bel_cond_wait_until(&h->cond, &h->mutex, INT64_MAX);
    pthread_mutex_unlock(&h->mutex);
}

static void *pass_held(void *argument)
{
    held *h = argument;
    bel_status_ignore(bel_gate_pass(h->gate, &h->request)); // its run is what counts
    return NULL;
}

static held held_on(bel_gate *gate)
{
    held h = {.gate = gate,
              .request = {.key = "h", .key_bytes = 1, .most = 1, .run = hold},
              .mutex = PTHREAD_MUTEX_INITIALIZER};
    h.request.deadline_ns = in_ms(60000);
    return h;
}

// Starts a run and waits until it has its slot.
static void begin_held(held *h, pthread_t *out_thread)
{
    bel_cond_init(&h->cond);
    BEL_ASSERT_OK(bel_thread_start(out_thread, pass_held, h));
    pthread_mutex_lock(&h->mutex);
    while (!h->runs)
        assert_true(bel_cond_wait_until(&h->cond, &h->mutex, in_ms(60000)));
    pthread_mutex_unlock(&h->mutex);
}

static void end_held(held *h, pthread_t thread)
{
    pthread_mutex_lock(&h->mutex);
    h->may_end = true;
    pthread_cond_broadcast(&h->cond);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&h->cond);
}

// A request whose slot does not come in time leaves, and the gate works on.
static void test_wait_is_bounded(void **state)
{
    (void)state;
    bel_gate *gate = bel_gate_create(1, 8, 0);
    held h = held_on(gate);
    pthread_t thread;
    begin_held(&h, &thread);
    bench b = {.gate = gate};
    job late = {.bench = &b};
    late.request = h.request;
    late.request.run = compute;
    late.request.deadline_ns = in_ms(20);
    BEL_ASSERT_FAILS(bel_gate_pass(gate, &late.request), BEL_DEADLINE_EXCEEDED, "in the queue");
    assert_int_equal(late.computed, 0);
    end_held(&h, thread);
    late.request.deadline_ns = in_ms(60000);
    BEL_ASSERT_OK(bel_gate_pass(gate, &late.request));
    assert_int_equal(late.computed, 1);
    bel_gate_destroy(gate);
}

// --- Requests beside a run ----------------------------------------------------------------------

// Thread with one request.
typedef struct guest {
    job job;
    pthread_t thread;
    bel_status *status;
} guest;

static void *pass_once(void *argument)
{
    guest *g = argument;
    g->status = bel_gate_pass(g->job.bench->gate, &g->job.request);
    return NULL;
}

static void begin_guest(guest *g, bench *b, int deadline_ms)
{
    *g = (guest){.job = {.bench = b}};
    g->job.request = (bel_gate_request){.key = "a",
                                        .key_bytes = 1,
                                        .most = MOST,
                                        .deadline_ns = in_ms(deadline_ms),
                                        .run = compute};
    BEL_ASSERT_OK(bel_gate_admit(b->gate));
    BEL_ASSERT_OK(bel_thread_start(&g->thread, pass_once, g));
}

// A request with another key waits this long, so that the guests wait, too. If they do not yet, the
// test passes without testing.
static void let_wait(bench *b)
{
    job other = {.bench = b};
    other.request = (bel_gate_request){
        .key = "b", .key_bytes = 1, .most = 1, .deadline_ns = in_ms(50), .run = compute};
    BEL_ASSERT_FAILS(bel_gate_pass(b->gate, &other.request), BEL_DEADLINE_EXCEEDED, "queue");
}

// Four of five requests run together. The fifth, whose run was full while it waited for a slot,
// runs when its delay passes.
static void test_full_run_leaves_one(void **state)
{
    (void)state;
    enum { DELAY_US = 400000, DEADLINE_MS = 5000, GUESTS = MOST + 1 };
    bench b = {.gate = bel_gate_create(1, 8, DELAY_US)};
    held h = held_on(b.gate);
    pthread_t thread;
    guest guests[GUESTS];
    begin_held(&h, &thread);
    for (int i = 0; i < GUESTS; i++)
        begin_guest(&guests[i], &b, DEADLINE_MS);
    let_wait(&b);
    end_held(&h, thread);
    for (int i = 0; i < GUESTS; i++) {
        pthread_join(guests[i].thread, NULL);
        BEL_ASSERT_OK(guests[i].status);
        assert_int_equal(guests[i].job.computed, 1);
    }
    bel_gate_destroy(b.gate);
}

// Stopping ends the wait of requests, but no run.
static void test_stop(void **state)
{
    (void)state;
    bench b = {.gate = bel_gate_create(1, 8, 0)};
    held h = held_on(b.gate);
    pthread_t thread;
    guest g;
    BEL_ASSERT_OK(bel_gate_admit(b.gate)); // for the held one
    begin_held(&h, &thread);
    begin_guest(&g, &b, 60000);
    const bel_gate_numbers numbers = bel_gate_look(b.gate);
    assert_int_equal(numbers.busy, 1);
    assert_int_equal(numbers.waiting, 1);
    bel_gate_stop(b.gate);
    pthread_join(g.thread, NULL);
    BEL_ASSERT_FAILS(g.status, BEL_UNAVAILABLE, "stopping");
    assert_int_equal(g.job.computed, 0);
    end_held(&h, thread);
    assert_int_equal(bel_gate_look(b.gate).requests, 1);
    bel_gate_destroy(b.gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_queue_is_bounded),
        cmocka_unit_test(test_wait_is_bounded),
        cmocka_unit_test(test_full_run_leaves_one),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
