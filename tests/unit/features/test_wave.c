// WAV files: every supported kind, and the errors for others.
#include <math.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/str.h"
#include "belfry/features.h"
#include "support/bel_test.h"
#include "unit/features/feature_files.h"

static bel_status *parse(const wav_case *it, const void *data, uint32_t size, bel_wave *out_wave)
{
    bel_str file = {0};
    put_wav(&file, it, data, size);
    bel_status *status = bel_wave_parse(file.text, file.length, "a.wav", out_wave);
    bel_str_deinit(&file);
    return status;
}

static void assert_wave(const wav_case *it, const void *data, uint32_t size, const float *expected,
                        int64_t count)
{
    bel_wave wave;
    BEL_ASSERT_OK(parse(it, data, size, &wave));
    assert_int_equal(wave.sample_rate, it->rate);
    assert_int_equal(wave.sample_count, count);
    for (int64_t i = 0; i < count; i++)
        assert_memory_equal(&wave.samples[i], &expected[i], sizeof expected[i]);
    bel_wave_deinit(&wave);
    assert_null(wave.samples);
}

static void test_kinds_of_samples(void **state)
{
    (void)state;
    static const uint8_t u8[] = {0, 128, 192, 255};
    static const uint8_t i16[] = {0, 0x80, 0, 0, 0, 0x40, 0xFF, 0x7F};
    static const uint8_t i24[] = {0, 0, 0x80, 0, 0, 0, 0, 0, 0x40, 0xFF, 0xFF, 0xFF};
    static const uint8_t i32[] = {0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0xC0};
    static const float f32[] = {-1.5F, 0, 0.5F, 1e-3F};
    static const double f64[] = {-1.5, 0, 0.5, 1e-3};
    static const float of_u8[] = {-1, 0, 0.5F, 127.0F / 128};
    static const float of_i16[] = {-1, 0, 0.5F, 32767.0F / 32768};
    static const float of_i24[] = {-1, 0, 0.5F, -0x1p-23F};
    static const float of_i32[] = {-1, 0, 0.5F, -0.5F};
    for (int extensible = 0; extensible <= 1; extensible++) {
        wav_case it = {.code = 1, .channels = 1, .rate = 8000, .extensible = extensible == 1};
        it.bits = 8;
        assert_wave(&it, u8, sizeof u8, of_u8, 4);
        it.bits = 16;
        assert_wave(&it, i16, sizeof i16, of_i16, 4);
        it.bits = 24;
        assert_wave(&it, i24, sizeof i24, of_i24, 4);
        it.bits = 32;
        assert_wave(&it, i32, sizeof i32, of_i32, 4);
        it.code = 3;
        assert_wave(&it, f32, sizeof f32, f32, 4);
        it.bits = 64;
        assert_wave(&it, f64, sizeof f64, f32, 4);
    }
}

static void test_channels_are_mixed(void **state)
{
    (void)state;
    static const uint8_t stereo[] = {0, 0x40, 0, 0x20, 0, 0x80, 0, 0x80};
    static const float mean[] = {0.375F, -1};
    wav_case it = {.code = 1, .bits = 16, .channels = 2, .rate = 44100};
    assert_wave(&it, stereo, sizeof stereo, mean, 2);
    static const float three[] = {0.25F, 0.5F, 0.75F};
    static const float middle[] = {0.5F};
    it = (wav_case){.code = 3, .bits = 32, .channels = 3, .rate = 1};
    assert_wave(&it, three, sizeof three, middle, 1);
}

static void test_unusual_chunks(void **state)
{
    (void)state;
    static const uint8_t two[] = {0, 0x40, 0, 0x20};
    static const float expected[] = {0.5F, 0.25F};
    wav_case it = {.code = 1, .bits = 16, .channels = 1, .rate = 8000, .odd_chunk = true};
    assert_wave(&it, two, sizeof two, expected, 2);
    static const uint32_t of_streams[] = {UINT32_MAX, 0x7ffff000, 0x7fffefd8, 0x80000000};
    for (size_t i = 0; i < sizeof of_streams / sizeof of_streams[0]; i++) {
        it.data_size = of_streams[i]; // as written into a pipe
        assert_wave(&it, two, sizeof two, expected, 2);
        assert_wave(&it, two, 3, expected, 1); // half a sample at the end of such a file
    }

    bel_str file = {0};
    it.data_size = 0;
    put_wav(&file, &it, two, sizeof two);
    bel_str_append(&file, "LIST\xFF\xFF", 6); // bytes after the samples do not matter
    bel_wave wave;
    BEL_ASSERT_OK(bel_wave_parse(file.text, file.length, "a.wav", &wave));
    assert_int_equal(wave.sample_count, 2);
    bel_wave_deinit(&wave);
    bel_str_deinit(&file);
}

// A length of 0 means a stream, unless the header states the file's length.
static void test_no_length(void **state)
{
    (void)state;
    static const uint8_t two[] = {0, 0x40, 0, 0x20};
    static const uint32_t none = 0;
    wav_case it = {.code = 1, .bits = 16, .channels = 1, .rate = 8000};
    bel_str file = {0};
    bel_wave wave;
    put_wav(&file, &it, two, sizeof two);
    memcpy(file.text + file.length - sizeof two - 4, &none, 4);
    BEL_ASSERT_OK(bel_wave_parse(file.text, file.length, "a.wav", &wave));
    assert_int_equal(wave.sample_count, 2);
    bel_wave_deinit(&wave);
    const uint32_t length = (uint32_t)file.length - 8;
    memcpy(file.text + 4, &length, 4);
    BEL_ASSERT_FAILS(bel_wave_parse(file.text, file.length, "a.wav", &wave), BEL_DATA_LOSS,
                     "expected samples, got none");
    bel_str_deinit(&file);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const uint8_t data[16] = {0};
    static const struct {
        wav_case it;
        uint32_t size;
        const char *part;
    } cases[] = {
        {{.code = 1, .bits = 16, .channels = 1, .rate = 8000, .data_size = 18},
         16,
         "a.wav: expected 18 bytes of samples, as its header says, got 16: the file is cut off"},
        {{.code = 1, .bits = 16, .channels = 1, .rate = 8000}, 0, "expected samples, got none"},
        {{.code = 1, .bits = 16, .channels = 2, .rate = 8000}, 6, "got 6 bytes in all"},
        {{.code = 1, .bits = 12, .channels = 2, .rate = 8000}, 16, "format 1 of 12 bits"},
        {{.code = 3, .bits = 16, .channels = 1, .rate = 8000}, 16, "format 3 of 16 bits"},
        {{.code = 7, .bits = 8, .channels = 1, .rate = 8000}, 16, "format 7 (mu-law) of 8 bits"},
        {{.code = 1, .bits = 16, .channels = 0, .rate = 8000}, 16, "1 to 64 channels, got 0"},
        {{.code = 1, .bits = 8, .channels = 65, .rate = 8000}, 16, "1 to 64 channels, got 65"},
        {{.code = 1, .bits = 16, .channels = 1, .rate = 0}, 16, "1 to 1048576 Hz, got 0"},
        {{.code = 1, .bits = 16, .channels = 1, .rate = 2000000}, 16, "got 2000000"},
        {{.code = 6, .bits = 16, .channels = 1, .rate = 8000, .extensible = true}, 16, "(A-law)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_wave wave = {0};
        BEL_ASSERT_FAILS(parse(&cases[i].it, data, cases[i].size, &wave), BEL_DATA_LOSS,
                         cases[i].part);
        assert_null(wave.samples);
    }
}

static void test_other_files(void **state)
{
    (void)state;
    bel_wave wave;
    BEL_ASSERT_FAILS(bel_wave_parse("RIFF", 4, "x", &wave), BEL_DATA_LOSS, "expected a WAV file");
    BEL_ASSERT_FAILS(bel_wave_parse("RF64\0\0\0\0WAVE", 12, "x", &wave), BEL_DATA_LOSS, "(RF64)");
    BEL_ASSERT_FAILS(bel_wave_parse("RIFF\0\0\0\0WAVE", 12, "x", &wave), BEL_DATA_LOSS,
                     "expected a chunk \"fmt \"");
    BEL_ASSERT_FAILS(bel_wave_parse("RIFF\0\0\0\0WAVEdata\2\0\0\0ab", 22, "x", &wave),
                     BEL_DATA_LOSS, "\"fmt \", got none before the samples");
    BEL_ASSERT_FAILS(bel_wave_parse("RIFF\0\0\0\0WAVEnote\xFF\0\0\0ab", 22, "x", &wave),
                     BEL_DATA_LOSS, "a chunk of 255 bytes at byte 20, got 2: the file is cut off");
    bel_str file = {0};
    put_wav(&file, &(wav_case){.code = 1, .bits = 16, .channels = 1, .rate = 8000}, "", 0);
    BEL_ASSERT_FAILS(bel_wave_parse(file.text, file.length - 8, "x", &wave), BEL_DATA_LOSS,
                     "expected a chunk \"data\", got none");
    BEL_ASSERT_FAILS(bel_wave_parse(file.text, 26, "x", &wave), BEL_DATA_LOSS, "cut off");
    bel_str_deinit(&file);
}

static void test_samples_that_are_no_numbers(void **state)
{
    (void)state;
    static const float bad[] = {0, (float)INFINITY};
    static const double large[] = {1e300};
    bel_wave wave;
    wav_case it = {.code = 3, .bits = 32, .channels = 1, .rate = 8000};
    BEL_ASSERT_FAILS(parse(&it, bad, sizeof bad, &wave), BEL_DATA_LOSS, "got another at 1 of 2");
    it.bits = 64;
    BEL_ASSERT_FAILS(parse(&it, large, sizeof large, &wave), BEL_DATA_LOSS, "got another at 0");
}

static void test_files_by_path(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    bel_wave wave;
    char *empty = bel_test_file(folder, "empty.wav", "", 0);
    char *small = bel_test_file(folder, "small.wav", "RIFF1234", 8);
    char *missing = bel_strf("%s/missing.wav", folder), *pipe = bel_strf("%s/pipe", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    BEL_ASSERT_FAILS(bel_wave_read(missing, 0, &wave), BEL_NOT_FOUND, missing);
    BEL_ASSERT_FAILS(bel_wave_read(empty, 0, &wave), BEL_DATA_LOSS, "an empty file");
    BEL_ASSERT_FAILS(bel_wave_read(folder, 0, &wave), BEL_DATA_LOSS, "a folder");
    BEL_ASSERT_FAILS(bel_wave_read(pipe, 0, &wave), BEL_DATA_LOSS, "something else");
    BEL_ASSERT_FAILS(bel_wave_read(small, 7, &wave), BEL_DATA_LOSS,
                     "at most 7 bytes (max_bytes), got 8");
    BEL_ASSERT_FAILS(bel_wave_read(small, 8, &wave), BEL_DATA_LOSS, "expected a WAV file");
    BEL_ASSERT_FAILS(bel_wave_read(small, -1, &wave), BEL_INVALID_ARGUMENT, "max_bytes");
    bel_free(empty);
    bel_free(small);
    bel_free(missing);
    bel_free(pipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_of_samples),
        cmocka_unit_test(test_channels_are_mixed),
        cmocka_unit_test(test_unusual_chunks),
        cmocka_unit_test(test_no_length),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_samples_that_are_no_numbers),
        BEL_TEST_IN_FOLDER(test_files_by_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
