// Audio features and resampling against an independent computation (audio_oracle.py), the
// resampler's frequency response, invalid options, and bits that never change.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/real.h"
#include "belfry/features.h"
#include "features/fft.h"
#include "support/bel_test.h"
#include "unit/features/audio_oracle.inc"

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

static const double pi = 3.14159265358979323846;

// Makes the oracle's signal.
static void make_signal(float *out, int64_t count)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = (state * 1103515245U + 12345U) & 0x7FFFFFFFU;
        int64_t noise = (int64_t)((state >> 15) & 0xFFFFU) - 32768, ramp = i * 37 % 400 * 20 - 4000;
        out[i] = (float)(i % 400 < 250 ? noise : ramp) / 32768.0F;
    }
}

static void assert_close(double got, double expected, double most)
{
    if (!(fabs(got - expected) <= most)) fail_msg("expected %.9g, got %.9g", expected, got);
}

// Checks that each number is within `absolute` + `relative` · |expected| of the expected one.
static void assert_near(const float *got, const float *expected, int64_t count, double absolute,
                        double relative)
{
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)got[i] - (double)expected[i]);
        double most = absolute + relative * fabs((double)expected[i]);
        if (!(difference <= most))
            fail_msg("number %lld: expected %.9g, got %.9g", (long long)i, (double)expected[i],
                     (double)got[i]);
    }
}

static void assert_features(bel_audio_options options, int64_t sample_count, const float *expected,
                            int64_t count, double absolute, double relative)
{
    float samples[1000];
    make_signal(samples, 1000);
    bel_audio *audio;
    BEL_ASSERT_OK(bel_audio_create(&options, &audio));
    int64_t frames = bel_audio_frame_count(audio, sample_count), width = bel_audio_width(audio);
    assert_int_equal(frames * width, count);
    float *out = bel_xmalloc((size_t)count * sizeof *out);
    bel_audio_compute(audio, samples, sample_count, out);
    assert_near(out, expected, count, absolute, relative);
    bel_free(out);
    bel_audio_destroy(audio);
}

static const bel_audio_options htk = {.size = sizeof htk, .sample_rate = 8000, .mel_count = 26};

static void test_features_against_the_oracle(void **state)
{
    (void)state;
    assert_features(htk, 1000, log_mel_htk, COUNT(log_mel_htk), 2e-5, 2e-6);
    bel_audio_options options = {
        .size = sizeof options, .window = BEL_WINDOW_HAMMING, .fft_size = 1024};
    options.mel_scale = BEL_MEL_SLANEY;
    options.low_hz = 80;
    options.high_hz = 7600;
    assert_features(options, 1000, log_mel_slaney, COUNT(log_mel_slaney), 2e-5, 2e-6);
    options = htk;
    options.kind = BEL_AUDIO_MFCC;
    options.delta_order = 2;
    assert_features(options, 1000, mfcc_with_slopes, COUNT(mfcc_with_slopes), 5e-5, 2e-6);
    options = (bel_audio_options){.size = sizeof(bel_audio_options),
                                  .kind = BEL_AUDIO_POWER,
                                  .sample_rate = 1000,
                                  .frame_ms = 50,
                                  .hop_ms = 20};
    assert_features(options, 300, power_64, COUNT(power_64), 1e-5, 1e-5);
    assert_features(options, 30, power_short, COUNT(power_short), 1e-5, 1e-5);
}

// The values of a frame depend only on its samples: not on the other frames of its group, nor on
// the end of the sound.
static void test_frames_stand_alone(void **state)
{
    (void)state;
    float samples[1000], all[200 * 26], one[26];
    make_signal(samples, 1000);
    bel_audio *audio;
    BEL_ASSERT_OK(bel_audio_create(&htk, &audio));
    bel_audio_compute(audio, samples, 1000, all);
    int64_t frames = bel_audio_frame_count(audio, 1000);
    assert_int_equal(frames, 11);
    for (int64_t i = 0; i < frames; i++) {
        bel_audio_compute(audio, samples + i * 80, 200, one);
        assert_memory_equal(one, all + i * 26, sizeof one);
    }
    bel_audio_destroy(audio);
}

// Compares every power of two with sums of products in double.
static void test_all_sizes_of_transforms(void **state)
{
    (void)state;
    enum { L = BEL_FFT_LANES, MOST = 512 };
    static float frames[MOST * L], power[(MOST / 2 + 1) * L], samples[MOST * L];
    make_signal(samples, MOST * L);
    for (int64_t size = 2; size <= MOST; size *= 2) {
        bel_fft *fft = bel_fft_create(size);
        float *scratch = bel_xmalloc((size_t)bel_fft_scratch(fft) * sizeof *scratch);
        memcpy(frames, samples, (size_t)(size * L) * sizeof *frames);
        bel_fft_power(fft, frames, scratch, power);
        for (int64_t k = 0; k <= size / 2; k += size / 8 + 1) {
            for (int64_t lane = 0; lane < L; lane++) {
                double re = 0, im = 0;
                for (int64_t i = 0; i < size; i++) {
                    double angle = -2 * pi * (double)(i * k % size) / (double)size;
                    re += (double)samples[i * L + lane] * bel_real_cos(angle);
                    im += (double)samples[i * L + lane] * bel_real_sin(angle);
                }
                double expected = re * re + im * im;
                assert_close((double)power[k * L + lane], expected, 1e-5 * (double)size);
            }
        }
        bel_free(scratch);
        bel_fft_destroy(fft);
    }
}

// --- Resampling ----------------------------------------------------------------------------------

static void assert_resampled(int64_t from, int64_t to, int64_t count, const float *expected,
                             int64_t expected_count)
{
    float samples[1000];
    make_signal(samples, 1000);
    bel_wave wave = {samples, count, from}, out;
    BEL_ASSERT_OK(bel_wave_resample(&wave, to, &out));
    assert_int_equal(out.sample_rate, to);
    assert_int_equal(out.sample_count, expected_count);
    assert_near(out.samples, expected, expected_count, 2e-6, 0);
    bel_wave_deinit(&out);
}

static void test_resampling_against_the_oracle(void **state)
{
    (void)state;
    assert_resampled(44100, 48000, 120, up_44100_48000, COUNT(up_44100_48000));
    assert_resampled(44100, 16000, 400, down_44100_16000, COUNT(down_44100_16000));
    assert_resampled(8000, 16000, 60, up_8000_16000, COUNT(up_8000_16000));
}

// Amplitude of a tone of `hz` after resampling, from its mean square under a Hann window. The
// window leaves out the ends of the sound and makes the number of periods irrelevant.
static double resampled_level(int64_t from, int64_t to, double hz)
{
    enum { SAMPLES = 16000 };
    static float tone[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        tone[i] = (float)bel_real_sin(2 * pi * hz * i / (double)from);
    bel_wave wave = {tone, SAMPLES, from}, out;
    BEL_ASSERT_OK(bel_wave_resample(&wave, to, &out));
    double squares = 0, weights = 0;
    for (int64_t i = out.sample_count / 8; i < out.sample_count * 7 / 8; i++) {
        double place = (double)i / (double)out.sample_count;
        double weight = 1 - bel_real_cos(2 * pi * (place - 0.125) / 0.75);
        squares += weight * (double)out.samples[i] * (double)out.samples[i];
        weights += weight;
    }
    bel_wave_deinit(&out);
    return sqrt(2 * squares / weights);
}

// features.h promises gain 1 to within 0.01 dB (0.115 %) up to 84 % of the lower Nyquist frequency.
// A tone that would alias is 80 dB down (10^-4).
static void test_what_resampling_keeps_and_drops(void **state)
{
    (void)state;
    static const struct {
        int64_t from, to;
    } rates[] = {{44100, 16000}, {16000, 8000}, {48000, 44100}, {8000, 44100}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        int64_t lower = rates[i].from < rates[i].to ? rates[i].from : rates[i].to;
        static const double parts[] = {0.013, 0.31, 0.617, 0.84};
        for (size_t j = 0; j < sizeof parts / sizeof parts[0]; j++) {
            double level =
                resampled_level(rates[i].from, rates[i].to, parts[j] * (double)lower / 2);
            assert_close(level, 1, 0.00116);
        }
        if (rates[i].from < rates[i].to) continue;
        assert_true(resampled_level(rates[i].from, rates[i].to, 1.003 * (double)lower / 2) < 1e-4);
        if (10 * rates[i].from > 13 * lower)
            assert_true(resampled_level(rates[i].from, rates[i].to, 0.61 * (double)lower) < 1e-4);
    }
}

static void test_the_same_rate(void **state)
{
    (void)state;
    float samples[100];
    make_signal(samples, 100);
    bel_wave wave = {samples, 100, 8000}, out;
    BEL_ASSERT_OK(bel_wave_resample(&wave, 8000, &out));
    assert_int_equal(out.sample_count, 100);
    assert_memory_equal(out.samples, samples, sizeof samples);
    bel_wave_deinit(&out);
    float constant[500];
    for (int i = 0; i < 500; i++)
        constant[i] = 0.25F;
    wave = (bel_wave){constant, 500, 8000};
    BEL_ASSERT_OK(bel_wave_resample(&wave, 11025, &out));
    for (int64_t i = 100; i < 500; i++)
        assert_close((double)out.samples[i], 0.25, 1e-6);
    bel_wave_deinit(&out);
    BEL_ASSERT_FAILS(bel_wave_resample(&wave, 0, &out), BEL_INVALID_ARGUMENT, "1 to 1048576 Hz");
    BEL_ASSERT_FAILS(bel_wave_resample(&wave, 999983, &out), BEL_INVALID_ARGUMENT,
                     "smaller numbers");
}

// --- Options -------------------------------------------------------------------------------------

static void test_options_that_make_no_sense(void **state)
{
    (void)state;
    static const struct {
        bel_audio_options options;
        const char *part;
    } cases[] = {
        {{.sample_rate = -1}, "sample_rate"},
        {{.kind = (bel_audio_kind)7}, "kind 7"},
        {{.window = (bel_audio_window)7}, "window 7"},
        {{.mel_scale = (bel_mel_scale)7}, "mel_scale 7"},
        {{.mel_count = -1}, "mel_count"},
        {{.mel_count = 513}, "mel_count"},
        {{.mel_count = 20, .mfcc_count = 21}, "mfcc_count"},
        {{.low_hz = 8000}, "low_hz"},
        {{.high_hz = 8001}, "high_hz"},
        {{.low_hz = (double)NAN}, "low_hz"},
        {{.power_floor = -1}, "power_floor"},
        {{.delta_order = 3}, "delta_order"},
        {{.frame_ms = -1}, "frame_ms"},
        {{.frame_ms = 1e9}, "frame_ms"},
        {{.hop_ms = 0.001}, "hop_ms"},
        {{.fft_size = 500}, "power of two, from 512 for a frame of 400"},
        {{.fft_size = 256}, "fft_size"},
        {{.fft_size = 65536}, "fft_size"},
        {{.sample_rate = 8000, .mel_count = 100}, "mel band 1 of 100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_audio *audio = NULL;
        bel_audio_options options = cases[i].options;
        options.size = sizeof options;
        BEL_ASSERT_FAILS(bel_audio_create(&options, &audio), BEL_INVALID_ARGUMENT, cases[i].part);
        assert_null(audio);
    }
}

// The hash is stored here: any processor, compiler and ISA level must give these bits.
static void test_bits(void **state)
{
    (void)state;
    float samples[1000];
    make_signal(samples, 1000);
    bel_wave wave = {samples, 1000, 44100}, out;
    BEL_ASSERT_OK(bel_wave_resample(&wave, 48000, &out));
    bel_audio *audio;
    bel_audio_options options = {.size = sizeof options, .kind = BEL_AUDIO_MFCC, .delta_order = 1};
    BEL_ASSERT_OK(bel_audio_create(&options, &audio));
    int64_t count = bel_audio_frame_count(audio, out.sample_count) * bel_audio_width(audio);
    float *features = bel_xmalloc((size_t)count * sizeof *features);
    bel_audio_compute(audio, out.samples, out.sample_count, features);
    assert_int_equal(bel_hash64(out.samples, (size_t)out.sample_count * sizeof *out.samples),
                     0x3607022ec2b3708e);
    assert_int_equal(bel_hash64(features, (size_t)count * sizeof *features), 0x9dec6701f14e696c);
    bel_free(features);
    bel_audio_destroy(audio);
    bel_wave_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features_against_the_oracle),
        cmocka_unit_test(test_frames_stand_alone),
        cmocka_unit_test(test_all_sizes_of_transforms),
        cmocka_unit_test(test_resampling_against_the_oracle),
        cmocka_unit_test(test_what_resampling_keeps_and_drops),
        cmocka_unit_test(test_the_same_rate),
        cmocka_unit_test(test_options_that_make_no_sense),
        cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
