// Exponential backoff with jitter.
#include "base/backoff.h"
#include "support/bel_test.h"

static void test_pauses_double_up_to_the_limit(void **state)
{
    (void)state;
    bel_backoff backoff = {.least_ns = 1000, .most_ns = 10000};
    const int64_t limits[] = {1000, 2000, 4000, 8000, 10000, 10000};
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < (int)(sizeof limits / sizeof limits[0]); i++) {
            int64_t pause = bel_backoff_next(&backoff);
            assert_in_range(pause, limits[i] / 2, limits[i]);
        }
        backoff.tries = 0;
    }
}

static void test_pauses_differ(void **state)
{
    (void)state;
    enum { PAUSES = 100 };
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < PAUSES; i++) {
        bel_backoff backoff = {.least_ns = INT64_C(1) << 40, .most_ns = INT64_C(1) << 40};
        int64_t pause = bel_backoff_next(&backoff);
        if (pause < least) least = pause;
        if (pause > most) most = pause;
    }
    assert_true(most - least > INT64_C(1) << 37); // a quarter of the range
}

static void test_a_million_tries_do_not_overflow(void **state)
{
    (void)state;
    bel_backoff backoff = {.least_ns = 1, .most_ns = INT64_MAX / 2, .tries = 1000000};
    assert_in_range(bel_backoff_next(&backoff), INT64_MAX / 4, INT64_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_double_up_to_the_limit),
        cmocka_unit_test(test_pauses_differ),
        cmocka_unit_test(test_a_million_tries_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
