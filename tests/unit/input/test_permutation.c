// Permutations: a bijection for every size, a different order for every epoch, window, seed and
// stage, and all orders equally likely.
#include "input/order/permutation.h"

#include "base/isa.h"
#include "unit/input/test_fixture.h"

static void test_is_a_bijection(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 1000, 1024, 1025, 60000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t size = sizes[i];
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            bel_permutation permutation;
            bel_permutation_init(&permutation, size, 42, 0, epoch, 0);
            bool *seen = bel_xcalloc((size_t)size, sizeof *seen);
            for (int64_t j = 0; j < size; j++) {
                int64_t to = bel_permutation_at(&permutation, j);
                assert_in_range(to, 0, size - 1);
                assert_false(seen[to]);
                seen[to] = true;
            }
            bel_free(seen);
        }
    }
}

// Number of elements that two permutations of 1,000 send to the same place: about one by chance.
static int common_places(const bel_permutation *a, const bel_permutation *b)
{
    int common = 0;
    for (int64_t i = 0; i < 1000; i++)
        common += bel_permutation_at(a, i) == bel_permutation_at(b, i) ? 1 : 0;
    return common;
}

static void test_every_part_of_the_key_matters(void **state)
{
    (void)state;
    bel_permutation first, again, other;
    bel_permutation_init(&first, 1000, 42, 0, 0, 0);
    bel_permutation_init(&again, 1000, 42, 0, 0, 0);
    assert_int_equal(common_places(&first, &again), 1000);
    static const struct {
        uint64_t seed;
        int stage;
        int64_t epoch, window;
    } keys[] = {{43, 0, 0, 0}, {42, 1, 0, 0}, {42, 0, 1, 0}, {42, 0, 0, 1}, {42, 0, 1, 1}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bel_permutation_init(&other, 1000, keys[i].seed, keys[i].stage, keys[i].epoch,
                             keys[i].window);
        assert_true(common_places(&first, &other) < 12);
    }
}

// The number of a permutation of `size` elements among size! (Lehmer code).
static int order_number(const bel_permutation *permutation, int size)
{
    int number = 0;
    for (int i = 0; i < size; i++) {
        int smaller = 0;
        for (int j = i + 1; j < size; j++)
            smaller +=
                bel_permutation_at(permutation, j) < bel_permutation_at(permutation, i) ? 1 : 0;
        number = number * (size - i) + smaller;
    }
    return number;
}

// Chi-square of counts that should all be `expected`.
static double chi_square(const int *counts, int count, double expected)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

// Over epochs all orders of a few records occur equally often. The limits are the 99.99 % points
// of chi-square with 1, 5, 23 and 119 degrees of freedom. Keys are fixed, so the test always gives
// the same result.
static void test_small_orders_are_equally_likely(void **state)
{
    (void)state;
    static const struct {
        int size, orders;
        double limit;
    } cases[] = {{2, 2, 15.1}, {3, 6, 25.7}, {4, 24, 56.0}, {5, 120, 183.4}};
    enum { PER_ORDER = 500 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int counts[120] = {0};
        int64_t epochs = (int64_t)cases[i].orders * PER_ORDER;
        for (int64_t epoch = 0; epoch < epochs; epoch++) {
            bel_permutation permutation;
            bel_permutation_init(&permutation, cases[i].size, 7, 0, epoch, 0);
            counts[order_number(&permutation, cases[i].size)]++;
        }
        assert_true(chi_square(counts, cases[i].orders, PER_ORDER) < cases[i].limit);
    }
}

// In an order of many records the place of element i is uniform, and so is the distance between the
// places of neighbors. 16 bins, with the limit for 15 degrees of freedom.
static void test_large_orders_look_random(void **state)
{
    (void)state;
    enum { SIZE = 60000, BINS = 16 };
    static const double limit = 44.3;
    for (int64_t epoch = 0; epoch < 4; epoch++) {
        bel_permutation permutation;
        bel_permutation_init(&permutation, SIZE, 1, 0, epoch, 0);
        int first_half[BINS] = {0}, even[BINS] = {0}, steps[BINS] = {0};
        int64_t before = bel_permutation_at(&permutation, SIZE - 1);
        for (int64_t i = 0; i < SIZE; i++) {
            int64_t to = bel_permutation_at(&permutation, i);
            if (i < SIZE / 2) first_half[to * BINS / SIZE]++;
            if (i % 2 == 0) even[to * BINS / SIZE]++;
            steps[(to - before + SIZE) % SIZE * BINS / SIZE]++;
            before = to;
        }
        assert_true(chi_square(first_half, BINS, SIZE / 2.0 / BINS) < limit);
        assert_true(chi_square(even, BINS, SIZE / 2.0 / BINS) < limit);
        assert_true(chi_square(steps, BINS, (double)SIZE / BINS) < limit);
    }
}

// bel_permutation_apply gives bel_permutation_at's results, at each ISA level of this CPU.
static void test_elements_together(void **state)
{
    (void)state;
    static const bel_permutation_kernels *const levels[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_permutation_kernels)};
    static const int64_t sizes[] = {1, 2, 3, 63, 64, 65, 1000, 1025, 60000, 10000000, INT64_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        bel_permutation permutation;
        bel_permutation_init(&permutation, sizes[s], 5, 1, 2, 3);
        for (int count = 0; count <= BEL_PERMUTATION_TOGETHER; count++) {
            int64_t indexes[BEL_PERMUTATION_TOGETHER], got[BEL_PERMUTATION_TOGETHER];
            for (int i = 0; i < count; i++)
                got[i] = indexes[i] =
                    (int64_t)((uint64_t)(i + 1) * 0x9E3779B97F4A7C15u >> 1) % sizes[s];
            bel_permutation_apply(&permutation, got, count);
            for (int i = 0; i < count; i++)
                assert_int_equal(got[i], bel_permutation_at(&permutation, indexes[i]));
        }
        uint64_t first[BEL_PERMUTATION_TOGETHER];
        for (size_t level = 0; level <= (size_t)bel_isa_get(); level++) {
            uint64_t values[BEL_PERMUTATION_TOGETHER];
            for (int i = 0; i < BEL_PERMUTATION_TOGETHER; i++)
                values[i] = (uint64_t)(i % sizes[s]);
            levels[level]->pass(&permutation, BEL_PERMUTATION_TOGETHER, values);
            if (level == 0) memcpy(first, values, sizeof first);
            assert_memory_equal(values, first, sizeof first);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_a_bijection),
        cmocka_unit_test(test_every_part_of_the_key_matters),
        cmocka_unit_test(test_small_orders_are_equally_likely),
        cmocka_unit_test(test_large_orders_look_random),
        cmocka_unit_test(test_elements_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
