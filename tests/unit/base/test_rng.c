// Philox4x32-10 against Random123's known answers, and keys that do not collide.
#include "base/rng.h"
#include "support/bel_test.h"

// From kat_vectors of Random123 1.14: counter, key, answer.
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint64_t high, low;
        uint32_t key[2], answer[4];
    } rows[] = {
        {0, 0, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX,
         UINT64_MAX,
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t words[4];
        bel_rng_key key = {{rows[i].key[0], rows[i].key[1]}};
        bel_rng_block(key, rows[i].high, rows[i].low, words);
        assert_memory_equal(words, rows[i].answer, sizeof words);
    }
}

static void test_keys(void **state)
{
    (void)state;
    bel_rng_key keys[] = {bel_rng_key_make(1, "init", 0), bel_rng_key_make(2, "init", 0),
                          bel_rng_key_make(1, "dropout", 0), bel_rng_key_make(1, "init", 1)};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(&keys[i], &keys[j], sizeof keys[i]);
    bel_rng_key again = bel_rng_key_make(1, "init", 0);
    assert_memory_equal(&keys[0], &again, sizeof again);
}

static void test_unit(void **state)
{
    (void)state;
    assert_true(bel_rng_unit(0) == 0.0f);
    assert_true(bel_rng_unit(UINT32_MAX) < 1.0f);
    double sum = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        uint32_t words[4];
        bel_rng_block(bel_rng_key_make(5, "test", 0), 0, i, words);
        for (int j = 0; j < 4; j++)
            sum += (double)bel_rng_unit(words[j]);
    }
    double mean = sum / 40000; // deviation 1 / sqrt(12 * 40000) = 0.0014
    assert_true(mean > 0.493 && mean < 0.507);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
