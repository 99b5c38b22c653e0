// TFRecord files: framing and its damage, Examples written by TensorFlow, features of every kind
// and shape, defaults of missing ones, and packed files.
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/source/example.h"
#include "unit/input/test_fixture.h"

// --- Writing -------------------------------------------------------------------------------------

static void put_number(bel_str *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        bel_str_append(to, &(char){(char)(value >> 8 * i)}, 1);
}

static void put_record(bel_str *to, const void *data, size_t size)
{
    bel_str length = {0};
    put_number(&length, size, 8);
    bel_str_append(to, length.text, 8);
    put_number(to, bel_crc32c_masked(length.text, 8), 4);
    if (size > 0) bel_str_append(to, data, size);
    put_number(to, bel_crc32c_masked(data, size), 4);
    bel_str_deinit(&length);
}

// Appends a part of a message with its tag by hand, without the code under test.
static void put_part(bel_str *to, int number, const bel_str *part)
{
    put_number(to, (uint64_t)(number << 3 | 2), 1);
    assert_true(part->length < 128);
    put_number(to, part->length, 1);
    if (part->length > 0) bel_str_append(to, part->text, part->length);
}

enum { BYTES = 1, FLOATS = 2, INTS = 3 };

// Appends a feature of `kind`; its list holds `list` under number 1 unless that is NULL.
static void put_feature(bel_str *features, const char *key, int kind, const bel_str *list)
{
    bel_str entry = {0}, feature = {0}, values = {0}, name = {0};
    bel_str_puts(&name, key);
    if (list != NULL) put_part(&values, 1, list);
    put_part(&feature, kind, &values);
    put_part(&entry, 1, &name);
    put_part(&entry, 2, &feature);
    put_part(features, 1, &entry);
    bel_str_deinit(&name);
    bel_str_deinit(&values);
    bel_str_deinit(&feature);
    bel_str_deinit(&entry);
}

static void put_floats(bel_str *features, const char *key, const float *values, int count)
{
    bel_str list = {0};
    bel_str_append(&list, (const char *)values, (size_t)count * sizeof *values);
    put_feature(features, key, FLOATS, &list);
    bel_str_deinit(&list);
}

// Appends values below 128, one byte each.
static void put_ints(bel_str *features, const char *key, const char *values, int count)
{
    bel_str list = {0};
    bel_str_append(&list, values, (size_t)count);
    put_feature(features, key, INTS, &list);
    bel_str_deinit(&list);
}

static void put_text(bel_str *features, const char *key, const char *text)
{
    bel_str list = {0};
    bel_str_puts(&list, text);
    put_feature(features, key, BYTES, &list);
    bel_str_deinit(&list);
}

static void put_example(bel_str *to, bel_str *features)
{
    bel_str example = {0};
    put_part(&example, 1, features);
    put_record(to, example.text, example.length);
    bel_str_deinit(&example);
    bel_str_deinit(features);
}

// Writes a file into the test's folder and returns its path; empties `content`.
static char *write_file(const char *name, bel_str *content)
{
    char *path = bel_test_file(bel_test_own_folder(), name, content->text, content->length);
    bel_str_deinit(content);
    return path;
}

// --- Reading -------------------------------------------------------------------------------------

static bel_dataset *open_features(const char *path, const bel_example_feature *features, int count)
{
    bel_dataset *dataset =
        bel_dataset_from_tfrecord(&(bel_tfrecord_options){.size = sizeof(bel_tfrecord_options),
                                                          .paths = (const char *const[]){path},
                                                          .path_count = 1,
                                                          .features = features,
                                                          .feature_count = count});
    return dataset;
}

static bel_input *open_batched(const char *path, const bel_example_feature *features, int count)
{
    bel_dataset *dataset = open_features(path, features, count);
    bel_dataset_batch(dataset, 8);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    return input;
}

// Returns the error of opening a file with these features.
static bel_status *failure_of(const char *path, const bel_example_feature *features, int count)
{
    bel_dataset *dataset = open_features(path, features, count);
    bel_dataset_padded_batch(dataset, 8, NULL, 0);
    return open_failing(dataset);
}

// --- Tests ---------------------------------------------------------------------------------------

// Bytes that TensorFlow 2 writes for feature0: [0], feature1: [4], feature2: b"goat", feature3:
// [0.9876] (from its guide to TFRecord).
static const char written_by_tensorflow[] = "\nR\n\x14\n\x08"
                                            "feature2\x12\x08\n\x06\n\x04goat\n\x11\n\x08"
                                            "feature1\x12\x05\x1a\x03\n\x01\x04\n\x11\n\x08"
                                            "feature0\x12\x05\x1a\x03\n\x01\x00\n\x14\n\x08"
                                            "feature3\x12\x08\x12\x06\n\x04[\xd3|?";

static void test_written_by_tensorflow(void **state)
{
    (void)state;
    bel_str content = {0};
    put_record(&content, written_by_tensorflow, sizeof written_by_tensorflow - 1);
    char *path = write_file("a.tfrecord", &content);
    const bel_example_feature features[] = {
        {.key = "feature0", .dtype = BEL_DTYPE_I64},
        {.key = "feature1", .dtype = BEL_DTYPE_I64, .field = BEL_LABEL_FIELD},
        {.key = "feature2", .dtype = BEL_DTYPE_U8, .shape = BEL_SHAPE(2, 2)},
        {.key = "feature3", .dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(1)},
    };
    bel_input *input = open_batched(path, features, 4);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_int_equal(batch->example_count, 1);
    assert_int_equal(*(int64_t *)batch_field(input, batch, "feature0")->data, 0);
    assert_int_equal(*(int64_t *)batch_field(input, batch, BEL_LABEL_FIELD)->data, 4);
    assert_memory_equal(batch_field(input, batch, "feature2")->data, "goat", 4);
    assert_true(*(float *)batch_field(input, batch, "feature3")->data == 0.9876f);
    assert_int_equal(batch_field(input, batch, "feature3")->shape.rank, 2);
    assert_int_equal(batch_field(input, batch, "feature0")->shape.rank, 1);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

// Unpacked numbers, which the format allows, a repeated name, and a name that is not requested.
static void test_other_ways_to_write(void **state)
{
    (void)state;
    bel_str features = {0}, content = {0}, entry = {0}, feature = {0}, values = {0}, name = {0};
    put_ints(&features, "a", "\x01\x02", 2);
    put_text(&features, "other", "text");
    bel_str_puts(&name, "a");
    put_number(&values, 1 << 3 | 0, 1); // value: 7, value: 8, one tag each
    put_number(&values, 7, 1);
    put_number(&values, 1 << 3 | 0, 1);
    put_number(&values, 8, 1);
    put_part(&feature, INTS, &values);
    put_part(&entry, 1, &name);
    put_part(&entry, 2, &feature);
    put_part(&features, 1, &entry);
    put_example(&content, &features);
    char *path = write_file("a.tfrecord", &content);
    bel_input *input = open_batched(
        path, &(bel_example_feature){.key = "a", .dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(2)}, 1);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_memory_equal(batch->fields[0].data, ((int64_t[]){7, 8}), 16);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_str_deinit(&name);
    bel_str_deinit(&values);
    bel_str_deinit(&feature);
    bel_str_deinit(&entry);
    bel_free(path);
}

// Records of 0 to 3 rows of 2. The third has no such feature at all.
static void test_varying_lengths(void **state)
{
    (void)state;
    static const float data[] = {1, 2, 3, 4, 5, 6};
    bel_str content = {0}, features = {0};
    put_floats(&features, "x", data, 6);
    put_example(&content, &features);
    put_floats(&features, "x", data, 2);
    put_example(&content, &features);
    put_example(&content, &features);
    put_feature(&features, "x", FLOATS, NULL);
    put_example(&content, &features);
    char *path = write_file("a.tfrecord", &content);
    const bel_example_feature feature = {
        .key = "x", .dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(-1, 2)};
    bel_dataset *dataset = open_features(path, &feature, 1);
    bel_dataset_padded_batch(dataset, 4, NULL, 0);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_dtype dtype;
    bel_shape shape, expected_shape = BEL_SHAPE(4, 3, 2);
    bel_input_field_spec(input, 0, &dtype, &shape);
    assert_true(shape.dims[1] <= BEL_DIM_TIME); // open; the width is known
    assert_int_equal(shape.dims[2], 2);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_true(bel_shape_equal(&batch->fields[0].shape, &expected_shape));
    static const float expected[24] = {1, 2, 3, 4, 5, 6, 1, 2};
    assert_memory_equal(batch->fields[0].data, expected, sizeof expected);
    bel_batch_destroy(batch);
    bel_input_destroy(input);

    dataset = open_features(path, &feature, 1);
    bel_dataset_batch(dataset, 4);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT,
                     "field \"x\" has another length in each record");
    bel_free(path);
}

static void test_missing_features(void **state)
{
    (void)state;
    bel_str content = {0}, features = {0};
    put_ints(&features, "a", "\x05", 1);
    put_example(&content, &features);
    put_feature(&features, "a", INTS, NULL); // empty
    put_feature(&features, "b", FLOATS, NULL);
    put_example(&content, &features);
    put_example(&content, &features); // no features
    char *path = write_file("a.tfrecord", &content);
    const int64_t seven = 7;
    const float half = 0.5f;
    const bel_example_feature asked[] = {
        {.key = "a", .dtype = BEL_DTYPE_I64, .missing = &seven},
        {.key = "b", .dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(2), .missing = &half},
    };
    bel_input *input = open_batched(path, asked, 2);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    static const int64_t expected_a[] = {5, 7, 7};
    static const float expected_b[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
    assert_memory_equal(batch_field(input, batch, "a")->data, expected_a, sizeof expected_a);
    assert_memory_equal(batch_field(input, batch, "b")->data, expected_b, sizeof expected_b);
    uint64_t fingerprint = bel_input_fingerprint(input);
    bel_batch_destroy(batch);
    bel_input_destroy(input);

    const float other = 0.25f; // other records change the fingerprint
    bel_example_feature changed[] = {asked[0], asked[1]};
    changed[1].missing = &other;
    input = open_batched(path, changed, 2);
    assert_int_not_equal(bel_input_fingerprint(input), fingerprint);
    bel_input_destroy(input);

    changed[0].missing = NULL;
    BEL_ASSERT_FAILS(failure_of(path, changed, 2), BEL_DATA_LOSS,
                     "a.tfrecord: record 1: feature \"a\": expected elements of shape [], got 0");
    changed[1].missing = NULL;
    BEL_ASSERT_FAILS(failure_of(path, changed + 1, 1), BEL_DATA_LOSS,
                     "a.tfrecord: record 0: feature \"b\": expected float_list, got none");
    bel_free(path);
}

// Text and complete records as a map sees them.
typedef struct seen {
    bel_str text;
} seen;

static bel_status *note(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    const bel_tensor *text = bel_record_get(record, "text");
    if (text == NULL) text = bel_record_get(record, BEL_RECORD_FIELD);
    bel_str_append(&((seen *)user)->text, text->data, (size_t)text->shape.dims[0]);
    bel_str_puts(&((seen *)user)->text, "|");
    bel_shape scalar = bel_shape_scalar();
    bel_record_add(record, "id", BEL_DTYPE_I64, &scalar);
    return NULL;
}

static void assert_texts(const char *path, const bel_example_feature *feature, const char *field,
                         const char *expected)
{
    seen texts = {0};
    bel_dataset *dataset = open_features(path, feature, feature == NULL ? 0 : 1);
    bel_dataset_map(dataset, note, &texts, (const char *const[]){field, NULL});
    bel_dataset_batch(dataset, 8);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_str_deinit(&texts.text);
    texts.text = (bel_str){0};
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_string_equal(texts.text.text, expected);
    bel_str_deinit(&texts.text);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_texts_and_whole_records(void **state)
{
    (void)state;
    bel_str content = {0}, features = {0};
    put_text(&features, "text", "goat");
    put_example(&content, &features);
    put_text(&features, "text", "");
    put_example(&content, &features);
    put_example(&content, &features);
    char *path = write_file("a.tfrecord", &content);
    assert_texts(
        path, &(bel_example_feature){.key = "text", .dtype = BEL_DTYPE_STRING, .missing = "none"},
        "text", "goat||none|");
    bel_free(path);
    put_record(&content, "one", 3);
    put_record(&content, NULL, 0);
    put_record(&content, "three", 5);
    path = write_file("b.tfrecord", &content);
    assert_texts(path, NULL, BEL_RECORD_FIELD, "one||three|");
    bel_free(path);
}

// gzip and zlib, whatever the file's name; also a plain file whose first bytes look like zlib.
static void test_packed_files(void **state)
{
    (void)state;
    char long_text[0x178] = {0}; // its length is 78 01 00 …, a zlib header
    memset(long_text, 'x', sizeof long_text - 1);
    bel_str content = {0};
    put_record(&content, long_text, sizeof long_text);
    put_record(&content, "two", 3);
    unsigned char packed[1024];
    uLongf packed_size = sizeof packed;
    assert_int_equal(compress(packed, &packed_size, (unsigned char *)content.text, content.length),
                     Z_OK);
    char *paths[3] = {bel_path_join(bel_test_own_folder(), "a.gz")};
    gzFile gzip = gzopen(paths[0], "wb");
    assert_int_equal(gzwrite(gzip, content.text, (unsigned)content.length), content.length);
    gzclose(gzip);
    paths[1] = bel_test_file(bel_test_own_folder(), "b", packed, packed_size);
    paths[2] = write_file("c", &content);
    for (int i = 0; i < 3; i++) {
        bel_dataset *dataset = open_features(paths[i], NULL, 0);
        bel_dataset_skip(dataset, 1);
        seen texts = {0};
        bel_dataset_map(dataset, note, &texts, (const char *const[]){BEL_RECORD_FIELD, NULL});
        bel_dataset_batch(dataset, 1);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        assert_int_equal(bel_input_epoch_records(input), 1);
        assert_string_equal(texts.text.text, "two|");
        bel_str_deinit(&texts.text);
        bel_input_destroy(input);
        bel_free(paths[i]);
    }
}

static void assert_damage(const bel_str *content, size_t size, size_t at, int change,
                          const char *message)
{
    char *copy = bel_xmalloc(content->length);
    memcpy(copy, content->text, content->length);
    copy[at] = (char)(copy[at] ^ change);
    char *path = bel_test_file(bel_test_own_folder(), "a.tfrecord", copy, size);
    seen texts = {0};
    bel_dataset *dataset = open_features(path, NULL, 0);
    bel_dataset_map(dataset, note, &texts, (const char *const[]){BEL_RECORD_FIELD, NULL});
    bel_dataset_batch(dataset, 8);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_DATA_LOSS, message);
    bel_str_deinit(&texts.text);
    bel_free(path);
    bel_free(copy);
}

// Two records of 3 bytes, at byte 0 and byte 19.
static void test_damaged_framing(void **state)
{
    (void)state;
    bel_str content = {0};
    put_record(&content, "one", 3);
    put_record(&content, "two", 3);
    assert_int_equal(content.length, 38);
    assert_damage(&content, 38, 0, 1, "a.tfrecord: not a TFRecord file");
    assert_damage(&content, 5, 0, 0, "a.tfrecord: not a TFRecord file");
    assert_damage(&content, 38, 8, 1, "a.tfrecord: not a TFRecord file");
    assert_damage(&content, 38, 13, 1,
                  "a.tfrecord: record 0: its 3 bytes do not fit their checksum");
    assert_damage(&content, 38, 18, 4, "a.tfrecord: record 0: its 3 bytes");
    assert_damage(&content, 38, 20, 1, "a.tfrecord: record 1: the length at byte 19 does not fit");
    for (size_t size = 20; size < 38; size++)
        assert_damage(&content, size, 0, 0, "a.tfrecord: record 1: expected a record at byte 19");
    assert_damage(&content, 0, 0, 0, "a.tfrecord: expected records, got none");
    bel_str_deinit(&content);
}

// Features of two bytes each: a record of megabytes must not take hundreds of megabytes.
static void test_too_many_features(void **state)
{
    (void)state;
    enum { PARTS = 4 << 20, FIRST = 1 << 3 | 2, HEAD = 6 };
    size_t inner = 2 * (size_t)PARTS, size = HEAD + inner;
    char *bytes = bel_xcalloc(size, 1);
    // The tag of an Example's features. Their length follows, in five bytes of seven bits.
    bytes[0] = FIRST;
    for (int i = 0; i < 5; i++)
        bytes[1 + i] = (char)(unsigned char)((inner >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
    for (size_t i = HEAD; i < size; i += 2)
        bytes[i] = FIRST; // tag of one feature
    assert_null(bel_example_parse(bytes, size));
    bel_free(bytes);
}

static void test_wrong_features(void **state)
{
    (void)state;
    static const float data[] = {1, 2, 3};
    bel_str content = {0}, features = {0};
    put_floats(&features, "x", data, 3);
    put_example(&content, &features);
    char *path = write_file("a.tfrecord", &content);
#define FAILS(code, part, ...)                                                                     \
    BEL_ASSERT_FAILS(failure_of(path, &(bel_example_feature){__VA_ARGS__}, 1), code, part)
    FAILS(BEL_DATA_LOSS, "feature \"x\": expected int64_list, got float_list", .key = "x",
          .dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(3));
    FAILS(BEL_DATA_LOSS, "expected elements of shape [2], got 3", .key = "x",
          .dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(2));
    FAILS(BEL_DATA_LOSS, "got 3", .key = "x", .dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(-1, 2));
    FAILS(BEL_INVALID_ARGUMENT, "feature 0 has no key", .dtype = BEL_DTYPE_F32);
    FAILS(BEL_INVALID_ARGUMENT, "expected f32, i64, u8 or string, got f64", .key = "x",
          .dtype = BEL_DTYPE_F64);
    FAILS(BEL_INVALID_ARGUMENT, "expected a closed shape", .key = "x", .dtype = BEL_DTYPE_F32,
          .shape = BEL_SHAPE(2, -1));
    FAILS(BEL_INVALID_ARGUMENT, "`missing` is not read", .key = "x", .dtype = BEL_DTYPE_F32,
          .shape = BEL_SHAPE(-1), .missing = data);
#undef FAILS
    const bel_example_feature twice[] = {
        {.key = "x", .dtype = BEL_DTYPE_F32},
        {.key = "y", .field = "x", .dtype = BEL_DTYPE_F32},
    };
    BEL_ASSERT_FAILS(failure_of(path, twice, 2), BEL_INVALID_ARGUMENT,
                     "two features become field \"x\"");
    put_record(&content, "\n\x7f", 2); // claims 127 bytes
    bel_free(path);
    path = write_file("b.tfrecord", &content);
    BEL_ASSERT_FAILS(failure_of(path, twice, 1), BEL_DATA_LOSS,
                     "b.tfrecord: record 0: expected a tf.train.Example");
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_written_by_tensorflow),
        BEL_TEST_IN_FOLDER(test_other_ways_to_write),
        BEL_TEST_IN_FOLDER(test_varying_lengths),
        BEL_TEST_IN_FOLDER(test_missing_features),
        BEL_TEST_IN_FOLDER(test_texts_and_whole_records),
        BEL_TEST_IN_FOLDER(test_packed_files),
        BEL_TEST_IN_FOLDER(test_damaged_framing),
        cmocka_unit_test(test_too_many_features),
        BEL_TEST_IN_FOLDER(test_wrong_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
