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

// A request whose slot does not come in time leaves, and the gate works on.
static void test_wait_is_bounded(void **state)
{
    (void)state;
    bel_gate *gate = bel_gate_create(1, 8, 0);
    held h = {.gate = gate,
              .request = {.key = "a", .key_bytes = 1, .most = 1, .run = hold},
              .mutex = PTHREAD_MUTEX_INITIALIZER};
    h.request.deadline_ns = in_ms(60000);
    bel_cond_init(&h.cond);
    pthread_t thread;
    BEL_ASSERT_OK(bel_thread_start(&thread, pass_held, &h));
    pthread_mutex_lock(&h.mutex);
    while (!h.runs)
        assert_true(bel_cond_wait_until(&h.cond, &h.mutex, in_ms(60000)));
    pthread_mutex_unlock(&h.mutex);
    bench b = {.gate = gate};
    job late = {.bench = &b};
    late.request = h.request;
    late.request.run = compute;
    late.request.deadline_ns = in_ms(20);
    BEL_ASSERT_FAILS(bel_gate_pass(gate, &late.request), BEL_DEADLINE_EXCEEDED, "in the queue");
    assert_int_equal(late.computed, 0);
    pthread_mutex_lock(&h.mutex);
    h.may_end = true;
    pthread_cond_broadcast(&h.cond);
    pthread_mutex_unlock(&h.mutex);
    pthread_join(thread, NULL);
    late.request.deadline_ns = in_ms(60000);
    BEL_ASSERT_OK(bel_gate_pass(gate, &late.request));
    assert_int_equal(late.computed, 1);
    bel_gate_destroy(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_queue_is_bounded),
        cmocka_unit_test(test_wait_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
