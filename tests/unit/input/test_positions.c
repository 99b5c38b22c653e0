// Positions: reading any block separately equals reading everything, and each epoch holds each
// record once. The stream equals that of a naive reader that builds every stage's output as a list.
#include "base/input_segment.h"
#include "input/order/permutation.h"
#include "unit/input/test_fixture.h"

// --- The naive reader ----------------------------------------------------------------------------

typedef struct list {
    int64_t *items;
    size_t count, capacity;
} list;

static void push(list *to, int64_t number)
{
    to->items = bel_xgrow(to->items, &to->capacity, to->count + 1, sizeof *to->items);
    to->items[to->count++] = number;
}

static list count_up(int64_t count)
{
    list numbers = {0};
    for (int64_t i = 0; i < count; i++)
        push(&numbers, i);
    return numbers;
}

// Appends one epoch of `from`, shuffled in windows.
static void append_shuffled(list *to, const list *from, int64_t window_size, uint64_t seed,
                            int64_t epoch)
{
    int64_t count = (int64_t)from->count;
    if (window_size == 0) window_size = count;
    for (int64_t start = 0; start < count; start += window_size) {
        int64_t size = count - start < window_size ? count - start : window_size;
        bel_permutation permutation;
        bel_permutation_init(&permutation, size, seed, 0, epoch, start / window_size);
        for (int64_t i = 0; i < size; i++)
            push(to, from->items[start + bel_permutation_at(&permutation, i)]);
    }
}

// --- Comparison ----------------------------------------------------------------------------------

// Reads all blocks in order, then each separately in another order into another batch.
static void assert_stream(const bel_input *input, const list *expected)
{
    int64_t batch_size = bel_input_batch_size(input), count = (int64_t)expected->count;
    int64_t blocks = bel_input_block_count(input, true);
    assert_int_equal(blocks, (count + batch_size - 1) / batch_size);
    assert_int_equal(bel_input_block_count(input, false), count / batch_size);
    bel_batch *batch = bel_batch_create(input);
    int64_t *ids = bel_xcalloc((size_t)batch_size, sizeof *ids);
    int64_t place = 0;
    for (int64_t block = 0; block < blocks; block++) {
        int64_t got = read_ids(input, batch, block, ids);
        assert_int_equal(got, count - place < batch_size ? count - place : batch_size);
        assert_memory_equal(ids, expected->items + place, (size_t)got * sizeof *ids);
        place += got;
    }
    assert_int_equal(place, count);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t block = (i * 7 + 3) % blocks;
        bel_batch *fresh = bel_batch_create(input);
        int64_t got = read_ids(input, fresh, block, ids);
        assert_memory_equal(ids, expected->items + block * batch_size, (size_t)got * sizeof *ids);
        bel_batch_destroy(fresh);
    }
    BEL_ASSERT_FAILS(bel_input_read(input, blocks, batch), BEL_OUT_OF_RANGE, "block");
    BEL_ASSERT_FAILS(bel_input_read(input, -1, batch), BEL_OUT_OF_RANGE, "block");
    bel_free(ids);
    bel_batch_destroy(batch);
}

// Checks the stream that starts at record `origin`, as after a change of the batch size.
static void assert_origin(bel_input *input, const list *expected, int64_t origin)
{
    int64_t batch_size = bel_input_batch_size(input);
    if (origin >= batch_size || (size_t)origin > expected->count) return;
    const list rest = {.items = expected->items + origin,
                       .count = expected->count - (size_t)origin};
    bel_input_set_origin(input, origin);
    assert_stream(input, &rest);
}

static void assert_dataset(bel_dataset *dataset, list *expected)
{
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    assert_stream(input, expected);
    for (int64_t origin = 1; origin < 4; origin++)
        assert_origin(input, expected, origin);
    bel_input_destroy(input);
    bel_free(expected->items);
}

// --- Tests ---------------------------------------------------------------------------------------

static void test_shuffled_and_repeated(void **state)
{
    (void)state;
    static const int64_t windows[] = {0, 1, 7, 100, 1000};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        int64_t ids[100];
        bel_dataset *dataset = numbered(ids, 100);
        bel_dataset_shuffle(dataset, windows[i], 42);
        bel_dataset_repeat(dataset, 3);
        bel_dataset_batch(dataset, 7); // 7 does not divide 100: blocks span epochs
        list source = count_up(100), expected = {0};
        for (int64_t epoch = 0; epoch < 3; epoch++)
            append_shuffled(&expected, &source, windows[i], 42, epoch);
        bel_free(source.items);
        assert_dataset(dataset, &expected);
    }
}

static bool is_not_multiple_of_three(void *user, const bel_record *record)
{
    ++*(int *)user;
    const int64_t *id = bel_record_get(record, "id")->data;
    return *id % 3 != 0;
}

static void test_all_stages_together(void **state)
{
    (void)state;
    int64_t ids[101];
    int asked = 0;
    bel_dataset *dataset = numbered(ids, 101);
    bel_dataset_skip(dataset, 5);
    bel_dataset_shard(dataset, 2, 1);
    bel_dataset_filter(dataset, is_not_multiple_of_three, &asked);
    bel_dataset_take(dataset, 20);
    bel_dataset_shuffle(dataset, 6, 9);
    bel_dataset_repeat(dataset, 4);
    bel_dataset_skip(dataset, 3);
    bel_dataset_take(dataset, 50);
    bel_dataset_batch(dataset, 8);

    list kept = {0}, stream = {0}, expected = {0};
    for (int64_t i = 5; i < 101; i++) {
        if ((i - 5) % 2 == 1 && i % 3 != 0 && kept.count < 20) push(&kept, i);
    }
    for (int64_t epoch = 0; epoch < 4; epoch++)
        append_shuffled(&stream, &kept, 6, 9, epoch);
    for (size_t i = 3; i < 53; i++)
        push(&expected, stream.items[i]);
    bel_free(kept.items);
    bel_free(stream.items);
    assert_dataset(dataset, &expected);
    assert_int_equal(asked, 48); // once per record that reaches the filter
}

static void test_shuffle_behind_repeat_mixes_epochs(void **state)
{
    (void)state;
    int64_t ids[10];
    bel_dataset *dataset = numbered(ids, 10);
    bel_dataset_repeat(dataset, 3);
    bel_dataset_shuffle(dataset, 20, 5);
    bel_dataset_batch(dataset, 4);
    list stream = {0}, expected = {0};
    for (int64_t i = 0; i < 30; i++)
        push(&stream, i % 10);
    append_shuffled(&expected, &stream, 20, 5, 0);
    bel_free(stream.items);
    assert_dataset(dataset, &expected);
}

static void test_nested_repeats_count_epochs_on(void **state)
{
    (void)state;
    int64_t ids[11];
    bel_dataset *dataset = numbered(ids, 11);
    bel_dataset_shuffle(dataset, 0, 3);
    bel_dataset_repeat(dataset, 2);
    bel_dataset_repeat(dataset, 2);
    bel_dataset_batch(dataset, 5);
    list source = count_up(11), expected = {0};
    for (int64_t epoch = 0; epoch < 4; epoch++)
        append_shuffled(&expected, &source, 0, 3, epoch);
    bel_free(source.items);
    assert_dataset(dataset, &expected);
}

// Distant epochs cost the same. Each holds each record once, in another order.
static void test_each_epoch_is_exact_when_repeated_forever(void **state)
{
    (void)state;
    enum { COUNT = 96, BATCH = 32 };
    int64_t ids[COUNT], order[2][COUNT];
    bel_dataset *dataset = numbered(ids, COUNT);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_repeat(dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(dataset, BATCH);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    assert_true(bel_input_block_count(input, true) == INT64_MAX);
    assert_true(bel_input_block_count(input, false) == INT64_MAX);
    assert_int_equal(bel_input_epoch_records(input), COUNT);
    bel_batch *batch = bel_batch_create(input);
    static const int64_t epochs[] = {0, 1, 2, 1000000000000};
    for (int i = 0; i < 4; i++) {
        int seen[COUNT] = {0};
        int64_t *now = order[i % 2];
        for (int64_t j = 0; j < COUNT / BATCH; j++)
            read_ids(input, batch, epochs[i] * (COUNT / BATCH) + j, now + j * BATCH);
        for (int j = 0; j < COUNT; j++)
            assert_int_equal(seen[now[j]]++, 0);
        if (i > 0) assert_memory_not_equal(order[0], order[1], sizeof order[0]);
    }
    BEL_ASSERT_FAILS(bel_input_read(input, INT64_MAX, batch), BEL_OUT_OF_RANGE, "block");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_two_shuffles_with_one_seed_differ(void **state)
{
    (void)state;
    int64_t ids[50], once[50], twice[50];
    for (int shuffles = 1; shuffles <= 2; shuffles++) {
        bel_dataset *dataset = numbered(ids, 50);
        bel_dataset_shuffle(dataset, 0, 4);
        if (shuffles == 2) bel_dataset_shuffle(dataset, 0, 4);
        bel_dataset_batch(dataset, 50);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        bel_batch *batch = bel_batch_create(input);
        read_ids(input, batch, 0, shuffles == 1 ? once : twice);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    int64_t applied_twice[50];
    for (int i = 0; i < 50; i++)
        applied_twice[i] = once[once[i]];
    assert_memory_not_equal(once, twice, sizeof once);
    assert_memory_not_equal(applied_twice, twice, sizeof twice);
}

static void test_an_empty_stream_has_no_blocks(void **state)
{
    (void)state;
    int64_t ids[3];
    bel_dataset *dataset = numbered(ids, 3);
    bel_dataset_skip(dataset, 3);
    bel_dataset_batch(dataset, 2);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    assert_int_equal(bel_input_block_count(input, true), 0);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), BEL_OUT_OF_RANGE, "block");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static bool keep_none(void *user, const bel_record *record)
{
    (void)user;
    (void)record;
    return false;
}

static bel_status *identity(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)record;
    (void)out_skip;
    return NULL;
}

typedef void add_stages(bel_dataset *dataset);

static void no_batch(bel_dataset *dataset)
{
    bel_dataset_take(dataset, 2);
}

static void repeat_nothing(bel_dataset *dataset)
{
    bel_dataset_filter(dataset, keep_none, NULL);
    bel_dataset_repeat(dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(dataset, 2);
}

static void shuffle_behind_map(bel_dataset *dataset)
{
    bel_dataset_map(dataset, identity, NULL, NULL);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_batch(dataset, 2);
}

static void map_behind_batch(bel_dataset *dataset)
{
    bel_dataset_batch(dataset, 2);
    bel_dataset_map(dataset, identity, NULL, NULL);
}

static void repeat_behind_batch(bel_dataset *dataset)
{
    bel_dataset_batch(dataset, 2);
    bel_dataset_repeat(dataset, 2);
}

static void two_batches(bel_dataset *dataset)
{
    bel_dataset_batch(dataset, 2);
    bel_dataset_batch(dataset, 2);
}

static void filter_behind_repeat(bel_dataset *dataset)
{
    bel_dataset_repeat(dataset, 2);
    bel_dataset_filter(dataset, keep_none, NULL);
    bel_dataset_batch(dataset, 2);
}

static void filter_behind_shuffle(bel_dataset *dataset)
{
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_filter(dataset, keep_none, NULL);
    bel_dataset_batch(dataset, 2);
}

static void endless_window(bel_dataset *dataset)
{
    bel_dataset_repeat(dataset, BEL_REPEAT_FOREVER);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_batch(dataset, 2);
}

static void wrong_shard(bel_dataset *dataset)
{
    bel_dataset_shard(dataset, 4, 4);
    bel_dataset_batch(dataset, 2);
}

static void repeat_zero_times(bel_dataset *dataset)
{
    bel_dataset_repeat(dataset, 0);
    bel_dataset_batch(dataset, 2);
}

static void empty_batches(bel_dataset *dataset)
{
    bel_dataset_batch(dataset, 0);
}

static void test_impossible_pipelines_are_named(void **state)
{
    (void)state;
    static const struct {
        add_stages *add;
        const char *part;
    } cases[] = {
        {no_batch, "batch"},
        {repeat_nothing, "repeat"},
        {shuffle_behind_map, "shuffle"},
        {map_behind_batch, "map"},
        {repeat_behind_batch, "repeat"},
        {two_batches, "batch"},
        {filter_behind_repeat, "filter"},
        {filter_behind_shuffle, "filter"},
        {endless_window, "shuffle"},
        {wrong_shard, "shard"},
        {repeat_zero_times, "repeat"},
        {empty_batches, "batch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ids[9];
        bel_dataset *dataset = numbered(ids, 9);
        cases[i].add(dataset);
        BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, cases[i].part);
    }
}

static void test_the_first_error_sticks(void **state)
{
    (void)state;
    int64_t ids[9];
    bel_dataset *dataset = numbered(ids, 9);
    bel_dataset_shard(dataset, 0, 0);
    bel_dataset_repeat(dataset, 0);
    bel_dataset_batch(dataset, 2);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "shard");
    BEL_ASSERT_FAILS(open_failing(bel_dataset_from_memory(NULL, 0)), BEL_INVALID_ARGUMENT, "field");
}

static void test_a_repeat_may_follow_map(void **state)
{
    (void)state;
    int64_t ids[5];
    bel_dataset *dataset = numbered(ids, 5);
    bel_dataset_map(dataset, identity, NULL, NULL);
    bel_dataset_repeat(dataset, 2);
    bel_dataset_batch(dataset, 4);
    list expected = {0};
    for (int64_t i = 0; i < 10; i++)
        push(&expected, i % 5);
    assert_dataset(dataset, &expected);
}

static uint64_t fingerprint(int64_t count, uint64_t seed, int64_t take, int64_t batch_size)
{
    int64_t ids[16];
    bel_dataset *dataset = numbered(ids, count);
    bel_dataset_shuffle(dataset, 0, seed);
    bel_dataset_take(dataset, take);
    bel_dataset_batch(dataset, batch_size);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    uint64_t value = bel_input_fingerprint(input);
    bel_input_destroy(input);
    return value;
}

static void test_the_fingerprint_is_the_description(void **state)
{
    (void)state;
    uint64_t value = fingerprint(9, 1, 8, 4);
    assert_true(value == fingerprint(9, 1, 8, 4));
    assert_true(value != fingerprint(10, 1, 8, 4));
    assert_true(value != fingerprint(9, 2, 8, 4));
    assert_true(value != fingerprint(9, 1, 7, 4));
    assert_true(value != fingerprint(9, 1, 8, 5));
}

static void test_a_changed_batch_size_continues_at_its_record(void **state)
{
    (void)state;
    // 2 replicas from block 7 on, 10 records each; block 0 began with record 3.
    const bel_input_segment ten = {
        .first_step = 20, .first_block = 7, .replica_count = 2, .batch_size = 10, .origin = 3};
    bel_input_segment next;
    int64_t records;
    assert_true(bel_input_segment_resize(&ten, 24, 25, &next, &records));
    assert_int_equal(records, 3 + (7 + 4 * 2) * 10);
    assert_int_equal(next.first_step, 24);
    assert_int_equal(next.origin + next.first_block * next.batch_size, records);
    assert_int_equal(next.batch_size, 25);
    assert_int_equal(next.replica_count, 2);
    const bel_input_segment far = {.first_block = INT64_MAX / 2, .batch_size = 10};
    assert_false(bel_input_segment_resize(&far, 0, 25, &next, &records));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffled_and_repeated),
        cmocka_unit_test(test_all_stages_together),
        cmocka_unit_test(test_shuffle_behind_repeat_mixes_epochs),
        cmocka_unit_test(test_nested_repeats_count_epochs_on),
        cmocka_unit_test(test_each_epoch_is_exact_when_repeated_forever),
        cmocka_unit_test(test_two_shuffles_with_one_seed_differ),
        cmocka_unit_test(test_an_empty_stream_has_no_blocks),
        cmocka_unit_test(test_impossible_pipelines_are_named),
        cmocka_unit_test(test_the_first_error_sticks),
        cmocka_unit_test(test_a_repeat_may_follow_map),
        cmocka_unit_test(test_the_fingerprint_is_the_description),
        cmocka_unit_test(test_a_changed_batch_size_continues_at_its_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
