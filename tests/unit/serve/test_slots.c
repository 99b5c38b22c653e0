// Slots: every job runs once, the queue is bounded, and so is the wait. label: threads
#include "serve/slots.h"

#include <stdatomic.h>

#include "base/thread.h"
#include "support/bel_test.h"

typedef struct bench {
    bel_slots *slots;
    _Atomic int runs, busy, most;
} bench;

static void count_run(void *argument, int slot)
{
    bench *b = argument;
    (void)slot;
    int busy = atomic_fetch_add(&b->busy, 1) + 1, most = atomic_load(&b->most);
    while (busy > most && !atomic_compare_exchange_weak(&b->most, &most, busy))
        continue;
    atomic_fetch_add(&b->runs, 1);
    atomic_fetch_sub(&b->busy, 1);
}

static void *run_many(void *argument)
{
    bench *b = argument;
    for (int i = 0; i < 500; i++)
        bel_status_ignore(bel_slots_run(b->slots, count_run, b)); // the count tells
    return NULL;
}

static void test_runs_all(void **state)
{
    (void)state;
    bench b = {0};
    pthread_t threads[8];
    BEL_ASSERT_OK(bel_slots_create(3, 8, 20000, &b.slots));
    for (int i = 0; i < 8; i++)
        BEL_ASSERT_OK(bel_thread_start(&threads[i], run_many, &b));
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&b.runs), 8 * 500);
    assert_in_range(atomic_load(&b.most), 1, 3);
    int busy, waiting;
    bel_slots_look(b.slots, &busy, &waiting);
    assert_int_equal(busy + waiting, 0);
    bel_slots_destroy(b.slots);
    bel_slots_destroy(NULL);
}

typedef struct door {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool inside, open;
    bel_slots *slots;
    bel_status *status;
} door;

// Occupies a slot until the door is open.
static void wait_for_door(void *argument, int slot)
{
    door *d = argument;
    (void)slot;
    pthread_mutex_lock(&d->mutex);
    d->inside = true;
    pthread_cond_broadcast(&d->changed);
    while (!d->open)
        pthread_cond_wait(&d->changed, &d->mutex);
    pthread_mutex_unlock(&d->mutex);
}

static void *occupy(void *argument)
{
    door *d = argument;
    d->status = bel_slots_run(d->slots, wait_for_door, d);
    return NULL;
}

static void run_nothing(void *argument, int slot)
{
    (void)slot;
    *(bool *)argument = true;
}

static void check_full(int queue, int wait_ms, bel_code code, const char *part)
{
    door d = {.open = false};
    pthread_t thread;
    bool ran = false;
    pthread_mutex_init(&d.mutex, NULL);
    pthread_cond_init(&d.changed, NULL);
    BEL_ASSERT_OK(bel_slots_create(1, queue, wait_ms, &d.slots));
    BEL_ASSERT_OK(bel_thread_start(&thread, occupy, &d));
    pthread_mutex_lock(&d.mutex);
    while (!d.inside)
        pthread_cond_wait(&d.changed, &d.mutex);
    pthread_mutex_unlock(&d.mutex);
    BEL_ASSERT_FAILS(bel_slots_run(d.slots, run_nothing, &ran), code, part);
    assert_false(ran);
    pthread_mutex_lock(&d.mutex);
    d.open = true;
    pthread_cond_broadcast(&d.changed);
    pthread_mutex_unlock(&d.mutex);
    pthread_join(thread, NULL);
    BEL_ASSERT_OK(d.status);
    BEL_ASSERT_OK(bel_slots_run(d.slots, run_nothing, &ran));
    assert_true(ran);
    bel_slots_destroy(d.slots);
}

static void test_is_bounded(void **state)
{
    (void)state;
    check_full(0, 20000, BEL_RESOURCE_EXHAUSTED, "1 requests compute and 0 wait");
    check_full(1, 20, BEL_DEADLINE_EXCEEDED, "waited 20 ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_all),
        cmocka_unit_test(test_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
