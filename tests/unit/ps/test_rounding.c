// Sums and updates as bf16 and int8: rounding, and differences that a worker adds to the bits of
// the shard.
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "ps/layout/rounding.h"
#include "support/bel_test.h"

enum { STEP = 7, COUNT = 3000 }; // more than one piece, and no multiple of one

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Any bits: all magnitudes, infinities and NaN.
static void fill(float *out, uint64_t stream)
{
    for (int i = 0; i < COUNT; i++) {
        uint32_t words[4];
        bel_rng_block((bel_rng_key){{3, 4}}, stream, (uint64_t)i, words);
        out[i] = from_bits(words[0]);
    }
}

static const bel_rounding kinds[] = {BEL_ROUNDING_BF16, BEL_ROUNDING_INT8};

static void test_ties(void **state)
{
    (void)state;
    static const struct {
        uint32_t value, rounded;
    } cases[] = {
        {0x3f800000, 0x3f800000}, // 1
        {0x3f808000, 0x3f800000}, // a tie goes to the even neighbor, below
        {0x3f818000, 0x3f820000}, // … or above
        {0x3f808001, 0x3f810000}, // just above a tie
        {0x3f807fff, 0x3f800000}, // just below one
        {0xbf818000, 0xbf820000}, // the sign does not matter
        {0x80000000, 0x80000000}, // -0
        {0x7f7fffff, 0x7f800000}, // the largest number is nearer to infinity
        {0xff800000, 0xff800000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float value = from_bits(cases[i].value);
        bel_rounding_round(BEL_ROUNDING_BF16, STEP, &value, 1);
        assert_int_equal(bits_of(value), cases[i].rounded);
    }
    float nan = from_bits(0x7f800001);
    bel_rounding_round(BEL_ROUNDING_BF16, STEP, &nan, 1);
    assert_true(isnan(nan));
}

// Distance of two neighbors in a block with that largest magnitude.
static double int8_step(double largest)
{
    int exponent;
    double fraction = frexp(largest, &exponent);
    exponent = fraction * 128 > 127 ? exponent - 6 : exponent - 7;
    return ldexp(1, exponent > -126 ? exponent : -126);
}

// Every value becomes one of its two neighbors, and the largest quotient is 127.
static void test_int8_neighbors(void **state)
{
    (void)state;
    static float values[COUNT], rounded[COUNT];
    fill(values, 4);
    for (int i = 0; i < COUNT; i++) { // blocks of like magnitudes, of all exponents
        int exponent;
        float scale = values[i / 16 * 16];
        if (!isfinite(values[i])) values[i] = 0.75f;
        if (!isfinite(scale)) scale = 1;
        float fraction = frexpf(values[i], &exponent);
        frexpf(scale, &exponent);
        values[i] = ldexpf(fraction, exponent - i % 5);
    }
    values[0] = 127, values[16] = 127.5f, values[32] = -127;
    for (int i = 1; i < 16; i++)
        values[i] = values[16 + i] = values[32 + i] = 0.25f * (float)i;
    memcpy(rounded, values, sizeof values);
    bel_rounding_round(BEL_ROUNDING_INT8, STEP, rounded, COUNT);
    for (int b = 0; b < COUNT; b += 16) {
        int end = b + 16 < COUNT ? b + 16 : COUNT;
        double largest = 0;
        for (int i = b; i < end; i++)
            largest = fmax(largest, fabs((double)values[i]));
        double step = int8_step(largest);
        for (int i = b; i < end; i++) {
            double quotient = (double)rounded[i] / step;
            assert_true(quotient == floor(quotient) && fabs(quotient) <= 127);
            assert_true(fabs((double)rounded[i] - (double)values[i]) < step);
        }
    }
    assert_true(rounded[0] == 127 && rounded[32] == -127);
    assert_true(rounded[16] == 126 || rounded[16] == 128);
}

// The mean of rounded values is that of the values: a small gradient beside a large one is not
// lost.
static void test_int8_mean(void **state)
{
    (void)state;
    enum { BLOCKS = 20000 };
    double sum = 0, wanted = 0, step = int8_step(100);
    for (int b = 0; b < BLOCKS; b++) {
        float block[16] = {100};
        for (int i = 1; i < 16; i++) {
            uint32_t words[4];
            bel_rng_block((bel_rng_key){{3, 4}}, 5, (uint64_t)(b * 16 + i), words);
            block[i] = (float)words[0] * 0x1p-32f * 0.2f; // a tenth of a step on the average
            wanted += (double)block[i];
        }
        bel_rounding_round(BEL_ROUNDING_INT8, STEP, block, 16);
        for (int i = 1; i < 16; i++)
            sum += (double)block[i];
    }
    // The deviation of the sum is at most half a step times the root of the number.
    assert_true(fabs(sum - wanted) <= 5 * step / 2 * sqrt(15.0 * BLOCKS));
    assert_true(sum > 0);
}

// A value that comes again in every step goes up and down, and its rounded value stays.
static void test_int8_steps(void **state)
{
    (void)state;
    enum { STEPS = 4000 };
    double sums[16] = {0};
    for (int step = 0; step < STEPS; step++) {
        float block[16] = {100}, again[16];
        for (int i = 1; i < 16; i++)
            block[i] = 0.125f;
        bel_rounding_round(BEL_ROUNDING_INT8, step, block, 16);
        memcpy(again, block, sizeof again);
        bel_rounding_round(BEL_ROUNDING_INT8, step + 1, again, 16);
        assert_memory_equal(again, block, sizeof block);
        for (int i = 0; i < 16; i++)
            sums[i] += (double)block[i];
    }
    for (int i = 1; i < 16; i++) // 500 with a deviation of 21
        assert_true(fabs(sums[i] - 0.125 * STEPS) < 105);
}

static void test_int8_not_finite(void **state)
{
    (void)state;
    float values[64] = {0};
    values[5] = INFINITY, values[20] = 1, values[47] = NAN;
    values[50] = -0x1.fffffep127f; // the next one above might be infinity
    bel_rounding_round(BEL_ROUNDING_INT8, STEP, values, 64);
    for (int i = 0; i < 64; i++)
        assert_true(i / 16 == 1 ? values[i] == (i == 20 ? 1 : 0) : isnan(values[i]));
}

// Pieces at borders of blocks have the bits of the whole, and the last block is whole.
static void test_int8_pieces(void **state)
{
    (void)state;
    static float values[COUNT];
    static uint8_t whole[COUNT * 2], pieces[COUNT * 2];
    fill(values, 6);
    memset(whole, 0xaa, sizeof whole);
    bel_rounding_pack(BEL_ROUNDING_INT8, STEP, values, whole, COUNT);
    for (int at = 0; at < COUNT; at += 48)
        bel_rounding_pack(BEL_ROUNDING_INT8, STEP, values + at,
                          pieces + bel_rounding_bytes(BEL_ROUNDING_INT8, at),
                          COUNT - at < 48 ? COUNT - at : 48);
    size_t bytes = bel_rounding_bytes(BEL_ROUNDING_INT8, COUNT);
    assert_int_equal(bytes, (COUNT + 15) / 16 * 17);
    assert_memory_equal(pieces, whole, bytes);
    assert_int_equal(whole[bytes], 0xaa);
    for (size_t i = bytes - (16 - COUNT % 16); i < bytes; i++)
        assert_int_equal(whole[i], 0);
}

static void test_packed(void **state)
{
    (void)state;
    static float values[COUNT], rounded[COUNT], unpacked[COUNT];
    static uint16_t packed[COUNT + 16];
    for (size_t k = 0; k < 2; k++) {
        fill(values, 0);
        memcpy(rounded, values, sizeof values);
        bel_rounding_round(kinds[k], STEP, rounded, COUNT);
        bel_rounding_pack(kinds[k], STEP, values, packed, COUNT);
        bel_rounding_unpack(kinds[k], packed, unpacked, COUNT);
        assert_memory_equal(unpacked, rounded, sizeof rounded);
        bel_rounding_pack(kinds[k], STEP, rounded, packed, COUNT); // loses nothing more
        bel_rounding_unpack(kinds[k], packed, unpacked, COUNT);
        assert_memory_equal(unpacked, rounded, sizeof rounded);
    }
}

static void test_differences(void **state)
{
    (void)state;
    static float before[COUNT], after[COUNT], wanted[COUNT], again[COUNT];
    static uint16_t differences[COUNT + 16];
    for (size_t k = 0; k < 2; k++) {
        fill(before, 1);
        fill(after, 2);
        for (int i = 0; i < COUNT; i += 2) // an update is small
            after[i] = before[i] * 1.0007f;
        memcpy(wanted, after, sizeof after);
        bel_rounding_differ(kinds[k], STEP, before, after, differences, COUNT);
        bel_rounding_add(kinds[k], before, differences, again, COUNT);
        assert_memory_equal(again, after, sizeof after);
        for (int i = 0; i < COUNT && kinds[k] == BEL_ROUNDING_BF16; i += 2) {
            if (!isfinite(wanted[i]) || fabsf(before[i]) < 1e-30f) continue;
            float change = wanted[i] - before[i],
                  most = fabsf(change) / 256 + fabsf(before[i]) * 1e-6f;
            assert_true(fabsf(after[i] - wanted[i]) <= most);
        }
        memcpy(again, wanted, sizeof wanted);
        bel_rounding_differ(kinds[k], STEP, before, again, NULL,
                            COUNT); // a shard that sends nothing
        assert_memory_equal(again, after, sizeof after);
    }
}

static void test_same(void **state)
{
    (void)state;
    const float before[] = {0.0f, -0.0f, 1.5f, -INFINITY};
    for (size_t k = 0; k < 2; k++) {
        uint16_t same[16];
        float after[4];
        bel_rounding_differ_nothing(kinds[k], same, 4);
        bel_rounding_add(kinds[k], before, same, after, 4);
        assert_memory_equal(after, before, sizeof before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_int8_neighbors),
        cmocka_unit_test(test_int8_mean),
        cmocka_unit_test(test_int8_steps),
        cmocka_unit_test(test_int8_not_finite),
        cmocka_unit_test(test_int8_pieces),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
