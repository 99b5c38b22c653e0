// Reading blocks: the content is the same straight into rows, through a record or ahead of time.
// The memory of a batch is reused. Errors for input that cannot be read ahead.
#include "unit/input/test_fixture.h"

enum { RECORDS = 20, WIDTH = 3, BATCH = 6 };

typedef struct sample {
    float x[RECORDS * WIDTH];
    int64_t label[RECORDS];
} sample;

static bel_dataset *sample_dataset(sample *data)
{
    for (int i = 0; i < RECORDS; i++) {
        for (int j = 0; j < WIDTH; j++)
            data->x[i * WIDTH + j] = (float)(10 * i + j);
        data->label[i] = i % 4;
    }
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, WIDTH), data->x}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), data->label}},
    };
    bel_dataset *dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_shuffle(dataset, 0, 11);
    return dataset;
}

static bel_status *identity(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)record;
    (void)out_skip;
    return NULL;
}

typedef enum way { WAY_ROWS, WAY_RECORDS, WAY_PADDED } way;

static bel_input *open_sample(sample *data, way how)
{
    bel_dataset *dataset = sample_dataset(data);
    if (how == WAY_RECORDS) bel_dataset_map(dataset, identity, NULL, NULL);
    if (how == WAY_PADDED) {
        bel_dataset_padded_batch(dataset, BATCH, NULL, 0);
    } else {
        bel_dataset_batch(dataset, BATCH);
    }
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    return input;
}

static void assert_same_batch(const bel_batch *a, const bel_batch *b)
{
    assert_int_equal(a->example_count, b->example_count);
    assert_int_equal(a->field_count, b->field_count);
    for (int i = 0; i < a->field_count; i++) {
        assert_int_equal(a->fields[i].dtype, b->fields[i].dtype);
        assert_true(bel_shape_equal(&a->fields[i].shape, &b->fields[i].shape));
        assert_memory_equal(a->fields[i].data, b->fields[i].data, bel_tensor_bytes(&a->fields[i]));
    }
}

static void test_every_way_gives_the_same_batches(void **state)
{
    (void)state;
    sample data;
    bel_input *inputs[3];
    bel_batch *batches[3];
    for (int how = WAY_ROWS; how <= WAY_PADDED; how++) {
        inputs[how] = open_sample(&data, (way)how);
        batches[how] = bel_batch_create(inputs[how]);
    }
    int64_t blocks = bel_input_block_count(inputs[WAY_ROWS], true);
    assert_int_equal(blocks, 4); // the last holds 2 records
    for (int64_t block = 0; block < blocks; block++) {
        for (int how = WAY_ROWS; how <= WAY_PADDED; how++)
            BEL_ASSERT_OK(bel_input_read(inputs[how], block, batches[how]));
        assert_same_batch(batches[WAY_ROWS], batches[WAY_RECORDS]);
        assert_same_batch(batches[WAY_ROWS], batches[WAY_PADDED]);
        // x and the label belong to the same record.
        const float *x = batch_field(inputs[WAY_ROWS], batches[WAY_ROWS], "x")->data;
        const int64_t *label = batch_field(inputs[WAY_ROWS], batches[WAY_ROWS], "label")->data;
        for (int64_t i = 0; i < batches[WAY_ROWS]->example_count; i++)
            assert_int_equal((int64_t)x[i * WIDTH] / 10 % 4, label[i]);
    }
    for (int how = WAY_ROWS; how <= WAY_PADDED; how++) {
        bel_batch_destroy(batches[how]);
        bel_input_destroy(inputs[how]);
    }
}

static void test_memory_of_a_batch_is_reused(void **state)
{
    (void)state;
    sample data;
    bel_input *input = open_sample(&data, WAY_ROWS);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 3, batch)); // a short one first
    const void *x = batch_field(input, batch, "x")->data;
    for (int64_t block = 0; block < 4; block++) {
        BEL_ASSERT_OK(bel_input_read(input, block, batch));
        assert_ptr_equal(batch_field(input, batch, "x")->data, x);
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

// A batch size far beyond the data costs only the memory of the data.
static void test_one_batch_of_everything(void **state)
{
    (void)state;
    sample data;
    for (int padded = 0; padded <= 1; padded++) {
        bel_dataset *dataset = sample_dataset(&data);
        if (padded) {
            bel_dataset_padded_batch(dataset, INT32_MAX, NULL, 0);
        } else {
            bel_dataset_batch(dataset, INT32_MAX);
        }
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        assert_int_equal(bel_input_block_count(input, true), 1);
        assert_int_equal(bel_input_block_count(input, false), 0);
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        assert_int_equal(batch->example_count, RECORDS);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
}

static int64_t forwards(void *context, int64_t index)
{
    ++*(int64_t *)context;
    return index < 4 ? index : -1;
}

// Depth 0: blocks are read only in bel_prefetch_take.
static void test_without_reading_ahead(void **state)
{
    (void)state;
    sample data;
    bel_dataset *dataset = sample_dataset(&data);
    bel_dataset_batch(dataset, BATCH);
    bel_dataset_prefetch(dataset, 0, 0);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *expected = bel_batch_create(input);
    bel_prefetch *prefetch;
    const bel_batch *batch;
    int64_t asked = 0;
    BEL_ASSERT_OK(bel_prefetch_start(input, forwards, &asked, 1, NULL, 1, &prefetch));
    for (int64_t block = 0; block < 4; block++) {
        assert_int_equal(asked, block);
        BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        assert_int_equal(batch->block, block);
        BEL_ASSERT_OK(bel_input_read(input, block, expected));
        assert_same_batch(batch, expected);
    }
    for (int i = 0; i < 2; i++) { // the end repeats
        BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        assert_null(batch);
    }
    assert_int_equal(asked, 5); // the order is not asked beyond the end
    bel_prefetch_stop(prefetch);
    bel_batch_destroy(expected);
    bel_input_destroy(input);
}

static void test_impossible_prefetch(void **state)
{
    (void)state;
    static const struct {
        int depth, threads;
    } cases[] = {{-2, 1}, {1, 0}, {1, -2}, {1 << 20, 1}, {1, 1 << 20}};
    sample data;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_dataset *dataset = sample_dataset(&data);
        bel_dataset_batch(dataset, BATCH);
        bel_dataset_prefetch(dataset, cases[i].depth, cases[i].threads);
        BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "prefetch");
    }
    bel_dataset *dataset = sample_dataset(&data);
    bel_dataset_prefetch(dataset, 1, 1);
    bel_dataset_batch(dataset, BATCH);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "prefetch after batch");
}

// A dataset may be opened more than once, and an input may outlive it.
static void test_inputs_do_not_need_the_dataset(void **state)
{
    (void)state;
    sample data;
    bel_dataset *dataset = sample_dataset(&data);
    bel_dataset_batch(dataset, BATCH);
    bel_input *first, *second;
    BEL_ASSERT_OK(bel_input_open(dataset, NULL, &first));
    BEL_ASSERT_OK(bel_input_open(dataset, NULL, &second));
    bel_batch *a = bel_batch_create(first), *b = bel_batch_create(second);
    bel_dataset_destroy(dataset);
    BEL_ASSERT_OK(bel_input_read(first, 1, a));
    bel_batch_destroy(a);
    bel_input_destroy(first);
    BEL_ASSERT_OK(bel_input_read(second, 1, b));
    assert_int_equal(b->example_count, BATCH);
    bel_batch_destroy(b);
    bel_input_destroy(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way_gives_the_same_batches),
        cmocka_unit_test(test_memory_of_a_batch_is_reused),
        cmocka_unit_test(test_one_batch_of_everything),
        cmocka_unit_test(test_without_reading_ahead),
        cmocka_unit_test(test_impossible_prefetch),
        cmocka_unit_test(test_inputs_do_not_need_the_dataset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
