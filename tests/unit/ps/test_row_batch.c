// Ids of a batch: distinct keys in order, the map back to positions, and sums whose bits depend
// only on the batch.
#include "base/alloc.h"
#include "base/rng.h"
#include "belfry/graph.h"
#include "ps/client/row_batch.h"
#include "support/bel_test.h"

enum { CAPACITY = 3000, MAX_WIDTH = 33 };

static void test_small(void **state)
{
    (void)state;
    bel_row_batch *batch;
    BEL_ASSERT_OK(bel_row_batch_create(8, &batch));
    static const int64_t ids[] = {7, -3, 7, INT64_MAX, 7, INT64_MIN};
    static const int64_t keys[] = {INT64_MIN, -3, 7, INT64_MAX};
    static const int32_t index[] = {2, 1, 2, 3, 2, 0};
    bel_row_batch_set(batch, ids, 6);
    assert_int_equal(bel_row_batch_count(batch), 4);
    assert_memory_equal(bel_row_batch_keys(batch), keys, sizeof keys);
    assert_memory_equal(bel_row_batch_index(batch), index, sizeof index);
    static const float gradients[] = {1, 2, 3, 4, 5, 6};
    float sums[4];
    bel_row_batch_sum(batch, gradients, 1, sums);
    assert_true(sums[0] == 6 && sums[1] == 2 && sums[2] == 9 && sums[3] == 4);

    bel_row_batch_set(batch, ids, 1); // must not affect the next batch
    assert_int_equal(bel_row_batch_count(batch), 1);
    assert_true(bel_row_batch_keys(batch)[0] == 7 && bel_row_batch_index(batch)[0] == 0);
    // Places without an id have no key, and their content is in no sum.
    static const int64_t some[] = {BEL_NO_ID, 5, BEL_NO_ID, -2, 5};
    static const int32_t places[] = {-1, 1, -1, 0, 1};
    bel_row_batch_set(batch, some, 5);
    assert_int_equal(bel_row_batch_count(batch), 2);
    assert_true(bel_row_batch_keys(batch)[0] == -2 && bel_row_batch_keys(batch)[1] == 5);
    assert_memory_equal(bel_row_batch_index(batch), places, sizeof places);
    bel_row_batch_sum(batch, gradients, 1, sums);
    assert_true(sums[0] == 4 && sums[1] == 7);
    bel_row_batch_set(batch, some, 1);
    assert_int_equal(bel_row_batch_count(batch), 0);
    bel_row_batch_set(batch, NULL, 0);
    assert_int_equal(bel_row_batch_count(batch), 0);
    bel_row_batch_sum(batch, NULL, 1, NULL);
    bel_row_batch_destroy(batch);
    bel_row_batch_destroy(NULL);
}

// The sum of key `key` by definition: one by one, in order of positions.
static void expected_sum(const int64_t *ids, int64_t n, int64_t key, const float *gradients,
                         int width, float *out)
{
    bool first = true;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] != key) continue;
        for (int j = 0; j < width; j++)
            out[j] = first ? gradients[i * width + j] : out[j] + gradients[i * width + j];
        first = false;
    }
}

static void check_batch(bel_row_batch *batch, int64_t n, int64_t distinct, int width)
{
    static int64_t ids[CAPACITY];
    static float gradients[CAPACITY * MAX_WIDTH], sums[CAPACITY * MAX_WIDTH];
    bel_rng_key key = bel_rng_key_make(2, "batch", (uint64_t)width);
    for (int64_t i = 0; i < n; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        ids[i] = (int64_t)(words[0] % distinct) * 1000003 - 500;
        for (int j = 0; j < width; j++) // these sums round, so their order shows
            gradients[i * width + j] = bel_rng_unit(words[j % 4]) * 1e3f / (float)(i % 7 + 1);
    }
    bel_row_batch_set(batch, ids, n);
    const int64_t *keys = bel_row_batch_keys(batch);
    int64_t count = bel_row_batch_count(batch);
    for (int64_t i = 0; i < n; i++)
        assert_true(keys[bel_row_batch_index(batch)[i]] == ids[i]);
    for (int64_t k = 1; k < count; k++)
        assert_true(keys[k - 1] < keys[k]);
    bel_row_batch_sum(batch, gradients, width, sums);
    for (int64_t k = 0; k < count; k++) {
        float expected[MAX_WIDTH];
        expected_sum(ids, n, keys[k], gradients, width, expected);
        assert_memory_equal(sums + k * width, expected, (size_t)width * sizeof expected[0]);
    }
}

static void test_sums(void **state)
{
    (void)state;
    bel_row_batch *batch;
    BEL_ASSERT_OK(bel_row_batch_create(CAPACITY, &batch));
    static const int widths[] = {1, 3, 8, 16, 32, MAX_WIDTH};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        check_batch(batch, CAPACITY, 40, widths[i]);
        check_batch(batch, CAPACITY / 2, CAPACITY, widths[i]);
        check_batch(batch, 9, 1, widths[i]);
    }
    bel_row_batch_destroy(batch);
}

static void test_too_large(void **state)
{
    (void)state;
    bel_row_batch *batch;
    BEL_ASSERT_FAILS(bel_row_batch_create(INT64_MAX, &batch), BEL_RESOURCE_EXHAUSTED,
                     "expected at most 2147483646 ids, got 9223372036854775807");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
