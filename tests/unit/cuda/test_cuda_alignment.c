// Stand-in for the driver (tests/support/cuda_double): a kernel reads four numbers at a time only
// from multiples of 16 bytes, as on a GPU. Cases run in forked children, as in test_cuda_double.c.
// label: native
#include "support/cuda_double/cases.h"

static void read_fours(uint64_t from)
{
    launch("double_fours", 1, 2, from, 0, allocate(BYTES), (params){.count = 0});
    finish();
}

static void read_straight(void)
{
    begin();
    read_fours(filled(BYTES) + 16);
}

static void read_crooked(void)
{
    begin();
    read_fours(filled(BYTES) + 20);
}

static void test_alignment(void **state)
{
    (void)state;
    expect_fine(read_straight);
    expect_end(read_crooked, "kernel double_fours, block (0,0,0), thread (0,0,0), follows a",
               "no multiple of 16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alignment)};
    return cmocka_run_group_tests(tests, prepare, NULL);
}
