// The watchdog: who is fed or rests is left alone, who stands still is called out once.
#include <stdatomic.h>
#include <time.h>

#include "job/watchdog.h"
#include "support/bel_test.h"

static void call_out(void *context, double secs)
{
    assert_true(secs > 0);
    atomic_fetch_add((atomic_int *)context, 1);
}

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void test_calls_once(void **state)
{
    (void)state;
    atomic_int calls = 0;
    bel_watchdog *dog;
    BEL_ASSERT_OK(bel_watchdog_start(0.01, call_out, &calls, &dog));
    bel_watchdog_feed(dog, false);
    while (atomic_load(&calls) == 0)
        nap();
    bel_watchdog_feed(dog, false);
    for (int i = 0; i < 20; i++)
        nap();
    bel_watchdog_stop(dog);
    assert_int_equal(atomic_load(&calls), 1);
}

static void test_leaves_alone(void **state)
{
    (void)state;
    atomic_int calls = 0;
    bel_watchdog *dog;
    BEL_ASSERT_OK(bel_watchdog_start(0.001, call_out, &calls, &dog)); // never fed
    for (int i = 0; i < 20; i++)
        nap();
    bel_watchdog_stop(dog);
    BEL_ASSERT_OK(bel_watchdog_start(3600, call_out, &calls, &dog)); // not over yet
    bel_watchdog_feed(dog, false);
    bel_watchdog_stop(dog);
    BEL_ASSERT_OK(bel_watchdog_start(3600, call_out, &calls, &dog));
    bel_watchdog_feed(dog, false);
    bel_watchdog_feed(dog, true);
    bel_watchdog_stop(dog);
    assert_int_equal(atomic_load(&calls), 0);
    bel_watchdog_stop(NULL);
    bel_watchdog_feed(NULL, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_once),
        cmocka_unit_test(test_leaves_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
