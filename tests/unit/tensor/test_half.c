// 16-bit floats: each of them converted both ways, rounding, and numbers too large or too small.
#include "tensor/half.h"

#include <math.h>

#include "support/bel_test.h"

static void test_there_and_back(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= UINT16_MAX; bits++) {
        double h = bel_half_get((uint16_t)bits), b = bel_bfloat_get((uint16_t)bits);
        assert_true(isnan(h) ? isnan(bel_half_get(bel_half_make(h))) : bel_half_make(h) == bits);
        assert_true(isnan(b) ? isnan(bel_bfloat_get(bel_bfloat_make(b)))
                             : bel_bfloat_make(b) == bits);
    }
}

// bfloat16 is the upper half of a float.
static void test_bfloat_is_half_a_float(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits <= UINT16_MAX; bits++) {
        uint32_t wide = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &wide, sizeof value);
        double got = bel_bfloat_get((uint16_t)bits);
        assert_true(isnan(value) ? isnan(got) : (double)value == got);
    }
}

static void test_known_values(void **state)
{
    (void)state;
    assert_int_equal(bel_half_make(1), 0x3c00);
    assert_int_equal(bel_half_make(-2), 0xc000);
    assert_int_equal(bel_half_make(65504), 0x7bff); // the largest
    assert_int_equal(bel_half_make(0x1p-24), 0x0001);
    assert_int_equal(bel_half_make(0x1p-14), 0x0400);
    assert_int_equal(bel_half_make(-0.0), 0x8000);
    assert_int_equal(bel_bfloat_make(1), 0x3f80);
    assert_int_equal(bel_bfloat_make(3.14159265), 0x4049);
}

static void test_rounding(void **state)
{
    (void)state;
    assert_int_equal(bel_half_make(1 + 0x1p-11), 0x3c00);           // a tie, to even
    assert_int_equal(bel_half_make(1 + 0x1p-11 + 0x1p-40), 0x3c01); // rounds once, from all digits
    assert_int_equal(bel_half_make(1 + 3 * 0x1p-11), 0x3c02);
    assert_int_equal(bel_half_make(2 - 0x1p-12), 0x4000); // carries into the exponent
    assert_int_equal(bel_half_make(65519.99), 0x7bff);
    assert_int_equal(bel_half_make(65520), 0x7c00);
    assert_int_equal(bel_half_make(1e300), 0x7c00);
    assert_int_equal(bel_half_make(-INFINITY), 0xfc00);
    assert_int_equal(bel_half_make(0x1p-25), 0x0000);
    assert_int_equal(bel_half_make(0x1.01p-25), 0x0001);
    assert_int_equal(bel_half_make(0x1p-14 - 0x1p-26), 0x0400); // above the largest subnormal
    assert_int_equal(bel_bfloat_make(0x1.fffp127), 0x7f80);
    assert_int_equal(bel_bfloat_make(0x1.fdp127), 0x7f7e); // a tie
    assert_int_equal(bel_bfloat_make(0x1p-133), 0x0001);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_bfloat_is_half_a_float),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
