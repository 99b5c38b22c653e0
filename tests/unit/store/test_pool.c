// Threads of transfers, and the window over parts: all works run, parts are taken in order, at most
// `width` are not taken yet, and an error ends a window.
// label: threads
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "store/store.h"
#include "store/window.h"
#include "support/bel_test.h"

enum { WORKS = 500, PARTS = 200, WIDTH = 7 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int left;

static void work(void *context)
{
    ++*(int *)context;
    pthread_mutex_lock(&mutex);
    left--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&mutex);
}

static void test_pool(void **state)
{
    (void)state;
    static int counts[WORKS];
    left = WORKS;
    for (int i = 0; i < WORKS; i++)
        bel_store_begin(work, &counts[i]);
    pthread_mutex_lock(&mutex);
    while (left > 0)
        pthread_cond_wait(&ended, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WORKS; i++)
        assert_int_equal(counts[i], 1);
}

static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int open_gates, at_gates;
static int order[2], ran;

static void wait_for_gate(void *context)
{
    pthread_mutex_lock(&mutex);
    at_gates++;
    pthread_cond_signal(&ended);
    while (open_gates == 0)
        pthread_cond_wait(&opened, &mutex);
    open_gates--;
    pthread_mutex_unlock(&mutex);
    work(context);
}

static void note_order(void *context)
{
    pthread_mutex_lock(&mutex);
    if (*(int *)context > 1) order[ran++] = *(int *)context;
    pthread_mutex_unlock(&mutex);
    work(context);
}

// While all threads are busy, a later work that comes first overtakes all that wait, and those of
// low priority run on other threads. One thread then runs all that wait.
static void test_order(void **state)
{
    (void)state;
    static int gates[BEL_STORE_TRANSFERS], usual[WORKS], low;
    int last = 1000, first = 2000;
    pthread_mutex_lock(&mutex);
    left = BEL_STORE_TRANSFERS + WORKS + 3;
    open_gates = 0;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < BEL_STORE_TRANSFERS; i++)
        bel_store_begin(wait_for_gate, &gates[i]);
    pthread_mutex_lock(&mutex);
    while (at_gates < BEL_STORE_TRANSFERS)
        pthread_cond_wait(&ended, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WORKS; i++)
        bel_store_begin(note_order, &usual[i]);
    bel_store_begin(note_order, &last);
    bel_store_begin_first(note_order, &first);
    bel_store_begin_low(note_order, &low);
    pthread_mutex_lock(&mutex);
    while (left > BEL_STORE_TRANSFERS + WORKS + 2)
        pthread_cond_wait(&ended, &mutex);
    assert_int_equal(low, 1);
    assert_int_equal(ran, 0);
    open_gates = 1;
    pthread_cond_signal(&opened);
    while (left > BEL_STORE_TRANSFERS - 1)
        pthread_cond_wait(&ended, &mutex);
    assert_int_equal(order[0], 2000);
    assert_int_equal(order[1], 1000);
    open_gates = BEL_STORE_TRANSFERS - 1;
    pthread_cond_broadcast(&opened);
    while (left > 0)
        pthread_cond_wait(&ended, &mutex);
    pthread_mutex_unlock(&mutex);
}

typedef struct parts {
    size_t slots[WIDTH];
    size_t taken, failing; // the part that fails
    atomic_size_t served;
    bool is_good;
} parts;

static bel_status *serve(void *context, size_t index)
{
    parts *p = context;
    double patience = bel_store_set_patience(120);
    bel_store_set_patience(patience);
    if (index == p->failing) return BEL_ERR(BEL_UNAVAILABLE, "part %zu", index);
    p->slots[index % WIDTH] = index + (patience == 33 ? 1 : 0);
    atomic_fetch_add(&p->served, 1);
    return NULL;
}

static bel_status *take(void *context, size_t index)
{
    parts *p = context;
    p->is_good = p->is_good && index == p->taken && p->slots[index % WIDTH] == index + 1;
    p->taken++;
    return NULL;
}

static void test_window(void **state)
{
    (void)state;
    parts p = {.failing = PARTS, .is_good = true};
    double before = bel_store_set_patience(33);
    BEL_ASSERT_OK(bel_window_run(PARTS, WIDTH, serve, take, &p));
    assert_true(p.is_good);
    assert_int_equal(p.taken, PARTS);
    assert_int_equal(atomic_load(&p.served), PARTS);
    BEL_ASSERT_OK(bel_window_run(0, WIDTH, serve, take, &p));
    parts alone = {.failing = PARTS};
    BEL_ASSERT_OK(bel_window_run(PARTS, 1, serve, NULL, &alone));
    assert_int_equal(atomic_load(&alone.served), PARTS);
    parts bad = {.failing = 50, .is_good = true};
    BEL_ASSERT_FAILS(bel_window_run(PARTS, WIDTH, serve, take, &bad), BEL_UNAVAILABLE, "part 50");
    assert_true(bad.is_good);
    assert_true(atomic_load(&bad.served) < 50 + WIDTH);
    bel_store_set_patience(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pool), cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_window)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
