// Reading and writing elements of any type: values that a type cannot hold, and integers above
// 2^53.
#include "ops/kernels/elements.h"

#include <math.h>

#include "support/bel_test.h"

static int64_t stored(bel_dtype dtype, double value)
{
    int64_t room[1] = {0};
    bel_tensor tensor = {.dtype = dtype, .data = room};
    bel_element_set(&tensor, 0, value);
    return bel_element_get_whole(&tensor, 0);
}

static void test_saturates(void **state)
{
    (void)state;
    assert_int_equal(stored(BEL_DTYPE_I32, 3e9), INT32_MAX);
    assert_int_equal(stored(BEL_DTYPE_I32, -3e9), INT32_MIN);
    assert_int_equal(stored(BEL_DTYPE_I32, -2.9), -2);
    assert_int_equal(stored(BEL_DTYPE_I64, 1e19), INT64_MAX);
    assert_int_equal(stored(BEL_DTYPE_I64, -INFINITY), INT64_MIN);
    assert_int_equal(stored(BEL_DTYPE_I64, NAN), 0);
    assert_int_equal(stored(BEL_DTYPE_U8, 300), 255);
    assert_int_equal(stored(BEL_DTYPE_U8, -1), 0);
    assert_int_equal(stored(BEL_DTYPE_BOOL, 0.25), 1);
}

static void test_whole_numbers_are_exact(void **state)
{
    (void)state;
    int64_t large = ((int64_t)1 << 53) + 1;
    int64_t room[1] = {large};
    bel_tensor tensor = {.dtype = BEL_DTYPE_I64, .data = room};
    assert_true(bel_element_get_whole(&tensor, 0) == large);
    bel_element_set_whole(&tensor, 0, large + 1);
    assert_true(room[0] == large + 1);
    tensor.dtype = BEL_DTYPE_I32;
    bel_element_set_whole(&tensor, 0, ((int64_t)1 << 32) + 7);
    assert_int_equal(bel_element_get_whole(&tensor, 0), 7);
    tensor.dtype = BEL_DTYPE_BOOL;
    bel_element_set_whole(&tensor, 0, 256);
    assert_int_equal(bel_element_get_whole(&tensor, 0), 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saturates),
        cmocka_unit_test(test_whole_numbers_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
