// Index: each number is found under its hash and under no other, whatever collides.
#include "base/index.h"
#include "base/rng.h"
#include "support/bel_test.h"

static int count_of(const bel_index *index, uint64_t hash, int wanted)
{
    size_t at = 0;
    int count = 0;
    for (int number; (number = bel_index_next(index, hash, &at)) >= 0;)
        count += wanted < 0 || number == wanted;
    return count;
}

static void test_empty(void **state)
{
    (void)state;
    bel_index index = {.capacity = 0};
    assert_int_equal(count_of(&index, 0, -1), 0);
    bel_index_put(&index, 0, 0);
    assert_int_equal(count_of(&index, 0, 0), 1);
    assert_int_equal(count_of(&index, 1, -1), 0);
    bel_index_deinit(&index);
    assert_int_equal(count_of(&index, 0, -1), 0);
    bel_index_deinit(&index);
}

// Hashes with few values or few low bits: long probe runs that wrap around the end.
static void test_collisions(void **state)
{
    (void)state;
    enum { NUMBERS = 500 };
    static const uint64_t masks[] = {0, 3, UINT64_C(0xff) << 56, 0xfff, ~UINT64_C(0)};
    for (size_t m = 0; m < sizeof masks / sizeof masks[0]; m++) {
        uint64_t hashes[NUMBERS];
        bel_index index = {.capacity = 0};
        for (int i = 0; i < NUMBERS; i++) {
            uint32_t words[4];
            bel_rng_block((bel_rng_key){{7, 8}}, m, (uint64_t)i, words);
            hashes[i] = ((uint64_t)words[0] << 32 | words[1]) & masks[m];
            bel_index_put(&index, hashes[i], i);
        }
        for (int i = 0; i < NUMBERS; i++) {
            int same = 0;
            for (int k = 0; k < NUMBERS; k++)
                same += hashes[k] == hashes[i];
            assert_int_equal(count_of(&index, hashes[i], i), 1);
            assert_int_equal(count_of(&index, hashes[i], -1), same);
        }
        bel_index_deinit(&index);
    }
}

static void test_texts(void **state)
{
    (void)state;
    bel_index index = {.capacity = 0};
    bel_index_put_text(&index, "", 1);
    bel_index_put_text(&index, "a", 2);
    size_t at = 0;
    assert_int_equal(bel_index_next_text(&index, "", &at), 1);
    assert_int_equal(bel_index_next_text(&index, "", &at), -1);
    at = 0;
    assert_int_equal(bel_index_next_text(&index, "a", &at), 2);
    at = 0;
    assert_int_equal(bel_index_next_text(&index, "b", &at), -1);
    bel_index_deinit(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
