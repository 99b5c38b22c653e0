// Records that cannot be read are left out up to a limit and counted once; positions stay. Tested
// with every kind of source, map and batch.
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "unit/input/test_fixture.h"

// Rows 2 and 5 (lines 4 and 7) are bad: one contains a text, one lacks a field.
static const char text[] = "id,a\n0,0\n1,1\n2,x\n3,3\n4,4\n5\n6,6\n7,7\n";

static bel_dataset *rows_of(const char *content, char **out_path)
{
    *out_path = bel_test_file(bel_test_own_folder(), "a.csv", content, strlen(content));
    static const bel_csv_column columns[] = {{"id", BEL_DTYPE_I64}, {"a", BEL_DTYPE_F32}};
    return bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                   .paths = (const char *const[]){*out_path},
                                                   .path_count = 1,
                                                   .columns = columns,
                                                   .column_count = 2});
}

static bel_dataset *batched(bel_dataset *dataset, int64_t size, int64_t most)
{
    bel_dataset_batch(dataset, size);
    bel_dataset_skip_bad_records(dataset, most);
    return dataset;
}

static void test_rows_of_csv(void **state)
{
    (void)state;
    char *path;
    ASSERT_IDS(batched(rows_of(text, &path), 3, 2), 0, 1, 3, 4, 6, 7);
    bel_free(path);
    // Batches keep their boundaries, 3 positions each and 2 in the last: 0 1 | 3 4 | 6 7.
    bel_input *input;
    int64_t ids[3];
    BEL_ASSERT_OK(open_and_destroy(batched(rows_of(text, &path), 3, 10), &input));
    assert_int_equal(bel_input_epoch_records(input), 8);
    bel_batch *batch = bel_batch_create(input);
    for (int64_t block = 0; block < 3; block++)
        assert_int_equal(read_ids(input, batch, block, ids), 2);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

// A bad record in every epoch counts once.
static void test_counted_once(void **state)
{
    (void)state;
    char *path;
    bel_dataset *dataset = rows_of(text, &path);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_repeat(dataset, 5);
    int64_t ids[64];
    assert_int_equal(read_all_ids(batched(dataset, 4, 2), ids, 64), 30);
    bel_free(path);
}

static void assert_refused(const char *content, int64_t most, bel_code code, const char *part)
{
    char *path;
    BEL_ASSERT_FAILS(open_failing(batched(rows_of(content, &path), 3, most)), code, part);
    bel_free(path);
}

static void test_one_too_many(void **state)
{
    (void)state;
    assert_refused(text, 1, BEL_DATA_LOSS, "more than 1 bad records: ");
    assert_refused(text, 1, BEL_DATA_LOSS, "a.csv:7:2: expected 2 fields, got 1");
    assert_refused(text, 0, BEL_DATA_LOSS, "a.csv:7:2: expected 2 fields"); // checked first
    // If the start of the next row is unknown, no row can be left out.
    assert_refused("id,a\n0,0\n1,\"x\n2,2\n", 9, BEL_DATA_LOSS, "a.csv:");
    assert_refused(text, -1, BEL_INVALID_ARGUMENT, "expected skip_bad_records after batch");
}

// The limit of bad records does not change the fingerprint.
static void test_the_fingerprint_stays(void **state)
{
    (void)state;
    uint64_t fingerprints[2];
    for (int64_t most = 0; most < 2; most++) {
        char *path;
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(batched(rows_of("id,a\n0,0\n", &path), 3, most), &input));
        fingerprints[most] = bel_input_fingerprint(input);
        bel_input_destroy(input);
        bel_free(path);
    }
    assert_int_equal(fingerprints[0], fingerprints[1]);
}

// --- Maps and stages around them -----------------------------------------------------------------

static bel_status *fail_on_thirds(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    int64_t id = *(const int64_t *)bel_record_get(record, "id")->data;
    if (id % 3 != 0) return NULL;
    bel_code code = *(const bel_code *)user;
    return BEL_ERR(code, "no file for %lld", (long long)id);
}

static bel_dataset *failing(int64_t *memory, bel_code *code)
{
    bel_dataset *dataset = numbered(memory, 8);
    bel_dataset_map(dataset, fail_on_thirds, code, NULL);
    return dataset;
}

static void test_maps(void **state)
{
    (void)state;
    int64_t memory[8];
    bel_code code = BEL_NOT_FOUND;
    ASSERT_IDS(batched(failing(memory, &code), 3, 3), 1, 2, 4, 5, 7); // 0 is the first
    bel_dataset *dataset = failing(memory, &code);
    bel_dataset_padded_batch(dataset, 3, NULL, 0);
    bel_dataset_skip_bad_records(dataset, 3);
    ASSERT_IDS(dataset, 1, 2, 4, 5, 7);
    code = BEL_RESOURCE_EXHAUSTED; // not an error of the record
    BEL_ASSERT_FAILS(open_failing(batched(failing(memory, &code), 3, 3)), BEL_RESOURCE_EXHAUSTED,
                     "record 0: no file for 0");
}

static bool keep_even(void *user, const bel_record *record)
{
    (void)user;
    return *(const int64_t *)bel_record_get(record, "id")->data % 2 == 0;
}

static int64_t ask_length(void *user, const bel_record *record)
{
    (void)user;
    return *(const int64_t *)bel_record_get(record, "id")->data;
}

static int64_t count_two(void *user, const bel_record *record)
{
    (void)user;
    (void)record;
    return 2;
}

static bel_status *add_part(void *user, bel_record *record, int64_t part, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    int64_t *id = bel_record_get(record, "id")->data;
    *id = 10 * *id + part;
    return NULL;
}

// Stages that read records when the dataset is opened do not move bad ones.
static void test_stages_that_look(void **state)
{
    (void)state;
    char *path;
    bel_dataset *dataset = rows_of(text, &path);
    bel_dataset_filter(dataset, keep_even, NULL);
    ASSERT_IDS(batched(dataset, 2, 2), 0, 4, 6);
    bel_free(path);
    dataset = rows_of(text, &path);
    bel_dataset_bucket_by_length(dataset, ask_length, NULL, (int64_t[]){4}, 1);
    ASSERT_IDS(batched(dataset, 3, 2), 0, 1, 4, 6, 7, 3); // 0 1 - | 4 6 7 | 3 -
    bel_free(path);
    int64_t memory[8];
    bel_code code = BEL_UNKNOWN;
    dataset = failing(memory, &code);
    bel_dataset_flat_map(dataset, count_two, add_part, NULL, NULL);
    ASSERT_IDS(batched(dataset, 4, 3), 10, 11, 20, 21, 40, 41, 50, 51, 70, 71);
    for (int in_file = 0; in_file <= 1; in_file++) {
        char *cache = bel_strf("%s/cache", bel_test_own_folder());
        dataset = failing(memory, &code);
        bel_dataset_cache(dataset, in_file ? cache : NULL, 0);
        bel_dataset_repeat(dataset, 2);
        ASSERT_IDS(batched(dataset, 4, 3), 1, 2, 4, 5, 7, 1, 2, 4, 5, 7);
        bel_free(cache);
    }
    dataset = failing(memory, &code); // a window with a bad record is bad
    bel_dataset_window(dataset, 2, 0, 1, true);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(dataset, 4, 3), &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_int_equal(batch->example_count, 1);
    assert_memory_equal(batch->fields[0].data, ((int64_t[]){4, 5}), 16);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

// Adds id % 5 + 1 elements.
static bel_status *grow(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    int64_t id = *(const int64_t *)bel_record_get(record, "id")->data;
    bel_record_add(record, "x", BEL_DTYPE_F32, &BEL_SHAPE(id % 5 + 1));
    return NULL;
}

// A record that does not fit a batch is bad and does not widen the batch.
static void test_shapes_that_do_not_fit(void **state)
{
    (void)state;
    int64_t memory[10];
    const bel_padded_shape shapes[] = {{"x", BEL_SHAPE(4)}};
    bel_dataset *dataset = numbered(memory, 10);
    bel_dataset_map(dataset, grow, NULL, NULL);
    bel_dataset_padded_batch(dataset, 10, shapes, 1);
    bel_dataset_skip_bad_records(dataset, 2);
    ASSERT_IDS(dataset, 0, 1, 2, 3, 5, 6, 7, 8);
    dataset = numbered(memory, 10);
    bel_dataset_map(dataset, grow, NULL, NULL);
    ASSERT_IDS(batched(dataset, 4, 8), 0, 5); // all others differ in shape from the first
}

// --- TFRecord ------------------------------------------------------------------------------------

static void put_number(bel_str *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        bel_str_append(to, &(char){(char)(value >> 8 * i)}, 1);
}

static bel_status *use_record(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    bel_shape scalar = bel_shape_scalar();
    int64_t *id = bel_record_add(record, "id", BEL_DTYPE_I64, &scalar);
    *id = *(const char *)bel_record_get(record, BEL_RECORD_FIELD)->data - '0';
    return NULL;
}

// Three records of one byte; the data of the second is damaged.
static void test_checksums(void **state)
{
    (void)state;
    bel_str content = {0};
    for (int i = 0; i < 3; i++) {
        size_t start = content.length;
        put_number(&content, 1, 8);
        put_number(&content, bel_crc32c_masked(content.text + start, 8), 4);
        put_number(&content, (uint64_t)('0' + i), 1);
        put_number(&content, bel_crc32c_masked(content.text + start + 12, 1), 4);
    }
    content.text[17 + 12] ^= 1;
    char *path = bel_test_file(bel_test_own_folder(), "a", content.text, content.length);
    for (int64_t most = 0; most < 2; most++) {
        bel_dataset *dataset =
            bel_dataset_from_tfrecord(&(bel_tfrecord_options){.size = sizeof(bel_tfrecord_options),
                                                              .paths = (const char *const[]){path},
                                                              .path_count = 1});
        bel_dataset_map(dataset, use_record, NULL, (const char *const[]){BEL_RECORD_FIELD, NULL});
        if (most == 1) {
            ASSERT_IDS(batched(dataset, 2, most), 0, 2);
        } else {
            BEL_ASSERT_FAILS(open_failing(batched(dataset, 2, most)), BEL_DATA_LOSS, "record 1");
        }
    }
    bel_str_deinit(&content);
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_rows_of_csv),
        BEL_TEST_IN_FOLDER(test_counted_once),
        BEL_TEST_IN_FOLDER(test_one_too_many),
        BEL_TEST_IN_FOLDER(test_the_fingerprint_stays),
        BEL_TEST_IN_FOLDER(test_maps),
        BEL_TEST_IN_FOLDER(test_stages_that_look),
        BEL_TEST_IN_FOLDER(test_shapes_that_do_not_fit),
        BEL_TEST_IN_FOLDER(test_checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
