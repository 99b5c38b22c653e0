// Sort of numbered keys: in order, stable, for keys of any range.
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/sort.h"
#include "support/bel_test.h"

static void check(const int64_t *keys, int64_t n)
{
    bel_keyed *items = bel_xcalloc((size_t)n, sizeof *items);
    bel_keyed *spare = bel_xcalloc((size_t)n, sizeof *spare);
    bool *seen = bel_xcalloc((size_t)n, sizeof *seen);
    for (int64_t i = 0; i < n; i++)
        items[i] = (bel_keyed){keys[i], (uint32_t)i};
    const bel_keyed *sorted = bel_sort_keyed(items, spare, n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(sorted[i].number < n && !seen[sorted[i].number]);
        seen[sorted[i].number] = true;
        assert_true(sorted[i].key == keys[sorted[i].number]);
        if (i == 0) continue;
        assert_true(sorted[i - 1].key <= sorted[i].key);
        bool equal = sorted[i - 1].key == sorted[i].key;
        assert_true(!equal || sorted[i - 1].number < sorted[i].number);
    }
    bel_free(items);
    bel_free(spare);
    bel_free(seen);
}

static void test_edges(void **state)
{
    (void)state;
    static const int64_t keys[] = {0, -1, INT64_MAX, INT64_MIN, 1, 0, -1, INT64_MIN, 1 << 11, 2};
    for (int64_t n = 0; n <= 10; n++)
        check(keys, n);
    static const int64_t same[] = {-7, -7, -7};
    check(same, 3);
}

// Keys of `bits` bits that need one, two or six passes, with equal low bits and with negative keys.
static void test_ranges(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static int64_t keys[COUNT];
    bel_rng_key key = bel_rng_key_make(1, "sort", 0);
    for (int bits = 1; bits <= 64; bits += 7) {
        for (int64_t i = 0; i < COUNT; i++) {
            uint32_t words[4];
            bel_rng_block(key, (uint64_t)bits, (uint64_t)i, words);
            uint64_t word = (uint64_t)words[0] << 32 | words[1];
            keys[i] = (int64_t)(word >> (64 - bits));
        }
        check(keys, COUNT);
        for (int64_t i = 0; i < COUNT; i++)
            keys[i] = (int64_t)((uint64_t)keys[i] * 64u) - 1000;
        check(keys, COUNT);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
