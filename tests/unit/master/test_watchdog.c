// Watchdog: it ignores users that feed it or rest, and reports a stall once. No test waits for a
// fixed time: another dog's report shows that enough time has passed.
#include <semaphore.h>

#include "master/backend/watchdog.h"
#include "support/bel_test.h"

static void call_out(void *context, double secs)
{
    assert_true(secs > 0);
    sem_post(context);
}

// Waits for the report of a dog with this limit, fed once; true: there was only one report.
static bool call_comes(double limit_secs)
{
    sem_t calls;
    sem_init(&calls, 0, 0);
    bel_watchdog *dog;
    BEL_ASSERT_OK(bel_watchdog_start(limit_secs, call_out, &calls, &dog));
    bel_watchdog_feed(dog, false);
    while (sem_wait(&calls) != 0)
        ;                          // interrupted by a signal
    bel_watchdog_feed(dog, false); // no effect after the report
    bel_watchdog_stop(dog);
    bool once = sem_trywait(&calls) != 0;
    sem_destroy(&calls);
    return once;
}

static void test_calls_once(void **state)
{
    (void)state;
    assert_true(call_comes(0.01));
}

static void test_leaves_alone(void **state)
{
    (void)state;
    sem_t calls;
    sem_init(&calls, 0, 0);
    bel_watchdog *never_fed, *not_over, *resting;
    BEL_ASSERT_OK(bel_watchdog_start(0.001, call_out, &calls, &never_fed));
    BEL_ASSERT_OK(bel_watchdog_start(3600, call_out, &calls, &not_over));
    bel_watchdog_feed(not_over, false);
    BEL_ASSERT_OK(bel_watchdog_start(0.001, call_out, &calls, &resting));
    bel_watchdog_feed(resting, true);
    assert_true(call_comes(0.02));
    bel_watchdog_stop(never_fed);
    bel_watchdog_stop(not_over);
    bel_watchdog_stop(resting);
    assert_true(sem_trywait(&calls) != 0);
    sem_destroy(&calls);
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
