// map: adding, replacing and dropping fields, skipping records, and errors that name the record.
#include "unit/input/test_fixture.h"

static int64_t id_of(const bel_record *record)
{
    return *(const int64_t *)bel_record_get(record, "id")->data;
}

static bel_status *square(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    bel_shape scalar = bel_shape_scalar();
    float *squared = bel_record_add(record, "square", BEL_DTYPE_F32, &scalar);
    *squared = (float)(id_of(record) * id_of(record));
    return NULL;
}

// Replaces "id"; the field read before stays valid.
static bel_status *add_hundred(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    const bel_tensor *old = bel_record_get(record, "id");
    bel_shape scalar = bel_shape_scalar();
    int64_t *id = bel_record_add(record, "id", BEL_DTYPE_I64, &scalar);
    if (*id != 0) return BEL_ERR(BEL_UNKNOWN, "memory of a new field is not zeroed");
    *id = *(const int64_t *)old->data + 100;
    return NULL;
}

static void test_maps_apply_in_order(void **state)
{
    (void)state;
    int64_t ids[4];
    bel_dataset *dataset = numbered(ids, 4);
    bel_dataset_map(dataset, square, NULL, NULL);
    bel_dataset_map(dataset, add_hundred, NULL, NULL);
    bel_dataset_batch(dataset, 4);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    static const int64_t expected_ids[] = {100, 101, 102, 103};
    static const float expected_squares[] = {0, 1, 4, 9};
    assert_int_equal(bel_input_field_count(input), 2);
    assert_memory_equal(batch_field(input, batch, "id")->data, expected_ids, sizeof expected_ids);
    assert_memory_equal(batch_field(input, batch, "square")->data, expected_squares,
                        sizeof expected_squares);
    assert_int_equal(ids[1], 1); // the user's memory is unchanged
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_drop_removes_fields(void **state)
{
    (void)state;
    static const char *const drop[] = {"id", NULL};
    int64_t ids[4];
    bel_dataset *dataset = numbered(ids, 4);
    bel_dataset_map(dataset, square, NULL, drop);
    bel_dataset_batch(dataset, 4);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    assert_int_equal(bel_input_field_count(input), 1);
    assert_string_equal(bel_input_field_name(input, 0), "square");
    bel_input_destroy(input);
}

static bel_status *skip_below(void *user, bel_record *record, bool *out_skip)
{
    *out_skip = id_of(record) < *(const int64_t *)user;
    return NULL;
}

// Blocks keep their boundaries: a skipped record makes its block shorter.
static void test_skipped_records_do_not_move_others(void **state)
{
    (void)state;
    int64_t ids[12], got[4], limit = 6;
    bel_dataset *dataset = numbered(ids, 12);
    bel_dataset_map(dataset, skip_below, &limit, NULL);
    bel_dataset_batch(dataset, 4);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    static const int64_t second[] = {6, 7}, third[] = {8, 9, 10, 11};
    assert_int_equal(bel_input_block_count(input, false), 3);
    assert_int_equal(read_ids(input, batch, 2, got), 4);
    assert_memory_equal(got, third, sizeof third);
    assert_int_equal(read_ids(input, batch, 1, got), 2);
    assert_memory_equal(got, second, sizeof second);
    assert_int_equal(read_ids(input, batch, 0, got), 0);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_nothing_but_skipped_records(void **state)
{
    (void)state;
    int64_t ids[3], limit = 6;
    bel_dataset *dataset = numbered(ids, 3);
    bel_dataset_map(dataset, skip_below, &limit, NULL);
    bel_dataset_repeat(dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(dataset, 2);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "skipped");
}

static bel_status *fail_at(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    if (id_of(record) != *(const int64_t *)user) return NULL;
    return BEL_ERR(BEL_ABORTED, "cannot hear anything");
}

static void test_errors_name_the_record(void **state)
{
    (void)state;
    int64_t ids[6], got[2], bad = 3;
    bel_dataset *dataset = numbered(ids, 6);
    bel_dataset_map(dataset, fail_at, &bad, NULL);
    bel_dataset_batch(dataset, 2);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_ABORTED,
                     "record 3: cannot hear anything");
    assert_int_equal(read_ids(input, batch, 2, got), 2); // the batch can be reused
    assert_int_equal(got[0], 4);
    bel_batch_destroy(batch);
    bel_input_destroy(input);

    bad = 0; // the record from which the fields are learned
    dataset = numbered(ids, 6);
    bel_dataset_map(dataset, fail_at, &bad, NULL);
    bel_dataset_batch(dataset, 2);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_ABORTED, "record 0: cannot hear anything");
}

// --- Records that differ from the first ----------------------------------------------------------

typedef enum oddity { ODD_DTYPE, ODD_RANK, ODD_MORE, ODD_MISSING, ODD_SHAPE, ODD_NAME } oddity;

// Makes record 2 odd.
static bel_status *make_odd(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    oddity kind = *(const oddity *)user;
    bool odd = id_of(record) == 2;
    bel_shape shape = odd && kind == ODD_RANK ? BEL_SHAPE(2, 1) : BEL_SHAPE(2);
    if (odd && kind == ODD_SHAPE) shape = BEL_SHAPE(-2);
    if (odd && kind == ODD_MISSING) return NULL;
    if (odd && kind == ODD_NAME) return bel_record_add(record, "", BEL_DTYPE_F32, &shape), NULL;
    bel_record_add(record, "x", odd && kind == ODD_DTYPE ? BEL_DTYPE_F64 : BEL_DTYPE_F32, &shape);
    if (odd && kind == ODD_MORE) bel_record_add(record, "y", BEL_DTYPE_F32, &shape);
    return NULL;
}

static void test_odd_records_are_refused(void **state)
{
    (void)state;
    static const struct {
        oddity kind;
        bel_code code;
        const char *part;
    } cases[] = {
        {ODD_DTYPE, BEL_DATA_LOSS, "\"x\""},           {ODD_RANK, BEL_DATA_LOSS, "\"x\""},
        {ODD_MORE, BEL_DATA_LOSS, "record 2"},         {ODD_MISSING, BEL_DATA_LOSS, "\"x\""},
        {ODD_SHAPE, BEL_INVALID_ARGUMENT, "record 2"}, {ODD_NAME, BEL_INVALID_ARGUMENT, "record 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int padded = 0; padded <= 1; padded++) {
            int64_t ids[4];
            oddity kind = cases[i].kind;
            bel_dataset *dataset = numbered(ids, 4);
            bel_dataset_map(dataset, make_odd, &kind, NULL);
            if (padded) {
                bel_dataset_padded_batch(dataset, 4, NULL, 0);
            } else {
                bel_dataset_batch(dataset, 4);
            }
            bel_input *input;
            BEL_ASSERT_OK(open_and_destroy(dataset, &input));
            bel_batch *batch = bel_batch_create(input);
            BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), cases[i].code, cases[i].part);
            bel_batch_destroy(batch);
            bel_input_destroy(input);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_apply_in_order),
        cmocka_unit_test(test_drop_removes_fields),
        cmocka_unit_test(test_skipped_records_do_not_move_others),
        cmocka_unit_test(test_nothing_but_skipped_records),
        cmocka_unit_test(test_errors_name_the_record),
        cmocka_unit_test(test_odd_records_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
