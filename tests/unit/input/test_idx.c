// IDX: bytes become scaled numbers. A header that does not fit its file is refused.
#include <zlib.h>

#include "base/str.h"
#include "unit/input/test_fixture.h"

// Three images of 2 × 2 and their labels, with room to damage them.
typedef struct idx_pair {
    char *folder;
    unsigned char images[16 + 12];
    unsigned char labels[8 + 3];
    char *images_path, *labels_path;
} idx_pair;

static void pair_init(idx_pair *pair)
{
    *pair = (idx_pair){
        .folder = bel_test_folder(),
        .images = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0,   0,
                   0, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 128, 255},
        .labels = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9},
    };
}

static void pair_write(idx_pair *pair, size_t images_size, size_t labels_size)
{
    bel_free(pair->images_path);
    bel_free(pair->labels_path);
    pair->images_path = bel_test_file(pair->folder, "images", pair->images, images_size);
    pair->labels_path = bel_test_file(pair->folder, "labels", pair->labels, labels_size);
}

static void pair_deinit(idx_pair *pair)
{
    bel_free(pair->images_path);
    bel_free(pair->labels_path);
    bel_test_remove_folder(pair->folder);
}

static bel_dataset *pair_dataset(const idx_pair *pair, int64_t class_count)
{
    bel_dataset *dataset =
        bel_dataset_from_idx(pair->images_path, pair->labels_path, 1.0 / 255, class_count);
    bel_dataset_batch(dataset, 2);
    return dataset;
}

// Checks both blocks of an undamaged pair.
static void assert_content(const idx_pair *pair)
{
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(pair_dataset(pair, 10), &input));
    assert_int_equal(bel_input_epoch_records(input), 3);
    bel_dtype dtype;
    bel_shape shape, expected = BEL_SHAPE(BEL_DIM_BATCH, 4);
    bel_input_field_spec(input, 0, &dtype, &shape);
    assert_string_equal(bel_input_field_name(input, 0), "x");
    assert_int_equal(dtype, BEL_DTYPE_F32);
    assert_true(bel_shape_equal(&shape, &expected));
    bel_batch *batch = bel_batch_create(input);
    for (int64_t block = 0; block < 2; block++) {
        BEL_ASSERT_OK(bel_input_read(input, block, batch));
        assert_int_equal(batch->example_count, block == 0 ? 2 : 1);
        const float *x = batch_field(input, batch, "x")->data;
        const int64_t *labels = batch_field(input, batch, BEL_LABEL_FIELD)->data;
        for (int64_t i = 0; i < batch->example_count * 4; i++)
            assert_true(x[i] == (float)(pair->images[16 + block * 8 + i] * (1.0 / 255)));
        for (int64_t i = 0; i < batch->example_count; i++)
            assert_int_equal(labels[i], pair->labels[8 + block * 2 + i]);
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_reads_plain_files(void **state)
{
    (void)state;
    idx_pair pair;
    pair_init(&pair);
    pair_write(&pair, sizeof pair.images, sizeof pair.labels);
    assert_content(&pair);
    pair_deinit(&pair);
}

static void write_packed(const char *path, const void *data, unsigned size)
{
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, data, size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

static void test_reads_packed_files(void **state)
{
    (void)state;
    idx_pair pair;
    pair_init(&pair);
    pair.images_path = bel_strf("%s/images.gz", pair.folder);
    pair.labels_path = bel_strf("%s/labels.gz", pair.folder);
    write_packed(pair.images_path, pair.images, sizeof pair.images);
    write_packed(pair.labels_path, pair.labels, sizeof pair.labels);
    assert_content(&pair);
    pair_deinit(&pair);
}

static void test_truncated_gz(void **state)
{
    (void)state;
    idx_pair pair;
    pair_init(&pair);
    pair_write(&pair, sizeof pair.images, sizeof pair.labels);
    bel_free(pair.images_path);
    char *whole = bel_strf("%s/whole.gz", pair.folder);
    write_packed(whole, pair.images, sizeof pair.images);
    FILE *file = fopen(whole, "rb");
    assert_non_null(file);
    char bytes[256];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size, 20, sizeof bytes - 1);
    pair.images_path = bel_test_file(pair.folder, "cut.gz", bytes, size - 10);
    BEL_ASSERT_FAILS(open_failing(pair_dataset(&pair, 0)), BEL_DATA_LOSS, "cut.gz");
    bel_free(whole);
    pair_deinit(&pair);
}

static void test_damaged_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        bool in_labels;
        int at; // index of the byte set to `value`; -1: none
        unsigned char value;
        size_t cut; // bytes missing at the end
        const char *part;
    } cases[] = {
        {false, 0, 1, 0, "images: "},
        {false, 2, 0x0d, 0, "type 0d"},
        {false, 3, 0, 0, "dimensions, got 0"},
        {false, 3, 5, 0, "dimensions, got 5"},
        {false, -1, 0, 1, "got 27"},
        {false, -1, 0, 14, "got a file of 14"},
        {false, -1, 0, 25, "3 bytes"},
        {false, 7, 2, 0, "got 28"},
        {false, 7, 4, 0, "in all 32 bytes; got 28"},
        {false, 4, 255, 0, "got 28"},
        {true, 3, 2, 0, "labels: "},
        {true, 7, 4, 0, "in all 12 bytes; got 11"},
        {true, -1, 0, 1, "in all 11 bytes; got 10"},
        {true, 10, 10, 0, "record 2: expected a label in 0..9, got 10"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        idx_pair pair;
        pair_init(&pair);
        unsigned char *bytes = cases[i].in_labels ? pair.labels : pair.images;
        if (cases[i].at >= 0) bytes[cases[i].at] = cases[i].value;
        pair_write(&pair, sizeof pair.images - (cases[i].in_labels ? 0 : cases[i].cut),
                   sizeof pair.labels - (cases[i].in_labels ? cases[i].cut : 0));
        BEL_ASSERT_FAILS(open_failing(pair_dataset(&pair, 10)), BEL_DATA_LOSS, cases[i].part);
        pair_deinit(&pair);
    }
}

static void test_images_and_labels_must_be_as_many(void **state)
{
    (void)state;
    idx_pair pair;
    pair_init(&pair);
    pair.labels[7] = 2;
    pair_write(&pair, sizeof pair.images, sizeof pair.labels - 1);
    BEL_ASSERT_FAILS(open_failing(pair_dataset(&pair, 10)), BEL_DATA_LOSS, "expected 3 labels");
    pair_deinit(&pair);
}

static void test_missing_files(void **state)
{
    (void)state;
    idx_pair pair;
    pair_init(&pair);
    pair_write(&pair, sizeof pair.images, sizeof pair.labels);
    bel_free(pair.labels_path);
    pair.labels_path = bel_strf("%s/nothing", pair.folder);
    BEL_ASSERT_FAILS(open_failing(pair_dataset(&pair, 10)), BEL_NOT_FOUND, "nothing");
    pair_deinit(&pair);
}

// Without labels and with every rank.
static void test_ranks_one_to_four(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[24];
        size_t size;
        int64_t row;
    } cases[] = {
        {{0, 0, 8, 1, 0, 0, 0, 2, 5, 6}, 10, 1},
        {{0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6}, 14, 2},
        {{0, 0, 8, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 5, 6}, 22, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *folder = bel_test_folder();
        char *path = bel_test_file(folder, "images", cases[i].bytes, cases[i].size);
        bel_dataset *dataset = bel_dataset_from_idx(path, NULL, 1, 0);
        bel_dataset_batch(dataset, 1);
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        assert_int_equal(bel_input_field_count(input), 1);
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        assert_int_equal(batch->fields[0].shape.rank, 2);
        assert_int_equal(batch->fields[0].shape.dims[1], cases[i].row);
        assert_true(*(const float *)batch->fields[0].data == 5);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
        bel_free(path);
        bel_test_remove_folder(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_plain_files),
        cmocka_unit_test(test_reads_packed_files),
        cmocka_unit_test(test_truncated_gz),
        cmocka_unit_test(test_damaged_headers_are_refused),
        cmocka_unit_test(test_images_and_labels_must_be_as_many),
        cmocka_unit_test(test_missing_files),
        cmocka_unit_test(test_ranks_one_to_four),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
