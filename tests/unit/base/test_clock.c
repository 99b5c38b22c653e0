// A gap between two looks at the clock of waits counts up to BEL_CLOCK_GAP_NS.
#include "base/clock.h"

#include <poll.h>

#include "support/bel_test.h"

static void test_a_gap_counts_in_part(void **state)
{
    (void)state;
    int64_t begun = bel_clock_ns(), awake = bel_clock_awake_ns();
    poll(NULL, 0, (int)(BEL_CLOCK_GAP_NS / 1000000) + 500); // as long as a suspended process
    int64_t counted = bel_clock_awake_ns() - awake, passed = bel_clock_ns() - begun;
    assert_true(counted <= BEL_CLOCK_GAP_NS);
    assert_true(counted < passed);
    awake = bel_clock_awake_ns();
    poll(NULL, 0, 20);
    counted = bel_clock_awake_ns() - awake;
    assert_in_range(counted, 20000000, BEL_CLOCK_GAP_NS); // a short one counts as a whole
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_gap_counts_in_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
