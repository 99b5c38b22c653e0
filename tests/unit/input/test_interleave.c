// Order of interleave against a naive reader that visits the slots one record at a time, for many
// lengths, cycles and blocks.
#include "input/order/interleave.h"
#include "unit/input/test_fixture.h"

enum { MOST_DATASETS = 7, MOST_RECORDS = 64 };

typedef struct order {
    bel_interleave_part items[MOST_RECORDS * MOST_DATASETS];
    int count;
} order;

// tf.data's rule, literally: `left` counts down, and -1 marks an empty slot.
static void read_naively(const int64_t *lengths, int count, int cycle, int64_t block, order *out)
{
    int slots[MOST_DATASETS], next = 0, open = 0, slot = 0;
    int64_t taken[MOST_DATASETS] = {0}, in_block = 0;
    for (int s = 0; s < cycle; s++)
        slots[s] = -1;
    out->count = 0;
    while (next < count || open > 0) {
        bool turn_over = true;
        int dataset = slots[slot];
        if (dataset >= 0 && taken[dataset] < lengths[dataset]) {
            out->items[out->count++] = (bel_interleave_part){dataset, taken[dataset]++};
            turn_over = ++in_block == block;
        } else if (dataset >= 0) {
            slots[slot] = -1;
            open--;
        } else if (next < count) {
            slots[slot] = next++;
            open++;
            turn_over = false;
        }
        if (!turn_over) continue;
        in_block = 0;
        slot = (slot + 1) % cycle;
    }
}

static void assert_order(const int64_t *lengths, int count, int cycle, int64_t block)
{
    static order expected;
    read_naively(lengths, count, cycle, block, &expected);
    bel_interleave got;
    bel_interleave_init(&got, lengths, count, cycle, block);
    assert_int_equal(got.count, expected.count);
    for (int i = 0; i < expected.count; i++) {
        bel_interleave_part part = bel_interleave_at(&got, i);
        assert_int_equal(part.dataset, expected.items[i].dataset);
        assert_int_equal(part.start, expected.items[i].start);
    }
    bel_interleave_deinit(&got);
}

static void test_every_cycle_and_block(void **state)
{
    (void)state;
    static const int64_t cases[][MOST_DATASETS] = {
        {3, 3, 3},
        {10, 1, 4, 0, 7},
        {0, 0, 5, 0},
        {8, 4, 8, 4, 8, 4},
        {64, 1, 1, 1},
        {1, 2, 3, 4, 5, 6, 7},
        {0},
        {63, 64, 5, 32},
        {6, 6, 6, 6, 6, 6, 6},
    };
    static const int counts[] = {3, 5, 4, 6, 4, 7, 1, 4, 7};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int cycle = 1; cycle <= counts[c]; cycle++)
            for (int64_t block = 1; block <= 9; block++)
                assert_order(cases[c], counts[c], cycle, block);
}

// The example of tf.data's documentation: cycle_length 2 and block_length 4 over 1, 2, 3, 4, 5,
// each repeated 6 times.
static void test_known_example(void **state)
{
    (void)state;
    static const int64_t lengths[] = {6, 6, 6, 6, 6};
    static const int expected[] = {1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3,
                                   3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5};
    bel_interleave got;
    bel_interleave_init(&got, lengths, 5, 2, 4);
    assert_int_equal(got.count, 30);
    for (int i = 0; i < 30; i++)
        assert_int_equal(bel_interleave_at(&got, i).dataset + 1, expected[i]);
    bel_interleave_deinit(&got);
}

// The table's size follows the number of datasets, not of records.
static void test_size_of_the_table(void **state)
{
    (void)state;
    static const int64_t lengths[] = {INT64_C(1) << 40, INT64_C(1) << 41, 5};
    bel_interleave got;
    bel_interleave_init(&got, lengths, 3, 3, 2);
    assert_int_equal(got.count, lengths[0] + lengths[1] + 5);
    assert_true(got.stretch_count < 32);
    bel_interleave_part last = bel_interleave_at(&got, got.count - 1);
    assert_int_equal(last.dataset, 1);
    assert_int_equal(last.start, lengths[1] - 1);
    bel_interleave_deinit(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cycle_and_block),
        cmocka_unit_test(test_known_example),
        cmocka_unit_test(test_size_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
