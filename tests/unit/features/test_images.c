// Images: every supported kind against stored pixels, and operations on pixels against an
// independent computation (image_oracle.py).
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "belfry/features.h"
#include "features/image.h"
#include "support/bel_test.h"
#include "unit/features/image_oracle.inc"

enum { H = ORACLE_HEIGHT, W = ORACLE_WIDTH };

// The test picture; free with bel_image_deinit.
static bel_image picture(int64_t channels)
{
    bel_image image = bel_image_make(H, W, channels);
    memcpy(image.pixels, channels == 3 ? picture_rgb : picture_gray, (size_t)(H * W * channels));
    return image;
}

static void assert_pixels(const bel_image *image, int64_t height, int64_t width, int64_t channels,
                          const uint8_t *expected, int most)
{
    assert_int_equal(image->height, height);
    assert_int_equal(image->width, width);
    assert_int_equal(image->channels, channels);
    for (int64_t i = 0; i < height * width * channels; i++) {
        if (abs(image->pixels[i] - expected[i]) > most)
            fail_msg("pixel %lld, %lld, %lld: expected %d, got %d",
                     (long long)(i / channels / width), (long long)(i / channels % width),
                     (long long)(i % channels), expected[i], image->pixels[i]);
    }
}

#define READS(data, channels, expected) assert_reads(data, sizeof(data), channels, expected, #data)

static void assert_reads(const uint8_t *data, size_t size, int64_t channels,
                         const uint8_t *expected, const char *name)
{
    bel_image image;
    bel_image_read_options options = {.size = sizeof options, .channels = channels};
    BEL_ASSERT_OK(bel_image_parse(data, size, name, &options, &image));
    assert_pixels(&image, H, W, channels, expected, 0);
    bel_image_deinit(&image);
    assert_null(image.pixels);
}

// One of three channels.
static const uint8_t *gray_of(const uint8_t *pixels)
{
    static uint8_t gray[H * W];
    bel_image image = bel_image_make(H, W, 3);
    memcpy(image.pixels, pixels, (size_t)H * W * 3);
    image = bel_image_with_channels(image, 1);
    memcpy(gray, image.pixels, sizeof gray);
    bel_image_deinit(&image);
    return gray;
}

static const uint8_t *three_of(const uint8_t *pixels)
{
    static uint8_t three[H * W * 3];
    for (int i = 0; i < H * W * 3; i++)
        three[i] = pixels[i / 3];
    return three;
}

static void test_jpeg(void **state)
{
    (void)state;
    READS(jpeg_baseline, 3, jpeg_baseline_pixels);
    READS(jpeg_progressive, 3, jpeg_progressive_pixels);
    READS(jpeg_full, 3, jpeg_full_pixels);
    READS(jpeg_gray, 3, jpeg_grey_pixels);
    READS(jpeg_inks, 3, jpeg_inks_pixels);
    READS(jpeg_inks, 1, gray_of(jpeg_inks_pixels));
    READS(jpeg_gray, 1, gray_of(jpeg_grey_pixels));
    bel_image image; // gray is the brightness stored in the file
    BEL_ASSERT_OK(bel_image_parse(
        jpeg_full, sizeof jpeg_full, "a",
        &(bel_image_read_options){.size = sizeof(bel_image_read_options), .channels = 1}, &image));
    assert_pixels(&image, H, W, 1, gray_of(jpeg_full_pixels), 12);
    bel_image_deinit(&image);
}

static void test_png(void **state)
{
    (void)state;
    READS(png_rgb, 3, picture_rgb);
    READS(png_rgb, 1, picture_gray);
    READS(png_alpha, 3, picture_rgb);
    READS(png_interlaced, 3, picture_rgb);
    READS(png_gray, 1, picture_gray);
    READS(png_gray, 3, three_of(picture_gray));
    READS(png_16, 1, picture_gray);
    READS(png_palette, 3, png_palette_pixels);
    READS(png_bit, 1, png_bit_pixels);
}

static void assert_pnm(const char *head, const void *data, size_t size, int64_t channels,
                       const uint8_t *expected, int64_t count)
{
    bel_str file = {0};
    bel_str_puts(&file, head);
    bel_str_append(&file, data, size);
    bel_image image;
    BEL_ASSERT_OK(bel_image_parse(
        file.text, file.length, "a.pnm",
        &(bel_image_read_options){.size = sizeof(bel_image_read_options), .channels = channels},
        &image));
    assert_int_equal(image.height * image.width * image.channels, count);
    assert_memory_equal(image.pixels, expected, (size_t)count);
    bel_image_deinit(&image);
    bel_str_deinit(&file);
}

static void test_pnm(void **state)
{
    (void)state;
    static const uint8_t wide[] = {0, 0, 0x7F, 0xFF, 0xFF, 0xFF}, of_wide[] = {0, 127, 255};
    static const uint8_t small[] = {0, 1, 7, 15}, of_small[] = {0, 17, 119, 255};
    assert_pnm("P6\n21 13\n255\n", picture_rgb, sizeof picture_rgb, 3, picture_rgb, H * W * 3);
    assert_pnm("P6 21\t13 255 ", picture_rgb, sizeof picture_rgb, 1, picture_gray, H * W);
    assert_pnm("P5\n# a comment\n 21 # another 99\n13\n255\n", picture_gray, sizeof picture_gray, 1,
               picture_gray, H * W);
    assert_pnm("P5\n3 1\n65535\n", wide, sizeof wide, 1, of_wide, 3);
    assert_pnm("P5\n2 2\n15\n", small, sizeof small, 1, of_small, 4);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        size_t size;
    } cases[] = {
        {"GIF89a", "expected a JPEG, PNG, or binary PGM or PPM file, got a GIF", 6},
        {"P3\n1 1\n255\n0 0 0", "a PPM in letters", 15},
        {"hello", "got another", 5},
        {"P5\n2 2\n255\nabc", "expected 4 bytes of pixels, got 3: the file is cut off", 14},
        {"P5\n2 2\n255", "another header", 10},
        {"P5\n2 -2\n255\nabcd", "another header", 16},
        {"P5\n2 9999999999\n255\nabcd", "another header", 24},
        {"P5\n0 2\n255\n", "at least one pixel, got 0 x 2", 11},
        {"P5\n2 2\n0\nabcd", "another header", 13},
        {"P5\n2 2\n65536\nabcd", "another header", 17},
        {"P5\n20000 20000\n255\nabcd", "at most 100000000 pixels (max_pixels), got 20000 x 20000",
         23},
        {"P5\n2 2\n98\nabcd", "at most 98, got a larger one at 2", 14},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_image image = {0};
        BEL_ASSERT_FAILS(bel_image_parse(cases[i].text, cases[i].size, "a.x", NULL, &image),
                         BEL_DATA_LOSS, cases[i].part);
        assert_null(image.pixels);
    }
    bel_image image;
    bel_image_read_options options = {.size = sizeof options, .max_pixels = H * W - 1};
    BEL_ASSERT_FAILS(bel_image_parse(png_rgb, sizeof png_rgb, "a.png", &options, &image),
                     BEL_DATA_LOSS, "a.png: expected at most 272 pixels (max_pixels), got 21 x 13");
    BEL_ASSERT_FAILS(bel_image_parse(jpeg_full, sizeof jpeg_full, "a.jpg", &options, &image),
                     BEL_DATA_LOSS, "got 21 x 13");
    options = (bel_image_read_options){.size = sizeof(bel_image_read_options), .channels = 4};
    BEL_ASSERT_FAILS(bel_image_parse(png_rgb, sizeof png_rgb, "a", &options, &image),
                     BEL_INVALID_ARGUMENT, "1 or 3 channels, got 4");
    options = (bel_image_read_options){.size = sizeof(bel_image_read_options), .max_pixels = -1};
    BEL_ASSERT_FAILS(bel_image_parse(png_rgb, sizeof png_rgb, "a", &options, &image),
                     BEL_INVALID_ARGUMENT, "max_pixels");
}

// A JPEG is decoded at half, quarter or eighth size if that suffices. The result is never smaller
// than required, and a PNG always has full size.
static void test_enough(void **state)
{
    (void)state;
    static const struct {
        int64_t enough_height, enough_width, height, width;
    } cases[] = {{H, W, H, W}, {8, 1, H, W}, {7, 11, 7, 11}, {4, 6, 4, 6},
                 {1, 6, 4, 6}, {2, 3, 2, 3}, {1, 1, 2, 3},   {99, 99, H, W}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_image_read_options options = {.size = sizeof options,
                                          .enough_height = cases[i].enough_height,
                                          .enough_width = cases[i].enough_width};
        bel_image image;
        BEL_ASSERT_OK(bel_image_parse(jpeg_baseline, sizeof jpeg_baseline, "a", &options, &image));
        assert_int_equal(image.height, cases[i].height);
        assert_int_equal(image.width, cases[i].width);
        bel_image_deinit(&image);
        BEL_ASSERT_OK(bel_image_parse(png_rgb, sizeof png_rgb, "a", &options, &image));
        assert_int_equal(image.width, W);
        bel_image_deinit(&image);
    }
}

// --- Pixels --------------------------------------------------------------------------------------

static void test_resize_against_the_oracle(void **state)
{
    (void)state;
    bel_image image = picture(3), out;
    BEL_ASSERT_OK(bel_image_resize(&image, 7, 9, BEL_IMAGE_BILINEAR, &out));
    assert_pixels(&out, 7, 9, 3, resized_7_9, 1);
    bel_image_deinit(&out);
    BEL_ASSERT_OK(bel_image_resize(&image, 30, 11, BEL_IMAGE_BILINEAR, &out));
    assert_pixels(&out, 30, 11, 3, resized_30_11, 1);
    bel_image_deinit(&out);
    BEL_ASSERT_OK(bel_image_resize(&image, 2, 50, BEL_IMAGE_BILINEAR, &out));
    assert_pixels(&out, 2, 50, 3, resized_2_50, 1);
    bel_image_deinit(&out);
    BEL_ASSERT_OK(bel_image_resize(&image, H, W, BEL_IMAGE_BILINEAR, &out));
    assert_pixels(&out, H, W, 3, picture_rgb, 0);
    bel_image_deinit(&out);
    bel_image_deinit(&image);
}

static void test_nearest(void **state)
{
    (void)state;
    bel_image image = picture(1), out;
    BEL_ASSERT_OK(bel_image_resize(&image, 2 * H, 5, BEL_IMAGE_NEAREST, &out));
    for (int y = 0; y < 2 * H; y++) {
        static const int columns[] = {2, 6, 10, 14, 18}; // (i + 0.5) · 21 / 5
        for (int x = 0; x < 5; x++)
            assert_int_equal(out.pixels[y * 5 + x], picture_gray[y / 2 * W + columns[x]]);
    }
    bel_image_deinit(&out);
    BEL_ASSERT_FAILS(bel_image_resize(&image, 0, 5, BEL_IMAGE_NEAREST, &out), BEL_INVALID_ARGUMENT,
                     "1..65536");
    BEL_ASSERT_FAILS(bel_image_resize(&image, 5, 65537, BEL_IMAGE_NEAREST, &out),
                     BEL_INVALID_ARGUMENT, "65537");
    BEL_ASSERT_FAILS(bel_image_resize(&image, 60000, 60000, BEL_IMAGE_NEAREST, &out),
                     BEL_INVALID_ARGUMENT, "at most 100000000 pixels, got 60000 x 60000");
    BEL_ASSERT_FAILS(bel_image_resize(&image, 5, 5, (bel_image_filter)3, &out),
                     BEL_INVALID_ARGUMENT, "filter 3");
    bel_image_deinit(&image);
}

// Scaling only a part gives the same bits as cropping the scaled image. One color stays that
// color at any size.
static void test_parts_and_constants(void **state)
{
    (void)state;
    bel_image image = picture(3), whole;
    BEL_ASSERT_OK(bel_image_resize(&image, 17, 10, BEL_IMAGE_BILINEAR, &whole));
    bel_image_scaling s = {.window_height = H, .window_width = W, .height = 17, .width = 10};
    s.part_height = 6;
    s.part_width = 4;
    for (s.part_top = 0; s.part_top <= 11; s.part_top++) {
        for (s.part_left = 0; s.part_left <= 6; s.part_left++) {
            bel_image part = bel_image_scale(&image, &s), expected;
            BEL_ASSERT_OK(bel_image_crop(&whole, s.part_top, s.part_left, 6, 4, &expected));
            assert_pixels(&part, 6, 4, 3, expected.pixels, 0);
            bel_image_deinit(&part);
            bel_image_deinit(&expected);
        }
    }
    bel_image_deinit(&whole);
    for (int value = 0; value < 256; value += 51) {
        memset(image.pixels, value, (size_t)H * W * 3);
        for (int64_t size = 1; size < 60; size += 7) {
            BEL_ASSERT_OK(bel_image_resize(&image, size, 61 - size, BEL_IMAGE_BILINEAR, &whole));
            for (int64_t i = 0; i < size * (61 - size) * 3; i++)
                assert_int_equal(whole.pixels[i], value);
            bel_image_deinit(&whole);
        }
    }
    bel_image_deinit(&image);
}

static void test_crop(void **state)
{
    (void)state;
    bel_image image = picture(3), out;
    BEL_ASSERT_OK(bel_image_crop(&image, -2, 5, 10, 30, &out));
    for (int64_t y = 0; y < 10; y++) {
        for (int64_t x = 0; x < 30; x++) {
            for (int64_t c = 0; c < 3; c++) {
                int expected = y < 2 || x + 5 >= W ? 0 : picture_rgb[((y - 2) * W + x + 5) * 3 + c];
                assert_int_equal(out.pixels[(y * 30 + x) * 3 + c], expected);
            }
        }
    }
    bel_image_deinit(&out);
    BEL_ASSERT_OK(bel_image_crop(&image, 100, -100, 2, 3, &out)); // outside the image
    for (int i = 0; i < 18; i++)
        assert_int_equal(out.pixels[i], 0);
    bel_image_deinit(&out);
    BEL_ASSERT_FAILS(bel_image_crop(&image, INT64_MIN, 0, 2, 3, &out), BEL_INVALID_ARGUMENT,
                     "near");
    bel_image_deinit(&image);
}

static void test_turn_and_flip(void **state)
{
    (void)state;
    bel_image image = picture(3), out, again;
    BEL_ASSERT_OK(bel_image_turn(&image, 1, &out)); // right becomes top
    assert_int_equal(out.height, W);
    assert_memory_equal(out.pixels, picture_rgb + (W - 1) * 3, 3);
    assert_memory_equal(out.pixels + 3, picture_rgb + (2 * W - 1) * 3, 3);
    bel_image_deinit(&out);
    for (int64_t quarters = -5; quarters < 9; quarters++) {
        BEL_ASSERT_OK(bel_image_turn(&image, quarters, &out));
        BEL_ASSERT_OK(bel_image_turn(&out, -quarters, &again));
        assert_pixels(&again, H, W, 3, picture_rgb, 0);
        bel_image_deinit(&out);
        bel_image_deinit(&again);
    }
    bel_image_flip(&image);
    for (int x = 0; x < W; x++)
        assert_memory_equal(image.pixels + x * 3, picture_rgb + (W - 1 - x) * 3, 3);
    bel_image_flip(&image);
    assert_pixels(&image, H, W, 3, picture_rgb, 0);
    bel_image_deinit(&image);
}

static void test_rotate(void **state)
{
    (void)state;
    bel_image image = picture(3), out;
    BEL_ASSERT_OK(bel_image_rotate(&image, 17, &out));
    assert_pixels(&out, H, W, 3, rotated_17, 1);
    bel_image_deinit(&out);
    BEL_ASSERT_OK(bel_image_rotate(&image, -90, &out));
    assert_pixels(&out, H, W, 3, rotated_minus_90, 1);
    bel_image_deinit(&out);
    BEL_ASSERT_OK(bel_image_rotate(&image, 0, &out));
    assert_pixels(&out, H, W, 3, picture_rgb, 0);
    bel_image_deinit(&out);
    BEL_ASSERT_FAILS(bel_image_rotate(&image, (double)NAN, &out), BEL_INVALID_ARGUMENT, "angle");
    bel_image_deinit(&image);
}

static void test_normalize(void **state)
{
    (void)state;
    static const double mean[3] = {0.5, 0.25, 0}, deviation[3] = {0.5, 0, 2};
    bel_image image = picture(3);
    float out[3 * H * W];
    bel_image_normalize(&image, 0, mean, deviation, false, out);
    for (int i = 0; i < 3 * H * W; i++) {
        int c = i / (H * W), value = picture_rgb[i % (H * W) * 3 + c];
        double divisor = deviation[c] == 0 ? 1 : deviation[c];
        float expected = (float)((value / 255.0 - mean[c]) / divisor);
        assert_float_equal(out[i], expected, 1e-6F);
    }
    static const double none[3] = {0};
    bel_image_normalize(&image, 1, none, none, true, out);
    for (int i = 0; i < 3 * H * W; i++)
        assert_float_equal(out[i], picture_rgb[i], 0);
    bel_image_deinit(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jpeg),    cmocka_unit_test(test_png),
        cmocka_unit_test(test_pnm),     cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_enough),  cmocka_unit_test(test_resize_against_the_oracle),
        cmocka_unit_test(test_nearest), cmocka_unit_test(test_parts_and_constants),
        cmocka_unit_test(test_crop),    cmocka_unit_test(test_turn_and_flip),
        cmocka_unit_test(test_rotate),  cmocka_unit_test(test_normalize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
