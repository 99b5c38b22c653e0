// Tests of the vector kernels between f32 and narrow types, at all instruction-set levels. bfloat16
// is compared with tensor/half.h: every bfloat16, numbers on both sides of every border between two
// of them, infinities and NaNs.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/isa.h"
#include "ops/kernels/cpu.h"
#include "support/bel_test.h"
#include "tensor/half.h"

enum { WORDS = 1 << 16, LOW = 7 };

static const uint32_t low_bits[LOW] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
static const bel_cpu_kernels *const levels[] = {BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_cpu_kernels)};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void test_rounding(void **state)
{
    (void)state;
    float *x = bel_xcalloc((size_t)WORDS * LOW, sizeof *x);
    uint16_t *y = bel_xcalloc((size_t)WORDS * LOW, sizeof *y);
    for (int i = 0; i < WORDS * LOW; i++)
        x[i] = float_of((uint32_t)(i / LOW) << 16 | low_bits[i % LOW]);
    for (int level = 0; level <= (int)bel_isa_get(); level++) {
        levels[level]->to_bfloat(x, y, (int64_t)WORDS * LOW);
        for (int i = 0; i < WORDS * LOW; i++) {
            uint16_t expected = bel_bfloat_make((double)x[i]);
            if (y[i] != expected)
                fail_msg("level %d: %a became %#x, expected %#x", level, (double)x[i], y[i],
                         expected);
        }
    }
    bel_free(x);
    bel_free(y);
}

static void test_widening(void **state)
{
    (void)state;
    uint16_t *x = bel_xcalloc(WORDS, sizeof *x);
    float *y = bel_xcalloc(WORDS, sizeof *y);
    for (int i = 0; i < WORDS; i++)
        x[i] = (uint16_t)i;
    for (int level = 0; level <= (int)bel_isa_get(); level++) {
        levels[level]->from_bfloat(x, y, WORDS);
        for (int i = 0; i < WORDS; i++) {
            double expected = bel_bfloat_get(x[i]);
            bool nan = isnan(expected) && isnan(y[i]);
            bool same = (double)y[i] == expected && !signbit(y[i]) == !signbit(expected);
            if (!nan && !same)
                fail_msg("level %d: %#x became %a, expected %a", level, x[i], (double)y[i],
                         expected);
        }
    }
    bel_free(x);
    bel_free(y);
}

// Blocks of int8 (ps/layout/rounding.h) have the same bytes and values at all levels.
static void test_int8(void **state)
{
    (void)state;
    enum { COUNT = WORDS * LOW - 3 };
    float *x = bel_xcalloc(COUNT, sizeof *x);
    float *values = bel_xcalloc(2 * COUNT, sizeof *values);
    uint8_t *y = bel_xcalloc(4 * COUNT, 1);
    for (uint32_t i = 0; i < COUNT; i++) { // most blocks have like magnitudes, some any
        uint32_t bits = i * 0x9e3779b1u;
        x[i] = float_of(i / 16 % 4 == 0 ? bits : (bits & 0x81ffffff) | i / 16 % 120 << 24);
    }
    for (int level = 0; level <= (int)bel_isa_get(); level++) {
        uint8_t *bytes = level == 0 ? y : y + 2 * COUNT;
        float *back = level == 0 ? values : values + COUNT;
        levels[level]->to_int8(x, bytes, 12345, COUNT);
        levels[level]->from_int8(bytes, back, COUNT);
        assert_memory_equal(bytes, y, COUNT / 16 * 17);
        assert_memory_equal(back, values, COUNT * sizeof *back);
    }
    bel_free(x);
    bel_free(values);
    bel_free(y);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounding),
                                              cmocka_unit_test(test_widening),
                                              cmocka_unit_test(test_int8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
