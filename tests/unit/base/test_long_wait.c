// A signal that came before a long wait ends it: the wait raises the signal again.
#include "base/long_wait.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "support/bel_test.h"

static sem_t arrived;

static void on_signal(int number)
{
    (void)number;
    if (bel_long_wait_is_on()) sem_post(&arrived);
}

static void test_signal_before_a_wait(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = on_signal};
    struct timespec limit;
    bel_long_wait wait;
    assert_int_equal(sem_init(&arrived, 0, 0), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1); // outside of a wait: only noted
    assert_int_equal(sem_trywait(&arrived), -1);
    bel_long_wait_note_signal(SIGUSR1);
    bel_long_wait_begin(&wait, "a test");
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &limit), 0);
    limit.tv_sec += 60;
    int code;
    do
        code = sem_timedwait(&arrived, &limit);
    while (code != 0 && errno == EINTR);
    bel_long_wait_note_signal(0);
    bel_long_wait_end(&wait);
    assert_int_equal(code, 0);
    sem_destroy(&arrived);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_signal_before_a_wait)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
