// The gate: each slot has one holder, the queue is bounded, and so is the wait. label: threads
#include "serve/gate.h"

#include <stdatomic.h>

#include "base/thread.h"
#include "support/bel_test.h"

enum { SLOTS = 3, THREADS = 8, ROUNDS = 500 };

typedef struct bench {
    bel_gate *gate;
    _Atomic int holders[SLOTS], runs, wrong;
} bench;

static void *enter_often(void *argument)
{
    bench *b = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int slot = 0;
        bel_status *status = bel_gate_enter(b->gate, &slot);
        bool good = status == NULL && slot >= 0 && slot < SLOTS;
        bel_status_ignore(status); // counts as wrong
        if (!good || atomic_fetch_add(&b->holders[slot], 1) != 0) atomic_fetch_add(&b->wrong, 1);
        if (!good) continue;
        atomic_fetch_add(&b->runs, 1);
        atomic_fetch_sub(&b->holders[slot], 1);
        bel_gate_leave(b->gate, slot);
    }
    return NULL;
}

static void test_one_holder(void **state)
{
    (void)state;
    bench b = {.gate = bel_gate_create(SLOTS, THREADS, 20000)};
    pthread_t threads[THREADS];
    int busy, waiting;
    for (int i = 0; i < THREADS; i++)
        BEL_ASSERT_OK(bel_thread_start(&threads[i], enter_often, &b));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&b.wrong), 0);
    assert_int_equal(atomic_load(&b.runs), THREADS * ROUNDS);
    bel_gate_look(b.gate, &busy, &waiting);
    assert_int_equal(busy + waiting, 0);
    bel_gate_destroy(b.gate);
    bel_gate_destroy(NULL);
}

static void test_is_bounded(void **state)
{
    (void)state;
    int slot, other;
    bel_gate *gate = bel_gate_create(1, 0, 20000);
    BEL_ASSERT_OK(bel_gate_enter(gate, &slot));
    BEL_ASSERT_FAILS(bel_gate_enter(gate, &other), BEL_RESOURCE_EXHAUSTED,
                     "1 requests are computed and 0 wait");
    bel_gate_leave(gate, slot);
    BEL_ASSERT_OK(bel_gate_enter(gate, &slot));
    bel_gate_destroy(gate);
    gate = bel_gate_create(1, 1, 20);
    BEL_ASSERT_OK(bel_gate_enter(gate, &slot));
    BEL_ASSERT_FAILS(bel_gate_enter(gate, &other), BEL_DEADLINE_EXCEEDED, "waited 20 ms");
    bel_gate_destroy(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_holder),
        cmocka_unit_test(test_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
