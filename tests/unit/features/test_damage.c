// Damaged files of every kind: cut off at every length, or with bits flipped and bytes replaced by
// a generator. Nothing crashes, hangs or takes too much memory (under the address sanitizer). Cut
// files are refused; every refusal is DATA_LOSS and names the file.
#include "base/alloc.h"
#include "base/rng.h"
#include "base/str.h"
#include "belfry/features.h"
#include "support/bel_test.h"
#include "unit/features/feature_files.h"
#include "unit/features/image_oracle.inc"

typedef enum verdict { READ, REFUSED } verdict;

// Reads the data as audio or as an image.
static verdict try_file(const uint8_t *data, size_t size, bool wave)
{
    bel_status *status;
    if (wave) {
        bel_wave out = {0};
        status = bel_wave_parse(data, size, "the file", &out);
        if (status == NULL) assert_true(out.sample_count >= 1);
        bel_wave_deinit(&out);
    } else {
        static const bel_image_read_options options = {.size = sizeof options,
                                                       .max_pixels = 100000};
        bel_image out = {0};
        status = bel_image_parse(data, size, "the file", &options, &out);
        if (status == NULL) assert_true(out.height * out.width <= 100000);
        bel_image_deinit(&out);
    }
    if (status == NULL) return READ;
    assert_int_equal(bel_status_code(status), BEL_DATA_LOSS);
    assert_non_null(strstr(bel_status_message(status), "the file"));
    bel_status_destroy(status);
    return REFUSED;
}

// Reads a copy that ends at the end of its memory, so that the sanitizer sees a read past it.
static verdict try_copy(const uint8_t *data, size_t size, bool wave)
{
    uint8_t *copy = bel_xmalloc(size);
    memcpy(copy, data, size);
    verdict result = try_file(copy, size, wave);
    bel_free(copy);
    return result;
}

// Checks that a file cut anywhere is refused; the last `spare` bytes are not needed.
static void assert_cuts_refused(const uint8_t *data, size_t size, size_t spare, bool wave,
                                const char *name)
{
    assert_int_equal(try_copy(data, size, wave), READ);
    for (size_t length = 0; length + spare < size; length++) {
        if (try_copy(data, length, wave) == READ)
            fail_msg("%s cut off at %zu is read", name, length);
    }
}

// Flips bits and replaces bytes; returns the number of refused files.
static int damage(const uint8_t *data, size_t size, bool wave, int rounds)
{
    int refused = 0;
    bel_rng_key key = bel_rng_key_make(15, "damage", size);
    uint8_t *copy = bel_xmalloc(size);
    for (int round = 0; round < rounds; round++) {
        uint32_t words[4];
        memcpy(copy, data, size);
        int changes = 1 + round % 3;
        for (int i = 0; i < changes; i++) {
            bel_rng_block(key, (uint64_t)round, (uint64_t)i, words);
            size_t at = words[0] % size;
            // Headers contain the sizes, so every second change is made there.
            if (words[3] % 2 == 0) at = words[0] % (size < 64 ? size : 64);
            if (words[1] % 2 == 0) {
                copy[at] ^= (uint8_t)(1U << words[2] % 8);
            } else {
                copy[at] = (uint8_t)words[2];
            }
        }
        if (try_file(copy, size, wave) == REFUSED) refused++;
    }
    bel_free(copy);
    return refused;
}

typedef struct sample {
    const char *name;
    const uint8_t *data;
    size_t size;
    size_t spare;    // bytes at the end that reading does not need
    int least_share; // percent of damaged files that must be refused
} sample;

#define SAMPLE(array, spare, share)                                                                \
    {                                                                                              \
#array, array, sizeof(array), spare, share                                                 \
    }

// PNG has checksums; its last bytes belong to IEND. In a JPEG many flipped bits only change the
// picture.
static const sample samples[] = {
    SAMPLE(jpeg_baseline, 0, 20), SAMPLE(jpeg_progressive, 0, 20), SAMPLE(jpeg_gray, 0, 20),
    SAMPLE(jpeg_inks, 0, 10),     SAMPLE(png_rgb, 0, 90),          SAMPLE(png_interlaced, 0, 90),
    SAMPLE(png_palette, 0, 90),   SAMPLE(png_16, 0, 90),           SAMPLE(png_bit, 0, 90),
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static void test_images_cut_off(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        assert_cuts_refused(samples[i].data, samples[i].size, samples[i].spare, false,
                            samples[i].name);
    bel_str file = {0};
    bel_str_puts(&file, "P6\n21 13\n255\n");
    bel_str_append(&file, (const char *)picture_rgb, sizeof picture_rgb);
    assert_cuts_refused((const uint8_t *)file.text, file.length, 0, false, "pnm");
    bel_str_deinit(&file);
}

static void test_images_damaged(void **state)
{
    (void)state;
    enum { ROUNDS = 1500 };
    for (int i = 0; i < SAMPLES; i++) {
        int refused = damage(samples[i].data, samples[i].size, false, ROUNDS);
        if (refused * 100 < samples[i].least_share * ROUNDS)
            fail_msg("%s: only %d of %d damaged files were refused", samples[i].name, refused,
                     ROUNDS);
    }
    bel_str file = {0};
    bel_str_puts(&file, "P6\n21 13\n255\n");
    bel_str_append(&file, (const char *)picture_rgb, sizeof picture_rgb);
    assert_true(damage((const uint8_t *)file.text, file.length, false, ROUNDS) > 0);
    bel_str_deinit(&file);
}

static void test_waves(void **state)
{
    (void)state;
    static const wav_case cases[] = {
        {.code = 1, .bits = 16, .channels = 2, .rate = 8000, .odd_chunk = true},
        {.code = 3, .bits = 64, .channels = 1, .rate = 44100, .extensible = true},
        {.code = 1, .bits = 24, .channels = 1, .rate = 8000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_str file = {0};
        uint8_t data[48] = {0};
        put_wav(&file, &cases[i], data, sizeof data);
        assert_cuts_refused((const uint8_t *)file.text, file.length, 0, true, "wav");
        assert_true(damage((const uint8_t *)file.text, file.length, true, 5000) > 1000);
        bel_str_deinit(&file);
    }
}

// A small file with a large size in its header: refused before memory is allocated. The largest
// sizes that the formats can express must not overflow either.
static void test_bombs(void **state)
{
    (void)state;
    uint8_t png[sizeof png_rgb], jpeg[sizeof jpeg_baseline];
    memcpy(png, png_rgb, sizeof png);
    memcpy(png + 16, "\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF", 8);
    assert_int_equal(try_file(png, sizeof png, false), REFUSED);
    memcpy(jpeg, jpeg_baseline, sizeof jpeg);
    for (size_t i = 0; i + 9 < sizeof jpeg; i++) {
        if (jpeg[i] == 0xFF && jpeg[i + 1] == 0xC0) memcpy(jpeg + i + 5, "\xFF\xDC\xFF\xDC", 4);
    }
    bel_image image;
    BEL_ASSERT_FAILS(bel_image_parse(jpeg, sizeof jpeg, "a.jpg", NULL, &image), BEL_DATA_LOSS,
                     "at most 100000000 pixels (max_pixels), got 65500 x 65500");
    bel_status *status = bel_image_parse(png, sizeof png, "a.png", NULL, &image);
    assert_int_equal(bel_status_code(status), BEL_DATA_LOSS);
    bel_status_destroy(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_cut_off),
        cmocka_unit_test(test_images_damaged),
        cmocka_unit_test(test_waves),
        cmocka_unit_test(test_bombs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
