// label: threads
// Maps over files that a CSV file names: from paths to batches, errors with the row and the file,
// and augmentation. Augmentation depends only on seed, record and epoch, not on the order of
// reading, on batches or on threads.
#include <math.h>
#include <sys/stat.h>

#include "base/str.h"
#include "belfry/features.h"
#include "unit/features/feature_files.h"
#include "unit/features/image_oracle.inc"
#include "unit/input/test_fixture.h"

enum { H = ORACLE_HEIGHT, W = ORACLE_WIDTH };

// Writes a CSV file of paths in the test's folder. Its files are in a folder below.
static char *write_list(const char *text)
{
    return bel_test_file(bel_test_own_folder(), "list.csv", text, strlen(text));
}

static void write_file(const char *name, const void *data, size_t size)
{
    char *folder = bel_strf("%s/files", bel_test_own_folder());
    mkdir(folder, 0700); // exists from the second call on
    bel_free(bel_test_file(folder, name, data, size));
    bel_free(folder);
}

static bel_dataset *list(const char *path)
{
    static const bel_csv_column columns[] = {{"path", BEL_DTYPE_STRING}, {"number", BEL_DTYPE_I64}};
    return bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                   .paths = (const char *[]){path},
                                                   .path_count = 1,
                                                   .columns = columns,
                                                   .column_count = 2});
}

// --- Audio ---------------------------------------------------------------------------------------

static void write_wav(const char *name, unsigned rate, uint32_t samples)
{
    bel_str file = {0};
    int16_t data[4000];
    for (uint32_t i = 0; i < samples; i++)
        data[i] = (int16_t)(i * i % 20011 - 10000);
    wav_case it = {.code = 1, .bits = 16, .channels = 1, .rate = rate};
    put_wav(&file, &it, data, samples * 2);
    write_file(name, file.text, file.length);
    bel_str_deinit(&file);
}

static bel_dataset *sounds(const char *path, const bel_audio_options *options)
{
    bel_dataset *data = list(path);
    bel_dataset_map_audio(data, options);
    bel_dataset_padded_batch(data, 3, &(bel_padded_shape){"x", BEL_SHAPE(-1, 26)}, 1);
    return data;
}

static const bel_audio_options small = {
    .size = sizeof small, .sample_rate = 8000, .mel_count = 26, .length_field = BEL_LENGTH_FIELD};

static void test_audio(void **state)
{
    (void)state;
    write_wav("a.wav", 8000, 400);
    write_wav("b.wav", 8000, 1000);
    write_wav("c.wav", 16000, 801);
    char *path = write_list("path,number\nfiles/a.wav,0\nfiles/b.wav,1\nfiles/c.wav,2\n");
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(sounds(path, &small), &input));
    assert_int_equal(bel_input_field_count(input), 3); // number, x, length: the path is not kept
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    const bel_tensor *x = batch_field(input, batch, "x");
    bel_shape shape = BEL_SHAPE(3, 11, 26);
    assert_true(bel_shape_equal(&x->shape, &shape));
    const int64_t *lengths = batch_field(input, batch, BEL_LENGTH_FIELD)->data;
    static const int64_t expected[] = {3, 11, 3};
    assert_memory_equal(lengths, expected, sizeof expected);

    // Computes the same by hand for the file that is resampled.
    char *file = bel_strf("%s/files/c.wav", bel_test_own_folder());
    bel_wave wave, at_rate;
    bel_audio *audio;
    float features[3 * 26];
    BEL_ASSERT_OK(bel_wave_read(file, 0, &wave));
    BEL_ASSERT_OK(bel_wave_resample(&wave, 8000, &at_rate));
    BEL_ASSERT_OK(bel_audio_create(&small, &audio));
    assert_int_equal(bel_audio_frame_count(audio, at_rate.sample_count), 3);
    bel_audio_compute(audio, at_rate.samples, at_rate.sample_count, features);
    assert_memory_equal(features, (const float *)x->data + 2 * 11 * 26, sizeof features);
    bel_audio_destroy(audio);
    bel_wave_deinit(&wave);
    bel_wave_deinit(&at_rate);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(file);
    bel_free(path);
}

static void test_folder_of_paths(void **state)
{
    (void)state;
    write_wav("a.wav", 8000, 400);
    char *folder = bel_strf("%s/files", bel_test_own_folder());
    char *text = bel_strf("path,number\na.wav,0\n%s/a.wav,1\n", folder), *path = write_list(text);
    bel_audio_options options = small;
    options.file.folder = folder;
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(sounds(path, &options), &input));
    memset(folder, '?', strlen(folder)); // the map copied the texts of its options
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    const float *x = batch_field(input, batch, "x")->data;
    assert_memory_equal(x, x + 3 * 26, 3 * 26 * sizeof *x);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(folder);
    bel_free(text);
    bel_free(path);
}

static void test_errors_of_audio(void **state)
{
    (void)state;
    write_wav("a.wav", 8000, 0);
    write_wav("b.wav", 999983, 100);
    static const struct {
        const char *text, *part;
        bel_code code;
        bel_audio_options options;
    } cases[] = {
        {"path,number\nfiles/a.wav,0\n",
         "files/a.wav: expected samples, got none",
         BEL_DATA_LOSS,
         {0}},
        {"path,number\nfiles/a.wav,0\n", "list.csv:2: ", BEL_DATA_LOSS, {0}},
        {"path,number\nfiles/none.wav,0\n", "files/none.wav", BEL_NOT_FOUND, {0}},
        {"path,number\nfiles/b.wav,0\n", "smaller numbers", BEL_INVALID_ARGUMENT, {0}},
        {"path,number\n,0\n",
         "list.csv:2: field \"path\": expected the path of a file, got an empty",
         BEL_DATA_LOSS,
         {0}},
        {"path,number\nfiles/a.wav,0\n", "mel_count", BEL_INVALID_ARGUMENT, {.mel_count = -3}},
        {"path,number\nfiles/a.wav,0\n", "max_bytes", BEL_DATA_LOSS, {.file = {.max_bytes = 43}}},
        {"path,number\nfiles/a.wav,0\n",
         "a text field \"number\"",
         BEL_INVALID_ARGUMENT,
         {.file = {.path_field = "number"}}},
        {"path,number\nfiles/a.wav,0\n",
         "a text field \"file\"",
         BEL_INVALID_ARGUMENT,
         {.file = {.path_field = "file"}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *path = write_list(cases[i].text);
        bel_audio_options options = cases[i].options;
        options.size = sizeof options;
        BEL_ASSERT_FAILS(open_failing(sounds(path, &options)), cases[i].code, cases[i].part);
        bel_free(path);
    }
}

// --- Images --------------------------------------------------------------------------------------

enum { RECORDS = 6, EPOCHS = 3, BATCH = 4, OUT = 8 };

static char *write_images(void)
{
    bel_str text = {0};
    bel_str_puts(&text, "path,number\n");
    for (int i = 0; i < RECORDS; i++)
        bel_str_printf(&text, "files/p.png,%d\n", i);
    write_file("p.png", png_rgb, sizeof png_rgb);
    write_file("j.jpg", jpeg_baseline, sizeof jpeg_baseline);
    char *path = write_list(text.text);
    bel_str_deinit(&text);
    return path;
}

static bel_dataset *images(const char *path, const bel_image_options *options)
{
    bel_dataset *data = list(path);
    bel_dataset_shuffle(data, 0, 5);
    bel_dataset_repeat(data, EPOCHS);
    bel_dataset_map_image(data, options);
    bel_dataset_batch(data, BATCH);
    return data;
}

// Pictures of one run, by epoch and number, each of shape [3, OUT, OUT].
typedef struct run {
    float pictures[EPOCHS][RECORDS][3 * OUT * OUT];
} run;

static int64_t forwards(void *context, int64_t index)
{
    return index < *(const int64_t *)context ? index : BEL_BLOCK_END;
}

// Reads all blocks: last to first, or ahead on three threads.
static void make_run(const char *path, const bel_image_options *options, bool threads, run *out)
{
    bel_dataset *data = images(path, options);
    if (threads) bel_dataset_prefetch(data, 3, 3);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(data, &input));
    int64_t blocks = bel_input_block_count(input, true);
    bel_prefetch *prefetch = NULL;
    if (threads) BEL_ASSERT_OK(bel_prefetch_start(input, forwards, &blocks, 1, NULL, 1, &prefetch));
    bel_batch *own = bel_batch_create(input);
    for (int64_t i = 0; i < blocks; i++) {
        const bel_batch *batch = own;
        if (threads) {
            BEL_ASSERT_OK(bel_prefetch_take(prefetch, &batch));
        } else {
            BEL_ASSERT_OK(bel_input_read(input, blocks - 1 - i, own));
        }
        const int64_t *numbers = batch_field(input, batch, "number")->data;
        const float *x = batch_field(input, batch, "x")->data;
        for (int64_t j = 0; j < batch->example_count; j++) {
            int64_t epoch = (batch->block * BATCH + j) / RECORDS;
            memcpy(out->pictures[epoch][numbers[j]], x + j * 3 * OUT * OUT,
                   sizeof out->pictures[0][0]);
        }
    }
    if (threads) bel_prefetch_stop(prefetch);
    bel_batch_destroy(own);
    bel_input_destroy(input);
}

static bool same(const float *a, const float *b)
{
    return memcmp(a, b, sizeof(float) * 3 * OUT * OUT) == 0;
}

static void test_augmentation(void **state)
{
    (void)state;
    char *path = write_images();
    static run first, second;
    bel_image_options crop = {.size = sizeof crop,
                              .height = OUT,
                              .width = OUT,
                              .resize_short = 12,
                              .random_crop = true,
                              .random_flip = 0.5,
                              .random_rotate = 20,
                              .random_turn = true,
                              .seed = 7};
    bel_image_options area = {
        .size = sizeof area, .height = OUT, .width = OUT, .random_area = 0.2, .seed = 7};
    bel_image_options pad = {
        .size = sizeof pad, .height = OUT, .width = OUT, .pad = 3, .random_crop = true, .seed = 7};
    const bel_image_options *all[] = {&crop, &area, &pad};
    for (int i = 0; i < 3; i++) {
        make_run(path, all[i], false, &first);
        make_run(path, all[i], true, &second);
        assert_memory_equal(&first, &second, sizeof first);
        // All records are one picture, so differences are random: between the records of an epoch,
        // and between the epochs of a record.
        int between_records = 0, between_epochs = 0;
        for (int a = 1; a < EPOCHS * RECORDS; a++) {
            const float *picture = first.pictures[a / RECORDS][a % RECORDS];
            between_records += a % RECORDS > 0 && same(picture, first.pictures[a / RECORDS][0]);
            between_epochs += a >= RECORDS && same(picture, first.pictures[0][a % RECORDS]);
        }
        assert_in_range(between_records, 0, 3); // out of 15
        assert_in_range(between_epochs, 0, 3);  // out of 12
        bel_image_options other = *all[i];
        other.seed = 8;
        make_run(path, &other, false, &second);
        assert_true(memcmp(&first, &second, sizeof first) != 0);
    }
    bel_free(path);
}

// About half of the pictures are mirrored and no others change.
static void test_flip(void **state)
{
    (void)state;
    char *path = write_images();
    static run plain, flipped;
    bel_image_options options = {.size = sizeof options, .height = OUT, .width = OUT};
    make_run(path, &options, false, &plain);
    options.random_flip = 0.5;
    make_run(path, &options, false, &flipped);
    int mirrored = 0;
    for (int a = 0; a < EPOCHS * RECORDS; a++) {
        const float *before = plain.pictures[a / RECORDS][a % RECORDS];
        const float *after = flipped.pictures[a / RECORDS][a % RECORDS];
        if (same(before, after)) continue;
        mirrored++;
        for (int i = 0; i < 3 * OUT * OUT; i++)
            assert_memory_equal(&after[i], &before[i / OUT * OUT + OUT - 1 - i % OUT],
                                sizeof *after);
    }
    assert_in_range(mirrored, 4, 14); // out of 18
    options.random_flip = 1;
    make_run(path, &options, false, &flipped);
    assert_false(same(plain.pictures[0][0], flipped.pictures[0][0]));
    bel_free(path);
}

// Without random options the pictures equal those of resize, crop in the middle and normalize.
static void test_same_as_by_hand(void **state)
{
    (void)state;
    char *path = write_images();
    static run got;
    bel_image_options options = {.size = sizeof options,
                                 .height = OUT,
                                 .width = OUT,
                                 .resize_short = 10,
                                 .mean = {0.5, 0.4, 0.3},
                                 .deviation = {0.2, 0.3, 0.4}};
    make_run(path, &options, false, &got);
    bel_image image, scaled, cropped;
    float expected[3 * OUT * OUT];
    BEL_ASSERT_OK(bel_image_parse(png_rgb, sizeof png_rgb, "p", NULL, &image));
    BEL_ASSERT_OK(bel_image_resize(&image, 10, 16, BEL_IMAGE_BILINEAR, &scaled)); // 13 : 21
    BEL_ASSERT_OK(bel_image_crop(&scaled, 1, 4, OUT, OUT, &cropped));
    bel_image_normalize(&cropped, 0, options.mean, options.deviation, false, expected);
    assert_memory_equal(got.pictures[0][0], expected, sizeof expected);
    bel_image_deinit(&image);
    bel_image_deinit(&scaled);
    bel_image_deinit(&cropped);
    bel_free(path);
}

// Sizes as in the file, gray, channels last.
static void test_as_in_the_file(void **state)
{
    (void)state;
    char *path = write_images();
    bel_image_options options = {
        .size = sizeof options, .channels = 1, .channels_last = true, .scale = 1, .field = "gray"};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(images(path, &options), &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    const bel_tensor *gray = batch_field(input, batch, "gray");
    bel_shape shape = BEL_SHAPE(BATCH, H, W, 1);
    assert_true(bel_shape_equal(&gray->shape, &shape));
    for (int i = 0; i < H * W; i++)
        assert_int_equal(((const float *)gray->data)[i], picture_gray[i]);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

static void test_options_of_images(void **state)
{
    (void)state;
    char *path = write_images();
    static const struct {
        bel_image_options options;
        const char *part;
    } cases[] = {
        {{.channels = 2}, "channels"},
        {{.height = 8}, "got 8 x 0"},
        {{.height = 8, .width = -1}, "-1"},
        {{.filter = (bel_image_filter)5}, "filter 5"},
        {{.resize_short = 8}, "expected a height and width"},
        {{.random_crop = true}, "expected a height and width"},
        {{.height = 8, .width = 9, .resize_short = 8},
         "resize_short of at least height and width (9)"},
        {{.height = 8, .width = 8, .pad = -1}, "pad"},
        {{.height = 8, .width = 8, .random_area = 0.5, .pad = 1}, "random_area"},
        {{.height = 8, .width = 8, .random_area = 1.5}, "in 0..1"},
        {{.random_flip = -0.5}, "in 0..1"},
        {{.random_rotate = 181}, "random_rotate"},
        {{.scale = (double)INFINITY}, "finite"},
        {{.max_pixels = -1}, "max_pixels"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_image_options wrong = cases[i].options;
        wrong.size = sizeof wrong;
        BEL_ASSERT_FAILS(open_failing(images(path, &wrong)), BEL_INVALID_ARGUMENT, cases[i].part);
    }
    bel_image_options options = {.size = sizeof options, .max_pixels = 100};
    BEL_ASSERT_FAILS(open_failing(images(path, &options)), BEL_DATA_LOSS,
                     "files/p.png: expected at most 100 pixels");
    bel_free(path);
}

static uint64_t fingerprint(bel_dataset *data)
{
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(data, &input));
    uint64_t found = bel_input_fingerprint(input);
    bel_input_destroy(input);
    return found;
}

// A training that continues from a checkpoint must have the same options; the files may be in
// another place.
static void test_options_enter_the_fingerprint(void **state)
{
    (void)state;
    write_wav("a.wav", 8000, 400);
    char *path = write_list("path,number\nfiles/a.wav,0\n");
    uint64_t before = fingerprint(sounds(path, &small));
    assert_int_equal(fingerprint(sounds(path, &small)), before);
    bel_audio_options changed[5];
    for (int i = 0; i < 5; i++)
        changed[i] = small;
    changed[0].window = BEL_WINDOW_HAMMING;
    changed[1].low_hz = 20;
    changed[2].power_floor = 1e-9;
    changed[3].mel_scale = BEL_MEL_SLANEY;
    changed[4].fft_size = 512;
    for (int i = 0; i < 5; i++)
        assert_int_not_equal(fingerprint(sounds(path, &changed[i])), before);
    bel_audio_options other_place = small;
    other_place.file.folder = bel_test_own_folder();
    assert_int_equal(fingerprint(sounds(path, &other_place)), before);
    bel_free(path);

    path = write_images();
    bel_image_options plain = {.size = sizeof plain, .height = OUT, .width = OUT};
    before = fingerprint(images(path, &plain));
    const bel_image_options others[] = {
        {.height = OUT, .width = OUT, .seed = 1},
        {.height = OUT, .width = OUT, .random_flip = 0.5},
        {.height = OUT, .width = OUT, .mean = {0, 0, 1}},
        {.height = OUT, .width = OUT, .resize_short = OUT},
        {.height = OUT, .width = OUT, .channels_last = true},
    };
    for (int i = 0; i < 5; i++) {
        bel_image_options other = others[i];
        other.size = sizeof other;
        assert_int_not_equal(fingerprint(images(path, &other)), before);
    }
    bel_free(path);
}

// Checks that random numbers are uniform in [0, 1): each tenth gets a tenth of them. Numbers of two
// indices are uncorrelated.
static bel_status *draw(void *user, bel_record *record, bool *out_skip)
{
    (void)user, (void)out_skip;
    double *out = bel_record_add(record, "u", BEL_DTYPE_F64, &BEL_SHAPE(2));
    out[0] = bel_record_random(record, 3, 0);
    out[1] = bel_record_random(record, 3, 1);
    return NULL;
}

static void test_chance(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static int64_t ids[COUNT];
    bel_dataset *data = numbered(ids, COUNT);
    bel_dataset_map(data, draw, NULL, NULL);
    bel_dataset_batch(data, COUNT);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(data, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    const double *u = batch_field(input, batch, "u")->data;
    int parts[10] = {0};
    double product = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(u[2 * i] >= 0 && u[2 * i] < 1);
        parts[(int)(u[2 * i] * 10)]++;
        product += (u[2 * i] - 0.5) * (u[2 * i + 1] - 0.5);
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(parts[i], COUNT / 10 - 250, COUNT / 10 + 250); // six deviations
    assert_true(fabs(product / COUNT) < 0.004);                        // uncorrelated
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_audio),
        BEL_TEST_IN_FOLDER(test_folder_of_paths),
        BEL_TEST_IN_FOLDER(test_errors_of_audio),
        BEL_TEST_IN_FOLDER(test_augmentation),
        BEL_TEST_IN_FOLDER(test_flip),
        BEL_TEST_IN_FOLDER(test_same_as_by_hand),
        BEL_TEST_IN_FOLDER(test_as_in_the_file),
        BEL_TEST_IN_FOLDER(test_options_of_images),
        BEL_TEST_IN_FOLDER(test_options_enter_the_fingerprint),
        cmocka_unit_test(test_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
