// Signals as bytes in a pipe: the signal's number, SIGHUP as SIGTERM, SIGUSR2 as SIGUSR1, and more
// signals than a pipe holds.
#include <signal.h>

#include "launch/supervise/stop_signals.h"
#include "support/bel_test.h"

static void test_numbers(void **state)
{
    (void)state;
    int descriptor;
    BEL_ASSERT_OK(bel_stop_signals_open(&descriptor));
    assert_int_equal(bel_stop_signals_read(descriptor), 0);
    raise(SIGINT);
    raise(SIGHUP);
    raise(SIGUSR2);
    assert_int_equal(bel_stop_signals_read(descriptor), SIGINT);
    assert_int_equal(bel_stop_signals_read(descriptor), SIGTERM);
    assert_int_equal(bel_stop_signals_read(descriptor), SIGUSR1);
    assert_int_equal(bel_stop_signals_read(descriptor), 0);
    bel_stop_signals_close(descriptor);
}

// The handler does not wait for the reader.
static void test_flood(void **state)
{
    (void)state;
    enum { MORE_THAN_A_PIPE = 1 << 17 };
    int descriptor, count = 0;
    BEL_ASSERT_OK(bel_stop_signals_open(&descriptor));
    for (int i = 0; i < MORE_THAN_A_PIPE; i++)
        raise(SIGTERM);
    while (bel_stop_signals_read(descriptor) == SIGTERM)
        count++;
    assert_true(count > 0 && count < MORE_THAN_A_PIPE);
    bel_stop_signals_close(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
