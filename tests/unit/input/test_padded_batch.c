// Padded batches: zeros at the end of each dimension, up to the longest record of the batch or to
// the user's fixed size.
#include "unit/input/test_fixture.h"

// Adds "x" of shape [i + 1, 2] to record i, filled with 10 i + element, and "mask" of shape [i +
// 1], filled with ones.
static bel_status *lengthen(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    int64_t id = *(const int64_t *)bel_record_get(record, "id")->data;
    bel_shape shape = BEL_SHAPE(id + 1, 2), mask_shape = BEL_SHAPE(id + 1);
    float *x = bel_record_add(record, "x", BEL_DTYPE_F32, &shape);
    float *mask = bel_record_add(record, "mask", BEL_DTYPE_F32, &mask_shape);
    for (int64_t i = 0; i < 2 * (id + 1); i++)
        x[i] = (float)(10 * id + i);
    for (int64_t i = 0; i <= id; i++)
        mask[i] = 1;
    return NULL;
}

static bel_dataset *lengthened(int64_t *ids, int64_t count, const bel_padded_shape *shapes,
                               int shape_count)
{
    bel_dataset *dataset = numbered(ids, count);
    bel_dataset_map(dataset, lengthen, NULL, NULL);
    bel_dataset_padded_batch(dataset, 3, shapes, shape_count);
    return dataset;
}

// Checks row `id` of "x", padded to `length` × `width`.
static void assert_row(const float *row, int64_t id, int64_t length, int64_t width)
{
    for (int64_t t = 0; t < length; t++) {
        for (int64_t c = 0; c < width; c++) {
            bool inside = t <= id && c < 2;
            float expected = inside ? (float)(10 * id + 2 * t + c) : 0;
            assert_true(row[t * width + c] == expected);
        }
    }
}

static void assert_block(const bel_input *input, bel_batch *batch, int64_t block, int64_t length,
                         int64_t width)
{
    BEL_ASSERT_OK(bel_input_read(input, block, batch));
    const bel_tensor *x = batch_field(input, batch, "x");
    bel_shape expected = BEL_SHAPE(batch->example_count, length, width);
    assert_true(bel_shape_equal(&x->shape, &expected));
    for (int64_t i = 0; i < batch->example_count; i++)
        assert_row((const float *)x->data + i * length * width, block * 3 + i, length, width);
}

static void test_pads_to_the_longest_of_the_batch(void **state)
{
    (void)state;
    int64_t ids[7];
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lengthened(ids, 7, NULL, 0), &input));
    bel_batch *batch = bel_batch_create(input);
    assert_block(input, batch, 0, 3, 2);
    assert_block(input, batch, 2, 7, 2); // longer: the memory grows
    assert_int_equal(batch->example_count, 1);
    assert_block(input, batch, 0, 3, 2); // shorter again: its old content must not show
    assert_block(input, batch, 1, 6, 2);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_fixed_dimensions(void **state)
{
    (void)state;
    int64_t ids[6];
    const bel_padded_shape shapes[] = {{"x", BEL_SHAPE(-1, 5)}, {"mask", BEL_SHAPE(6)}};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lengthened(ids, 6, shapes, 2), &input));
    bel_batch *batch = bel_batch_create(input);
    assert_block(input, batch, 0, 3, 5);
    const bel_tensor *mask = batch_field(input, batch, "mask");
    bel_shape expected = BEL_SHAPE(3, 6);
    assert_true(bel_shape_equal(&mask->shape, &expected));
    static const float masks[] = {1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0};
    assert_memory_equal(mask->data, masks, sizeof masks);
    assert_block(input, batch, 1, 6, 5);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_open_dimensions_have_symbols(void **state)
{
    (void)state;
    int64_t ids[6];
    const bel_padded_shape shapes[] = {{"x", BEL_SHAPE(-1, 2)}};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lengthened(ids, 6, shapes, 1), &input));
    int64_t x_time = 0, mask_time = 0;
    for (int i = 0; i < bel_input_field_count(input); i++) {
        bel_dtype dtype;
        bel_shape shape;
        bel_input_field_spec(input, i, &dtype, &shape);
        const char *name = bel_input_field_name(input, i);
        assert_int_equal(shape.dims[0], BEL_DIM_BATCH);
        if (strcmp(name, "id") == 0) assert_int_equal(shape.rank, 1);
        if (strcmp(name, "x") == 0) {
            assert_int_equal(shape.rank, 3);
            assert_int_equal(shape.dims[2], 2);
            x_time = shape.dims[1];
        }
        if (strcmp(name, "mask") == 0) mask_time = shape.dims[1];
    }
    assert_true(x_time <= BEL_DIM_TIME && mask_time <= BEL_DIM_TIME);
    assert_true(x_time != mask_time); // they may differ
    bel_input_destroy(input);
}

static void test_records_larger_than_a_fixed_dimension(void **state)
{
    (void)state;
    int64_t ids[6];
    const bel_padded_shape shapes[] = {{"x", BEL_SHAPE(4, 2)}};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(lengthened(ids, 6, shapes, 1), &input));
    bel_batch *batch = bel_batch_create(input);
    assert_block(input, batch, 0, 4, 2);
    BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_DATA_LOSS, "record 4");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

// The value that pads a field. Other fields are padded with zeros.
static void test_pad_values(void **state)
{
    (void)state;
    int64_t ids[6];
    bel_dataset *dataset = lengthened(ids, 6, NULL, 0);
    bel_dataset_pad_value(dataset, "x", -2.5);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    for (int round = 0; round < 2; round++) { // again in reused memory
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        const bel_tensor *x = batch_field(input, batch, "x"),
                         *mask = batch_field(input, batch, "mask");
        const float *values = x->data, *masks = mask->data;
        int64_t rows = x->shape.dims[1], width = x->shape.dims[2];
        int padded = 0;
        for (int64_t i = 0; i < x->shape.dims[0]; i++) {
            for (int64_t t = 0; t < rows; t++) {
                bool there = masks[i * mask->shape.dims[1] + t] == 1;
                padded += !there;
                for (int64_t c = 0; c < width; c++)
                    assert_true(there == (values[(i * rows + t) * width + c] != -2.5f));
            }
        }
        assert_true(padded > 0);
        BEL_ASSERT_OK(bel_input_read(input, 1, batch));
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

// Batches a record with one element and one with no element, and checks the padding.
static void assert_pads(bel_dtype dtype, double value, const void *expected)
{
    uint64_t data = 0;
    bel_memory_field long_one = {"a", {dtype, BEL_SHAPE(1, 1), &data}};
    bel_memory_field short_one = {"a", {dtype, BEL_SHAPE(1, 0), &data}};
    bel_dataset *parts[] = {bel_dataset_from_memory(&long_one, 1),
                            bel_dataset_from_memory(&short_one, 1)};
    bel_dataset *dataset = bel_dataset_concatenate(parts, 2);
    bel_dataset_padded_batch(dataset, 2, NULL, 0);
    bel_dataset_pad_value(dataset, "a", value);
    if (expected == NULL) {
        BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "pad_value: field \"a\" of");
        return;
    }
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    size_t size = bel_dtype_size(dtype);
    assert_memory_equal((char *)batch->fields[0].data + size, expected, size);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_pad_values_of_every_type(void **state)
{
    (void)state;
    assert_pads(BEL_DTYPE_F32, 0.1, &(float){0.1f});
    assert_pads(BEL_DTYPE_F64, 0.1, &(double){0.1});
    assert_pads(BEL_DTYPE_I32, -100, &(int32_t){-100});
    assert_pads(BEL_DTYPE_I64, -0x1p53, &(int64_t){-(INT64_C(1) << 53)});
    assert_pads(BEL_DTYPE_U8, 255, &(unsigned char){255});
    assert_pads(BEL_DTYPE_BOOL, 1, &(unsigned char){1});
    assert_pads(BEL_DTYPE_F16, 0, &(uint16_t){0});
    assert_pads(BEL_DTYPE_I32, 0.5, NULL);
    assert_pads(BEL_DTYPE_I32, 0x1p31, NULL);
    assert_pads(BEL_DTYPE_I64, 0x1p60, NULL);
    assert_pads(BEL_DTYPE_U8, 256, NULL);
    assert_pads(BEL_DTYPE_U8, -1, NULL);
    assert_pads(BEL_DTYPE_BOOL, 2, NULL);
    assert_pads(BEL_DTYPE_F16, 1, NULL);
}

static void test_pad_values_that_fit_nothing(void **state)
{
    (void)state;
    int64_t ids[6];
    bel_dataset *dataset = lengthened(ids, 6, NULL, 0);
    bel_dataset_pad_value(dataset, "y", 1);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "there is no field named \"y\"");
    dataset = lengthened(ids, 6, NULL, 0);
    bel_dataset_pad_value(dataset, "x", 1);
    bel_dataset_pad_value(dataset, "x", 2);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT,
                     "expected one value for the field");
    dataset = numbered(ids, 6);
    bel_dataset_batch(dataset, 2);
    bel_dataset_pad_value(dataset, "id", 1);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "pad_value after padded_batch");
}

static void test_padded_shapes_that_fit_nothing(void **state)
{
    (void)state;
    int64_t ids[6];
    const bel_padded_shape rank[] = {{"x", BEL_SHAPE(-1)}};
    BEL_ASSERT_FAILS(open_failing(lengthened(ids, 6, rank, 1)), BEL_INVALID_ARGUMENT, "\"x\"");
    const bel_padded_shape name[] = {{"y", BEL_SHAPE(-1, 2)}};
    BEL_ASSERT_FAILS(open_failing(lengthened(ids, 6, name, 1)), BEL_INVALID_ARGUMENT, "\"y\"");
}

static void test_plain_batches_need_one_shape(void **state)
{
    (void)state;
    int64_t ids[6];
    bel_dataset *dataset = numbered(ids, 6);
    bel_dataset_map(dataset, lengthen, NULL, NULL);
    bel_dataset_batch(dataset, 2);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), BEL_DATA_LOSS, "record 1: field \"x\"");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pads_to_the_longest_of_the_batch),
        cmocka_unit_test(test_fixed_dimensions),
        cmocka_unit_test(test_open_dimensions_have_symbols),
        cmocka_unit_test(test_records_larger_than_a_fixed_dimension),
        cmocka_unit_test(test_pad_values),
        cmocka_unit_test(test_pad_values_of_every_type),
        cmocka_unit_test(test_pad_values_that_fit_nothing),
        cmocka_unit_test(test_padded_shapes_that_fit_nothing),
        cmocka_unit_test(test_plain_batches_need_one_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
