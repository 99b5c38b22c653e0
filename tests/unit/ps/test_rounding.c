// Sums and updates as bf16: rounding to nearest even, and differences that a worker adds to the
// bits of the shard.
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "ps/layout/rounding.h"
#include "support/bel_test.h"

enum { COUNT = 3000 }; // more than one piece, and no multiple of one

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
        bel_rounding_round(&value, 1);
        assert_int_equal(bits_of(value), cases[i].rounded);
    }
    float nan = from_bits(0x7f800001);
    bel_rounding_round(&nan, 1);
    assert_true(isnan(nan));
}

static void test_packed(void **state)
{
    (void)state;
    static float values[COUNT], rounded[COUNT], unpacked[COUNT];
    static uint16_t packed[COUNT];
    fill(values, 0);
    memcpy(rounded, values, sizeof values);
    bel_rounding_round(rounded, COUNT);
    bel_rounding_pack(values, packed, COUNT);
    bel_rounding_unpack(packed, unpacked, COUNT);
    assert_memory_equal(unpacked, rounded, sizeof rounded);
    bel_rounding_pack(rounded, packed, COUNT); // loses nothing more
    bel_rounding_unpack(packed, unpacked, COUNT);
    assert_memory_equal(unpacked, rounded, sizeof rounded);
}

static void test_differences(void **state)
{
    (void)state;
    static float before[COUNT], after[COUNT], wanted[COUNT], again[COUNT];
    static uint16_t differences[COUNT];
    fill(before, 1);
    fill(after, 2);
    for (int i = 0; i < COUNT; i += 2) // an update is small
        after[i] = before[i] * 1.0007f;
    memcpy(wanted, after, sizeof after);
    bel_rounding_differ(before, after, differences, COUNT);
    bel_rounding_add(before, differences, again, COUNT);
    assert_memory_equal(again, after, sizeof after);
    for (int i = 0; i < COUNT; i += 2) {
        if (!isfinite(wanted[i]) || fabsf(before[i]) < 1e-30f) continue;
        float change = wanted[i] - before[i], most = fabsf(change) / 256 + fabsf(before[i]) * 1e-6f;
        assert_true(fabsf(after[i] - wanted[i]) <= most);
    }
    memcpy(again, wanted, sizeof wanted);
    bel_rounding_differ(before, again, NULL, COUNT); // a shard that sends nothing has the same bits
    assert_memory_equal(again, after, sizeof after);
}

static void test_same(void **state)
{
    (void)state;
    const float before[] = {0.0f, -0.0f, 1.5f, -INFINITY};
    const uint16_t same[] = {BEL_ROUNDING_SAME, BEL_ROUNDING_SAME, BEL_ROUNDING_SAME,
                             BEL_ROUNDING_SAME};
    float after[4];
    bel_rounding_add(before, same, after, 4);
    assert_memory_equal(after, before, sizeof before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
