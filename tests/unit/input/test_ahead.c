// Prefetching of records: which ones, in which steps and how early. Blocks have the same content
// with and without it, for any size, order and kind of file.
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "input/batch/ahead.h"
#include "unit/input/test_fixture.h"

// --- Steps ---------------------------------------------------------------------------------------

// Counts the finished steps of each record.
typedef struct noting_source {
    bel_source base;
    int steps[256];
} noting_source;

static void note_step(const bel_source *base, int64_t number, int step)
{
    noting_source *source = (noting_source *)(uintptr_t)base;
    assert_in_range(number, 0, 255);
    assert_int_equal(source->steps[number], step); // each in order, and once
    source->steps[number]++;
}

static const bel_source_kind noting_kind = {.name = "noting", .ahead = note_step};
static const bel_source_kind silent_kind = {.name = "silent"};

static void test_records_go_through_their_steps(void **state)
{
    (void)state;
    enum { COUNT = 200, FURTHEST = BEL_AHEAD_DISTANCE * BEL_AHEAD_STEPS };
    noting_source source = {.base = {.kind = &noting_kind}};
    bel_position positions[COUNT];
    for (int i = 0; i < COUNT; i++) // one in ten is a hole
        positions[i].number = i % 10 == 3 ? -1 : (i * 77) % 256;
    bel_ahead ahead = bel_ahead_begin(&source.base, positions, COUNT);
    for (int i = 0; i < COUNT; i++) {
        bel_ahead_reach(&ahead, i);
        for (int k = 0; k < COUNT; k++) {
            if (positions[k].number < 0) continue;
            int through = source.steps[positions[k].number];
            if (k <= i) assert_int_equal(through, BEL_AHEAD_STEPS);
            if (k >= i + FURTHEST) assert_int_equal(through, 0);
            if (k == i + FURTHEST - 1) assert_int_equal(through, 1);
        }
    }
}

static void test_records_in_order_are_left_to_the_processor(void **state)
{
    (void)state;
    noting_source source = {.base = {.kind = &noting_kind}};
    bel_position positions[] = {{0, 5}, {0, 6}, {0, 7}, {0, 8}};
    bel_ahead ahead = bel_ahead_begin(&source.base, positions, 4);
    bel_ahead_reach(&ahead, 0);
    assert_int_equal(source.steps[5], 0);
    positions[2].number = 17;
    positions[3].number = 3;
    ahead = bel_ahead_begin(&source.base, positions, 4);
    bel_ahead_reach(&ahead, 0);
    assert_int_equal(source.steps[3], BEL_AHEAD_STEPS);
    // No step runs for a source that cannot prefetch.
    source.base.kind = &silent_kind;
    ahead = bel_ahead_begin(&source.base, positions, 4);
    bel_ahead_reach(&ahead, 0);
}

// --- Files ---------------------------------------------------------------------------------------

enum { RECORDS = 500, IDX_HEADER = 12, LABEL_HEADER = 8 };

typedef enum file_kind { A_CSV, A_HELD_OUT_CSV, AN_IDX, A_TFRECORD, KINDS } file_kind;

typedef struct files {
    char *folder, *csv, *images, *labels, *tfrecord;
} files;

// Rows of any length, some of two lines and one of two thousand bytes; no line break at the end.
static char *write_csv(const char *folder)
{
    bel_str text = {0};
    bel_str_puts(&text, "a,note,label\n");
    for (int i = 0; i < RECORDS; i++) {
        bel_str_printf(&text, "%d,\"%s", i, i % 7 == 0 ? "two\nlines " : "");
        for (int k = 0; k < (i == 77 ? 2000 : i % 31); k++)
            bel_str_puts(&text, "x");
        bel_str_printf(&text, "\",%d%s", i % 3, i + 1 < RECORDS ? "\n" : "");
    }
    char *path = bel_test_file(folder, "rows.csv", text.text, text.length);
    bel_str_deinit(&text);
    return path;
}

static void put(bel_str *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        bel_str_append(to, &(char){(char)(value >> 8 * i)}, 1);
}

// Examples with one feature "a" of one float.
static char *write_tfrecord(const char *folder)
{
    bel_str text = {0};
    for (int i = 0; i < RECORDS; i++) {
        char data[] = "\n\x0f\n\r\n\1a\x12\x08\x12\x06\n\4....";
        float value = (float)i;
        size_t size = sizeof data - 1;
        memcpy(data + size - sizeof value, &value, sizeof value);
        const uint64_t length = size;
        put(&text, length, 8);
        put(&text, bel_crc32c_masked(&length, sizeof length), 4);
        bel_str_append(&text, data, size);
        put(&text, bel_crc32c_masked(data, size), 4);
    }
    char *path = bel_test_file(folder, "rows.tfrecord", text.text, text.length);
    bel_str_deinit(&text);
    return path;
}

static files write_files(void)
{
    files f = {.folder = bel_test_folder()};
    unsigned char images[IDX_HEADER + 2 * RECORDS] = {0, 0, 8, 2, 0, 0, 1, 0xf4, 0, 0, 0, 2};
    unsigned char labels[LABEL_HEADER + RECORDS] = {0, 0, 8, 1, 0, 0, 1, 0xf4};
    for (int i = 0; i < RECORDS; i++) {
        images[IDX_HEADER + 2 * i] = (unsigned char)(i / 256);
        images[IDX_HEADER + 2 * i + 1] = (unsigned char)i;
        labels[LABEL_HEADER + i] = (unsigned char)(i % 10);
    }
    f.csv = write_csv(f.folder);
    f.images = bel_test_file(f.folder, "images", images, sizeof images);
    f.labels = bel_test_file(f.folder, "labels", labels, sizeof labels);
    f.tfrecord = write_tfrecord(f.folder);
    return f;
}

static void remove_files(files *f)
{
    bel_free(f->csv);
    bel_free(f->images);
    bel_free(f->labels);
    bel_free(f->tfrecord);
    bel_test_remove_folder(f->folder);
}

static bel_dataset *dataset_of(const files *f, file_kind kind)
{
    const bel_example_feature feature = {
        .key = "a", .field = "a", .dtype = BEL_DTYPE_F32, .shape = {.rank = 0}};
    const bel_csv_column columns[] = {{.name = "a", .dtype = BEL_DTYPE_F32}};
    bel_csv_options csv = {.size = sizeof csv,
                           .paths = (const char *const *)&f->csv,
                           .path_count = 1,
                           .label_column = "label",
                           .columns = columns,
                           .column_count = 1};
    if (kind == A_HELD_OUT_CSV) csv.holdout = (bel_holdout){.share = 0.3, .seed = 4};
    switch (kind) {
    case A_CSV:
    case A_HELD_OUT_CSV: return bel_dataset_from_csv(&csv);
    case AN_IDX: return bel_dataset_from_idx(f->images, f->labels, 1, 10);
    case A_TFRECORD:
        return bel_dataset_from_tfrecord(
            &(bel_tfrecord_options){.size = sizeof(bel_tfrecord_options),
                                    .paths = (const char *const *)&f->tfrecord,
                                    .path_count = 1,
                                    .features = &feature,
                                    .feature_count = 1});
    case KINDS: break;
    }
    return NULL;
}

// The record's number in its files.
static int64_t number_of(const bel_input *input, file_kind kind, const bel_batch *batch,
                         int64_t row)
{
    if (kind != AN_IDX) return (int64_t)((const float *)batch_field(input, batch, "a")->data)[row];
    const float *x = (const float *)batch_field(input, batch, "x")->data + 2 * row;
    return (int64_t)x[0] * 256 + (int64_t)x[1];
}

static bel_status *keep_all(void *user, bel_record *record, bool *out_skip)
{
    (void)user, (void)record, (void)out_skip;
    return NULL;
}

// Opens two shuffled epochs, or one epoch in order if `seed` is 0.
static bel_input *open_kind(const files *f, file_kind kind, uint64_t seed, int64_t batch, bool maps)
{
    bel_dataset *data = dataset_of(f, kind);
    if (seed > 0) bel_dataset_shuffle(data, 0, seed);
    if (seed > 0) bel_dataset_repeat(data, 2);
    if (maps) bel_dataset_map(data, keep_all, NULL, NULL);
    bel_dataset_batch(data, batch);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(data, &input));
    return input;
}

// The records of both epochs, each looked up separately.
static int64_t naive(const files *f, file_kind kind, uint64_t seed, int64_t *out_numbers)
{
    bel_input *input = open_kind(f, kind, 0, 1, false);
    bel_batch *batch = bel_batch_create(input);
    int64_t count = bel_input_epoch_records(input);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        bel_permutation permutation;
        bel_permutation_init(&permutation, count, seed, 0, epoch, 0);
        for (int64_t i = 0; i < count; i++) {
            BEL_ASSERT_OK(bel_input_read(input, bel_permutation_at(&permutation, i), batch));
            out_numbers[epoch * count + i] = number_of(input, kind, batch, 0);
        }
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    return 2 * count;
}

static void assert_block(const bel_input *input, file_kind kind, bel_batch *batch, int64_t block,
                         const int64_t *expected, int64_t count)
{
    int64_t first = block * bel_input_batch_size(input);
    BEL_ASSERT_OK(bel_input_read(input, block, batch));
    int64_t left = count - first, size = bel_input_batch_size(input);
    assert_int_equal(batch->example_count, left < size ? left : size);
    for (int64_t row = 0; row < batch->example_count; row++)
        assert_int_equal(number_of(input, kind, batch, row), expected[first + row]);
}

// Blocks within an epoch, across two epochs and the short last one. Some have fewer records than
// the prefetch distance, some more than the dataset.
static void test_blocks_hold_the_same_records(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, BEL_AHEAD_DISTANCE, 64, 333, 5000};
    files f = write_files();
    for (int kind = 0; kind < KINDS; kind++) {
        int64_t expected[2 * RECORDS], count = naive(&f, (file_kind)kind, 9, expected);
        assert_int_equal(count, kind == A_HELD_OUT_CSV ? 2 * (RECORDS - 150) : 2 * RECORDS);
        for (size_t s = 0; s < 2 * sizeof sizes / sizeof *sizes; s++) {
            bel_input *input = open_kind(&f, (file_kind)kind, 9, sizes[s / 2], s % 2 == 1);
            bel_batch *batch = bel_batch_create(input);
            int64_t blocks = bel_input_block_count(input, true);
            assert_int_equal(blocks, (count + sizes[s / 2] - 1) / sizes[s / 2]);
            for (int64_t worker = 0; worker < 2; worker++) // workers take turns
                for (int64_t block = worker; block < blocks; block += 2)
                    assert_block(input, (file_kind)kind, batch, block, expected, count);
            bel_batch_destroy(batch);
            // A resumed run begins at any block.
            batch = bel_batch_create(input);
            assert_block(input, (file_kind)kind, batch, blocks / 3, expected, count);
            bel_batch_destroy(batch);
            bel_input_destroy(input);
        }
    }
    remove_files(&f);
}

// With two invalid records the error names the first in the block's order, though the other one was
// prefetched before that one was read.
static void test_the_first_wrong_record_is_the_error(void **state)
{
    (void)state;
    files f = write_files();
    int64_t numbers[2 * RECORDS];
    (void)naive(&f, A_TFRECORD, 9, numbers);
    char *data;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(f.tfrecord, &data, &size));
    for (int i = 2; i < 100; i += 97) // places 2 and 99 of the first block
        data[(size_t)(numbers[i] + 1) * (size / RECORDS) - 5] ^= 1;
    bel_free(f.tfrecord);
    f.tfrecord = bel_test_file(f.folder, "rows.tfrecord", data, size);
    bel_free(data);
    bel_dataset *dataset = dataset_of(&f, A_TFRECORD);
    bel_dataset_shuffle(dataset, 0, 9);
    bel_dataset_batch(dataset, 100);
    bel_input *input;
    BEL_ASSERT_OK(bel_input_open(dataset, &(bel_input_use){.at_once = true}, &input));
    bel_dataset_destroy(dataset);
    bel_batch *batch = bel_batch_create(input);
    char *expected = bel_strf("%s: record %lld: ", f.tfrecord, (long long)numbers[2]);
    BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), BEL_DATA_LOSS, expected);
    BEL_ASSERT_OK(bel_input_read(input, 1, batch));
    bel_free(expected);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    remove_files(&f);
}

// A file that becomes shorter between blocks is an error of the next block, before anything of it
// is fetched or read.
static void test_a_file_that_becomes_shorter(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        files f = write_files();
        char *paths[KINDS] = {f.csv, f.csv, f.images, f.tfrecord};
        bel_input *input = open_kind(&f, (file_kind)kind, 9, 64, false);
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        assert_int_equal(truncate(paths[kind], 100), 0);
        BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_DATA_LOSS, "has 100 now");
        bel_batch_destroy(batch);
        bel_input_destroy(input);
        remove_files(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_go_through_their_steps),
        cmocka_unit_test(test_records_in_order_are_left_to_the_processor),
        cmocka_unit_test(test_blocks_hold_the_same_records),
        cmocka_unit_test(test_the_first_wrong_record_is_the_error),
        cmocka_unit_test(test_a_file_that_becomes_shorter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
