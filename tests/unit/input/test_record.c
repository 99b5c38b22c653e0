// Properties of a record that a map can ask for (number, epoch, file), and maps whose `user` a
// dataset owns.
#include "base/str.h"
#include "unit/input/test_fixture.h"

// Adds "epoch", and "number" unless it exists.
static bel_status *add_place(void *user, bel_record *record, bool *out_skip)
{
    (void)user, (void)out_skip;
    bel_shape scalar = bel_shape_scalar();
    *(int64_t *)bel_record_add(record, "epoch", BEL_DTYPE_I64, &scalar) = bel_record_epoch(record);
    *(int64_t *)bel_record_add(record, "number", BEL_DTYPE_I64, &scalar) =
        bel_record_number(record);
    return NULL;
}

// Every record of every epoch, in any order, with padding and without.
static void test_number_and_epoch(void **state)
{
    (void)state;
    enum { RECORDS = 7, EPOCHS = 3, BATCH = 5 };
    for (int padded = 0; padded <= 1; padded++) {
        int64_t ids[RECORDS];
        bool seen[EPOCHS][RECORDS] = {{false}};
        bel_dataset *dataset = numbered(ids, RECORDS);
        bel_dataset_shuffle(dataset, 0, 3);
        bel_dataset_repeat(dataset, EPOCHS);
        bel_dataset_map(dataset, add_place, NULL, NULL);
        if (padded) {
            bel_dataset_padded_batch(dataset, BATCH, NULL, 0);
        } else {
            bel_dataset_batch(dataset, BATCH);
        }
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        bel_batch *batch = bel_batch_create(input);
        int64_t position = 0;
        for (int64_t block = bel_input_block_count(input, true) - 1; block >= 0; block--) {
            BEL_ASSERT_OK(bel_input_read(input, block, batch));
            const int64_t *id = batch_field(input, batch, "id")->data;
            const int64_t *number = batch_field(input, batch, "number")->data;
            const int64_t *epoch = batch_field(input, batch, "epoch")->data;
            for (int64_t i = 0; i < batch->example_count; i++, position++) {
                assert_int_equal(number[i], id[i]);
                assert_int_equal(epoch[i], (block * BATCH + i) / RECORDS);
                assert_false(seen[epoch[i]][id[i]]);
                seen[epoch[i]][id[i]] = true;
            }
        }
        assert_int_equal(position, RECORDS * EPOCHS);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
}

// Fails with the file as the message.
static bel_status *tell_file(void *user, bel_record *record, bool *out_skip)
{
    (void)user, (void)out_skip;
    return BEL_ERR(BEL_ABORTED, "from <%s>", bel_record_file(record));
}

static void test_file(void **state)
{
    (void)state;
    int64_t ids[1];
    bel_dataset *dataset = numbered(ids, 1);
    bel_dataset_map(dataset, tell_file, NULL, NULL);
    bel_dataset_batch(dataset, 1);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_ABORTED, "from <>");

    static const char text[] = "a\n1\n";
    char *path = bel_test_file(bel_test_own_folder(), "rows.csv", text, sizeof text - 1);
    const char *paths[] = {path};
    dataset = bel_dataset_from_csv(
        &(bel_csv_options){.size = sizeof(bel_csv_options), .paths = paths, .path_count = 1});
    bel_dataset_map(dataset, tell_file, NULL, NULL);
    bel_dataset_batch(dataset, 1);
    char *expected = bel_strf("from <%s>", path);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_ABORTED, expected);
    bel_free(expected);
    bel_free(path);
}

static void count_end(void *user)
{
    ++*(int *)user;
}

static bel_status *change_nothing(void *user, bel_record *record, bool *out_skip)
{
    (void)user, (void)record, (void)out_skip;
    return NULL;
}

// An owned `user` lives as long as the dataset or an input needs it, and is freed once.
static void test_owned_user(void **state)
{
    (void)state;
    int64_t ids[2];
    int ended = 0, refused = 0;
    bel_dataset *dataset = numbered(ids, 2);
    bel_dataset_map_owned(dataset, change_nothing, &ended, count_end, NULL, NULL);
    bel_dataset_batch(dataset, 2);
    bel_dataset_map_owned(dataset, change_nothing, &refused, count_end, NULL, NULL); // after batch
    assert_int_equal(refused, 1);
    bel_dataset_destroy(dataset);
    assert_int_equal(ended, 1);

    dataset = numbered(ids, 2);
    bel_dataset_map_owned(dataset, change_nothing, &ended, count_end, NULL, NULL);
    bel_dataset_batch(dataset, 2);
    bel_input *inputs[2];
    BEL_ASSERT_OK(bel_input_open(dataset, NULL, &inputs[0]));
    BEL_ASSERT_OK(bel_input_open(dataset, NULL, &inputs[1]));
    bel_input_destroy(inputs[1]);
    bel_dataset_destroy(dataset);
    assert_int_equal(ended, 1);
    bel_input_destroy(inputs[0]);
    assert_int_equal(ended, 2);
}

static uint64_t fingerprint(bool owned, const char *identity)
{
    int64_t ids[2];
    bel_dataset *dataset = numbered(ids, 2);
    if (owned) {
        bel_dataset_map_owned(dataset, change_nothing, NULL, NULL, identity, NULL);
    } else {
        bel_dataset_map(dataset, change_nothing, NULL, NULL);
    }
    bel_dataset_batch(dataset, 2);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    uint64_t found = bel_input_fingerprint(input);
    bel_input_destroy(input);
    return found;
}

static void test_identity(void **state)
{
    (void)state;
    assert_int_equal(fingerprint(true, NULL), fingerprint(false, NULL));
    assert_int_equal(fingerprint(true, "a"), fingerprint(true, "a"));
    assert_int_not_equal(fingerprint(true, "a"), fingerprint(true, "b"));
    assert_int_not_equal(fingerprint(true, "a"), fingerprint(true, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_and_epoch),
        BEL_TEST_IN_FOLDER(test_file),
        cmocka_unit_test(test_owned_user),
        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
