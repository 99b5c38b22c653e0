// Conditions under which BELFRY_FAULT takes effect, and the settings that are refused.
#include "base/fault.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/bel_test.h"

static void test_forgotten(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("BELFRY_ENABLE_FAULTS"), 0);
    assert_int_equal(unsetenv("BELFRY_FAULT"), 0);
    BEL_ASSERT_OK(bel_fault_check());
    assert_int_equal(setenv("BELFRY_FAULT", "divide,crash:tower_step", 1), 0);
    BEL_ASSERT_FAILS(bel_fault_check(), BEL_FAILED_PRECONDITION, "--enable_faults");
    assert_false(bel_fault_is(BEL_FAULT_DIVIDE)); // no fault without bel_fault_check either
    bel_fault_point("tower_step");
    assert_int_equal(setenv("BELFRY_ENABLE_FAULTS", "yes", 1), 0);
    BEL_ASSERT_FAILS(bel_fault_check(), BEL_FAILED_PRECONDITION, "BELFRY_ENABLE_FAULTS=1");
    assert_int_equal(setenv("BELFRY_FAULT", "", 1), 0);
    BEL_ASSERT_OK(bel_fault_check());
}

static void check_words(const char *settings, bel_code code, const char *part)
{
    assert_int_equal(setenv("BELFRY_FAULT", settings, 1), 0);
    bel_fault_enable(); // reads the variable again
    if (code == BEL_OK) {
        BEL_ASSERT_OK(bel_fault_check());
    } else {
        BEL_ASSERT_FAILS(bel_fault_check(), code, part);
    }
}

static void test_words(void **state)
{
    (void)state;
    check_words("lane:delay+repeat+reorder+break,write:3", BEL_OK, NULL);
    assert_true(bel_fault_is(BEL_FAULT_LANE_BREAK));
    assert_string_equal(getenv("BELFRY_ENABLE_FAULTS"), "1"); // for children
    check_words("divide", BEL_OK, NULL);
    assert_true(bel_fault_is(BEL_FAULT_DIVIDE) && !bel_fault_is(BEL_FAULT_LANE_BREAK));
    check_words("crash:*#7@worker-1,hang:worker_waits,slow:file_writes#2@ps-0", BEL_OK, NULL);
    check_words("divide,flip#2", BEL_OK, NULL);
    assert_true(!bel_fault_flips() && bel_fault_flips() && !bel_fault_flips());
    check_words("flip@worker-1", BEL_OK, NULL);
    assert_false(bel_fault_flips()); // the setting names another process
    check_words("flips", BEL_INVALID_ARGUMENT, "\"flips\" is no fault");
    check_words("divde", BEL_INVALID_ARGUMENT, "\"divde\" is no fault");
    check_words("lane:delay+lose", BEL_INVALID_ARGUMENT, "\"lose\"");
    check_words("crash:tower_stop", BEL_INVALID_ARGUMENT, "\"tower_stop\"");
    check_words("slow:disk#3", BEL_INVALID_ARGUMENT, "\"disk\"");
    check_words("crash:", BEL_INVALID_ARGUMENT, "\"crash:\"");
    check_words("slow:tower_step#1,slow:tower_step#2,slow:tower_step#3,slow:tower_step#4,"
                "slow:tower_step#5",
                BEL_INVALID_ARGUMENT, "slow:tower_step#5");
}

static void test_slow(void **state)
{
    (void)state;
    check_words("slow:file_writes#20", BEL_OK, NULL);
    int64_t begun = bel_clock_ns();
    bel_fault_point("file_writes");
    assert_true(bel_clock_ns() - begun >= 20000000);
    bel_fault_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forgotten), // must run first, before faults are enabled
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
