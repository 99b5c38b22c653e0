// Datasets made of datasets: the order of their records over epochs, maps inside, and errors for
// datasets that do not fit together. Each test reads the blocks in order and then separately, with
// the same result.
#include "unit/input/test_fixture.h"

enum { ROOM = 256 };

typedef struct pool {
    int64_t ids[8][ROOM];
} pool;

// Dataset d has `lengths[d]` records 100 · d, 100 · d + 1 …
static void make(pool *memory, const int64_t *lengths, int count, bel_dataset **out)
{
    for (int d = 0; d < count; d++)
        out[d] = numbered_from(memory->ids[d], 100 * d, lengths[d]);
}

static bel_dataset *batched(bel_dataset *dataset, int64_t size)
{
    bel_dataset_batch(dataset, size);
    return dataset;
}

static bool contains(const int64_t *ids, int64_t count, int64_t id)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

static void test_concatenate(void **state)
{
    (void)state;
    static pool memory;
    bel_dataset *parts[3];
    make(&memory, (const int64_t[]){3, 1, 2}, 3, parts);
    ASSERT_IDS(batched(bel_dataset_concatenate(parts, 3), 4), 0, 1, 2, 100, 200, 201);

    // Stages of the parts come first. Later stages see one dataset.
    make(&memory, (const int64_t[]){5, 4}, 2, parts);
    bel_dataset_skip(parts[0], 2);
    bel_dataset_take(parts[1], 2);
    bel_dataset_repeat(parts[1], 2);
    bel_dataset *all = bel_dataset_concatenate(parts, 2);
    bel_dataset_skip(all, 1);
    bel_dataset_repeat(all, 2);
    ASSERT_IDS(batched(all, 5), 3, 4, 100, 101, 100, 101, 3, 4, 100, 101, 100, 101);

    // A dataset named twice appears twice, and is freed once.
    bel_dataset *one = numbered(memory.ids[0], 2);
    ASSERT_IDS(batched(bel_dataset_concatenate((bel_dataset *const[]){one, one}, 2), 3), 0, 1, 0,
               1);
}

// Each epoch shuffles the shuffled parts again and leaves the others in order.
static void test_epochs_reach_datasets_inside(void **state)
{
    (void)state;
    static pool memory;
    bel_dataset *parts[2];
    make(&memory, (const int64_t[]){20, 3}, 2, parts);
    bel_dataset_shuffle(parts[0], 0, 7);
    bel_dataset *all = bel_dataset_concatenate(parts, 2);
    bel_dataset_repeat(all, 2);
    int64_t ids[ROOM];
    assert_int_equal(read_all_ids(batched(all, 7), ids, ROOM), 46);
    for (int64_t id = 0; id < 20; id++) {
        assert_true(contains(ids, 20, id));
        assert_true(contains(ids + 23, 20, id));
    }
    assert_memory_not_equal(ids, ids + 23, 20 * sizeof *ids);
    assert_memory_equal(ids + 20, memory.ids[1], 3 * sizeof *ids);
    assert_memory_equal(ids + 43, memory.ids[1], 3 * sizeof *ids);
}

static void test_interleave(void **state)
{
    (void)state;
    static pool memory;
    bel_dataset *parts[3];
    make(&memory, (const int64_t[]){4, 2, 3}, 3, parts);
    ASSERT_IDS(batched(bel_dataset_interleave(parts, 3, 2, 1), 4), 0, 100, 1, 101, 2, 3, 200, 201,
               202);
    make(&memory, (const int64_t[]){4, 2, 3}, 3, parts);
    ASSERT_IDS(batched(bel_dataset_interleave(parts, 3, 0, 2), 4), 0, 1, 100, 101, 200, 201, 2, 3,
               202);
    make(&memory, (const int64_t[]){4, 2, 3}, 3, parts); // more slots than datasets
    ASSERT_IDS(batched(bel_dataset_interleave(parts, 3, 50, 2), 9), 0, 1, 100, 101, 200, 201, 2, 3,
               202);
}

static bel_status *rename_id(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    int64_t id = *(const int64_t *)bel_record_get(record, "id")->data;
    bel_shape scalar = bel_shape_scalar();
    *(int64_t *)bel_record_add(record, "other", BEL_DTYPE_I64, &scalar) = id;
    return NULL;
}

static const char *const drop_id[] = {"id", NULL};

static void test_zip(void **state)
{
    (void)state;
    static pool memory;
    bel_dataset *parts[2];
    make(&memory, (const int64_t[]){5, 3}, 2, parts);
    bel_dataset_map(parts[1], rename_id, NULL, drop_id);
    bel_dataset_repeat(parts[1], BEL_REPEAT_FOREVER); // the shorter one decides
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(bel_dataset_zip(parts, 2), 3), &input));
    assert_int_equal(bel_input_epoch_records(input), 5);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 1, batch));
    assert_int_equal(batch->example_count, 2);
    assert_memory_equal(batch_field(input, batch, "id")->data, ((int64_t[]){3, 4}), 16);
    assert_memory_equal(batch_field(input, batch, "other")->data, ((int64_t[]){100, 101}), 16);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static bel_status *skip_odd(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    *out_skip = *(const int64_t *)bel_record_get(record, "id")->data % 2 != 0;
    return NULL;
}

// A record that a map of a part leaves out keeps its position: its batch is shorter by one.
static void test_skips_inside(void **state)
{
    (void)state;
    static pool memory;
    bel_dataset *parts[2];
    make(&memory, (const int64_t[]){4, 4}, 2, parts);
    bel_dataset_map(parts[0], skip_odd, NULL, NULL);
    ASSERT_IDS(batched(bel_dataset_concatenate(parts, 2), 3), 0, 2, 100, 101, 102, 103);
    make(&memory, (const int64_t[]){4, 4}, 2, parts);
    bel_dataset_map(parts[0], skip_odd, NULL, NULL);
    bel_dataset_map(parts[1], rename_id, NULL, drop_id);
    ASSERT_IDS(batched(bel_dataset_zip(parts, 2), 4), 0, 2);
}

static void test_enumerate(void **state)
{
    (void)state;
    static pool memory;
    // After repeat the numbers continue over epochs; before it each epoch starts again. Before
    // shuffle they follow the records.
    for (int behind = 0; behind <= 1; behind++) {
        bel_dataset *dataset = numbered_from(memory.ids[0], 50, 3);
        if (behind) bel_dataset_repeat(dataset, 2);
        bel_dataset_enumerate(dataset, "place", 10);
        if (!behind) bel_dataset_shuffle(dataset, 0, 3);
        if (!behind) bel_dataset_repeat(dataset, 2);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(batched(dataset, 6), &input));
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        assert_int_equal(batch->example_count, 6);
        const int64_t *ids = batch_field(input, batch, "id")->data;
        const int64_t *places = batch_field(input, batch, "place")->data;
        for (int i = 0; i < 6; i++)
            assert_int_equal(places[i], behind ? 10 + i : ids[i] - 40);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    bel_dataset *dataset = numbered(memory.ids[0], 3);
    bel_dataset_enumerate(dataset, "id", 0);
    BEL_ASSERT_FAILS(open_failing(batched(dataset, 2)), BEL_INVALID_ARGUMENT,
                     "enumerate: records have a field \"id\" already");
    dataset = numbered(memory.ids[0], 3);
    bel_dataset_enumerate(dataset, NULL, 0);
    BEL_ASSERT_FAILS(open_failing(batched(dataset, 2)), BEL_INVALID_ARGUMENT, "enumerate: ");
}

// sample with each record once per epoch: no record twice, each dataset in order. The first draws
// follow the weights.
static void test_sample_each_once(void **state)
{
    (void)state;
    static pool memory;
    static const double weights[] = {3, 1};
    bel_dataset *parts[2];
    make(&memory, (const int64_t[]){90, 90}, 2, parts);
    bel_dataset *sampled = bel_dataset_sample(parts, weights, 2, 0, 5);
    int64_t ids[ROOM], next[2] = {0, 100}, early = 0;
    assert_int_equal(read_all_ids(batched(sampled, 13), ids, ROOM), 180);
    for (int i = 0; i < 180; i++) {
        int from = ids[i] >= 100;
        assert_int_equal(ids[i], next[from]++);
        if (i < 80) early += from == 0;
    }
    assert_true(early > 50 && early < 70); // 60 expected, sigma 3.9
}

static bel_dataset *sampled_with(pool *memory, int64_t record_count, uint64_t seed)
{
    static const double weights[] = {1, 1};
    bel_dataset *parts[2];
    make(memory, (const int64_t[]){3, 40}, 2, parts);
    bel_dataset_shuffle(parts[0], 0, 9);
    bel_dataset *sampled = bel_dataset_sample(parts, weights, 2, record_count, seed);
    bel_dataset_repeat(sampled, 2);
    return batched(sampled, 11);
}

// With a count a small dataset is repeated, in another order each time, and every epoch draws
// again.
static void test_sample_a_count(void **state)
{
    (void)state;
    static pool memory;
    int64_t ids[ROOM], again[ROOM], small[ROOM];
    int small_count = 0, orders = 0;
    assert_int_equal(read_all_ids(sampled_with(&memory, 60, 1), ids, ROOM), 120);
    for (int i = 0; i < 60; i++)
        if (ids[i] < 100) small[small_count++] = ids[i];
    assert_true(small_count > 18 && small_count < 42); // 30 expected, sigma 3.9
    for (int pass = 0; pass < small_count / 3; pass++) {
        for (int64_t id = 0; id < 3; id++)
            assert_true(contains(small + 3 * pass, 3, id));
        orders += pass > 0 && memcmp(small, small + 3 * pass, 3 * sizeof *small) != 0;
    }
    assert_true(orders > 0);
    assert_memory_not_equal(ids, ids + 60, 60 * sizeof *ids);
    read_all_ids(sampled_with(&memory, 60, 1), again, ROOM);
    assert_memory_equal(ids, again, 120 * sizeof *ids);
    read_all_ids(sampled_with(&memory, 60, 2), again, ROOM);
    assert_memory_not_equal(ids, again, 120 * sizeof *ids);
}

static uint64_t fingerprint_of(bel_dataset *dataset)
{
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(dataset, 4), &input));
    uint64_t fingerprint = bel_input_fingerprint(input);
    bel_input_destroy(input);
    return fingerprint;
}

// The fingerprint changes with everything that changes the order, and with nothing else.
static void test_fingerprints(void **state)
{
    (void)state;
    enum { VARIANTS = 8 };
    static pool memory;
    uint64_t seen[VARIANTS];
    for (int v = 0; v < VARIANTS; v++) {
        for (int again = 0; again < 2; again++) {
            bel_dataset *parts[2], *made = NULL;
            make(&memory, (const int64_t[]){4, v == 7 ? 5 : 4}, 2, parts);
            if (v == 0 || v == 7) made = bel_dataset_concatenate(parts, 2);
            if (v == 1) made = bel_dataset_interleave(parts, 2, 2, 1);
            if (v == 2) made = bel_dataset_interleave(parts, 2, 2, 2);
            if (v == 3) made = bel_dataset_interleave(parts, 2, 1, 2);
            if (v == 4) made = bel_dataset_sample(parts, (double[]){1, 1}, 2, 0, 1);
            if (v == 5) made = bel_dataset_sample(parts, (double[]){1, 1}, 2, 0, 2);
            if (v == 6) made = bel_dataset_sample(parts, (double[]){1, 2}, 2, 0, 1);
            uint64_t got = fingerprint_of(made);
            if (again) assert_int_equal(got, seen[v]);
            seen[v] = got;
        }
        for (int other = 0; other < v; other++)
            assert_int_not_equal(seen[v], seen[other]);
    }
}

static bel_dataset *floats(float *data, int64_t count, int64_t width)
{
    bel_memory_field field = {"id", {BEL_DTYPE_F32, BEL_SHAPE(count, width), data}};
    return bel_dataset_from_memory(&field, 1);
}

// Datasets of different widths fit together if a padded batch follows.
static void test_other_shapes(void **state)
{
    (void)state;
    float data[4] = {1, 2, 3, 4};
    bel_dataset *parts[] = {floats(data, 4, 1), floats(data, 2, 2)};
    bel_dataset *all = bel_dataset_concatenate(parts, 2);
    bel_dataset_padded_batch(all, 6, NULL, 0);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(all, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    static const float expected[] = {1, 0, 2, 0, 3, 0, 4, 0, 1, 2, 3, 4};
    assert_memory_equal(batch->fields[0].data, expected, sizeof expected);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static bool keep_all(void *user, const bel_record *record)
{
    (void)user;
    (void)record;
    return true;
}

static void test_errors(void **state)
{
    (void)state;
    static pool memory;
    float data[4] = {0};
    bel_dataset *parts[2];
#define FAILS(made, part)                                                                          \
    BEL_ASSERT_FAILS(open_failing(batched(made, 2)), BEL_INVALID_ARGUMENT, part)
    FAILS(bel_dataset_concatenate(NULL, 2), "concatenate: expected 1..32767 datasets, got 0");
    parts[0] = numbered(memory.ids[0], 2);
    FAILS(bel_dataset_zip((bel_dataset *const[]){parts[0], NULL}, 2), "zip: dataset 1 is NULL");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    FAILS(bel_dataset_zip(parts, 2), "zip: datasets 0 and 1 both have a field \"id\"");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    FAILS(bel_dataset_interleave(parts, 2, 2, 0), "interleave: expected a cycle_length");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    FAILS(bel_dataset_sample(parts, (double[]){1, 0}, 2, 0, 1), "got 0 for dataset 1");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    FAILS(bel_dataset_sample(parts, (double[]){1, 1}, 2, -1, 1), "record_count");
    make(&memory, (const int64_t[]){2, 0}, 2, parts);
    FAILS(bel_dataset_sample(parts, (double[]){1, 1}, 2, 5, 1), "expected records in dataset 1");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    bel_dataset_batch(parts[1], 2);
    FAILS(bel_dataset_concatenate(parts, 2), "dataset 1 has a batch stage");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    bel_dataset_repeat(parts[0], BEL_REPEAT_FOREVER);
    FAILS(bel_dataset_concatenate(parts, 2), "dataset 0 is repeated forever");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    bel_dataset_take(parts[0], -1);
    FAILS(bel_dataset_concatenate(parts, 2), "concatenate: dataset 0: take: ");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    bel_dataset_map(parts[1], rename_id, NULL, NULL);
    FAILS(bel_dataset_concatenate(parts, 2), "expected 1 fields in dataset 1");
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    bel_dataset_map(parts[1], rename_id, NULL, drop_id);
    FAILS(bel_dataset_concatenate(parts, 2), "expected a field \"id\" in dataset 1");
    parts[0] = numbered(memory.ids[0], 2);
    parts[1] = floats(data, 2, 2);
    FAILS(bel_dataset_concatenate(parts, 2), "expected i64 of 0 dimensions in dataset 1");
    // A filter is evaluated once, but a shuffle inside gives other records in each epoch.
    make(&memory, (const int64_t[]){2, 2}, 2, parts);
    bel_dataset_shuffle(parts[0], 0, 1);
    bel_dataset *all = bel_dataset_concatenate(parts, 2);
    bel_dataset_filter(all, keep_all, NULL);
    FAILS(all, "expected filter before shuffle and repeat");
#undef FAILS
}

// Batch fields stay labels, at whichever stage the labels were named.
static void test_labels_stay(void **state)
{
    (void)state;
    static const char *const name = "id";
    for (int kind = 0; kind < 4; kind++) {
        int64_t memory[4];
        bel_dataset *dataset = numbered(memory, 4);
        bel_dataset_labels(dataset, &name, 1);
        if (kind == 0) bel_dataset_enumerate(dataset, "place", 0);
        if (kind == 1) bel_dataset_window(dataset, 2, 0, 1, true);
        if (kind == 2) bel_dataset_cache(dataset, NULL, 0);
        if (kind == 3) dataset = bel_dataset_concatenate(&dataset, 1);
        bel_dataset_batch(dataset, 2);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        assert_true(bel_input_field_is_label(input, bel_input_find_field(input, name)));
        if (kind == 0)
            assert_false(bel_input_field_is_label(input, bel_input_find_field(input, "place")));
        bel_input_destroy(input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concatenate),
        cmocka_unit_test(test_epochs_reach_datasets_inside),
        cmocka_unit_test(test_interleave),
        cmocka_unit_test(test_zip),
        cmocka_unit_test(test_skips_inside),
        cmocka_unit_test(test_enumerate),
        cmocka_unit_test(test_sample_each_once),
        cmocka_unit_test(test_sample_a_count),
        cmocka_unit_test(test_fingerprints),
        cmocka_unit_test(test_labels_stay),
        cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
