// Pixels do not depend on the processor. Child processes decode with libjpeg-turbo's vector code
// disabled, and limited to SSE2: the bits are the same at every scale and for every kind. The
// stored hash compares this machine with others.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "belfry/features.h"
#include "support/bel_test.h"
#include "unit/features/image_oracle.inc"

static uint64_t hash_of(const uint8_t *data, size_t size, int64_t enough, int64_t channels,
                        uint64_t before)
{
    bel_image image;
    bel_image_read_options options = {.size = sizeof options,
                                      .channels = channels,
                                      .enough_height = enough,
                                      .enough_width = enough};
    bel_status *status = bel_image_parse(data, size, "a.jpg", &options, &image);
    if (status != NULL) abort(); // a child process has no test to fail
    size_t bytes = (size_t)(image.height * image.width * image.channels);
    uint64_t hash = bel_hash64_more(before, image.pixels, bytes);
    bel_image_deinit(&image);
    return hash;
}

static uint64_t hash_all(void)
{
    uint64_t hash = 0;
    for (int64_t enough = 0; enough <= 4; enough++) {
        for (int64_t channels = 1; channels <= 3; channels += 2) {
            hash = hash_of(jpeg_baseline, sizeof jpeg_baseline, enough, channels, hash);
            hash = hash_of(jpeg_progressive, sizeof jpeg_progressive, enough, channels, hash);
            hash = hash_of(jpeg_full, sizeof jpeg_full, enough, channels, hash);
            hash = hash_of(jpeg_gray, sizeof jpeg_gray, enough, channels, hash);
            hash = hash_of(jpeg_inks, sizeof jpeg_inks, enough, channels, hash);
            hash = hash_of(jpeg_large_420, sizeof jpeg_large_420, 12 * enough, channels, hash);
            hash = hash_of(jpeg_large_422, sizeof jpeg_large_422, 12 * enough, channels, hash);
            hash = hash_of(jpeg_large_444, sizeof jpeg_large_444, 12 * enough, channels, hash);
        }
    }
    return hash;
}

// Runs in a child, since the library reads the environment once. NULL: the environment unchanged.
static uint64_t hash_in_child(const char *variable)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (variable != NULL) setenv(variable, "1", 1);
        uint64_t hash = hash_all();
        _exit(write(ends[1], &hash, sizeof hash) == (ssize_t)sizeof hash ? 0 : 1);
    }
    close(ends[1]);
    uint64_t hash = 0;
    assert_int_equal(read(ends[0], &hash, sizeof hash), sizeof hash);
    close(ends[0]);
    int state;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_int_equal(state, 0);
    return hash;
}

static void test_vector_code_makes_the_same_bits(void **state)
{
    (void)state;
    uint64_t hash = hash_in_child(NULL);
    assert_int_equal(hash_in_child("JSIMD_FORCENONE"), hash);
    assert_int_equal(hash_in_child("JSIMD_FORCESSE2"), hash);
    assert_int_equal(hash, 0x26613bb95d262022);
}

// Compares this machine's later processing of pixels with the stored hash.
static void test_pixels_make_the_same_bits(void **state)
{
    (void)state;
    static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
    uint64_t hash = 0;
    float out[3 * 40 * 70];
    for (int64_t channels = 1; channels <= 3; channels += 2) {
        bel_image image, turned, scaled;
        BEL_ASSERT_OK(bel_image_parse(
            png_rgb, sizeof png_rgb, "a.png",
            &(bel_image_read_options){.size = sizeof(bel_image_read_options), .channels = channels},
            &image));
        for (int angle = -40; angle < 50; angle += 13) {
            BEL_ASSERT_OK(bel_image_rotate(&image, angle, &turned));
            int64_t height = 41 + angle, width = 70 - angle / 2;
            if (height > 40) height = 40;
            BEL_ASSERT_OK(bel_image_resize(&turned, height, width > 70 ? 70 : width,
                                           BEL_IMAGE_BILINEAR, &scaled));
            bel_image_normalize(&scaled, 0, mean, deviation, angle > 0, out);
            hash = bel_hash64_more(hash, out,
                                   sizeof *out * (size_t)(scaled.height * scaled.width * channels));
            bel_image_deinit(&turned);
            bel_image_deinit(&scaled);
        }
        bel_image_deinit(&image);
    }
    assert_int_equal(hash, 0x34fdb2b56511ceeb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_code_makes_the_same_bits),
        cmocka_unit_test(test_pixels_make_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
