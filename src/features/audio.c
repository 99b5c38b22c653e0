// Features of a sound: frames under a window, their power spectrum, mel bands, logarithm, cosine
// transform, slopes. Values that depend only on options are computed at creation. A call of
// bel_audio_compute allocates separate scratch memory, so any number of threads may share one
// object. Frames are processed in groups of BEL_FFT_LANES, of which the last may be partly empty. A
// frame's numbers do not depend on its group.
#include "features/audio.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/real.h"
#include "base/sized.h"
#include "features/fft.h"
#include "features/mel.h"

enum { L = BEL_FFT_LANES, MAX_FFT = 1 << 15, MAX_RATE = 1 << 20, MAX_BANDS = 512 };

struct bel_audio {
    bel_audio_options options; // with defaults filled in; its texts are not used
    int64_t frame, hop;        // samples
    int64_t base_width;        // numbers of a frame without slopes
    float *window;             // [frame]
    bel_fft *fft;
    bel_mel_bank bank; // empty for BEL_AUDIO_POWER
    double *dct;       // [mfcc_count, mel_count], NULL unless BEL_AUDIO_MFCC
};

static bool within(double value, double low, double high) // false for NaN
{
    return value >= low && value <= high;
}

static int64_t samples_of(double ms, int64_t rate)
{
    return (int64_t)floor(ms * (double)rate / 1000 + 0.5);
}

static void fill_defaults(bel_audio_options *options)
{
    if (options->sample_rate == 0) options->sample_rate = 16000;
    if (options->frame_ms == 0) options->frame_ms = 25;
    if (options->hop_ms == 0) options->hop_ms = 10;
    if (options->mel_count == 0) options->mel_count = 40;
    if (options->high_hz == 0) options->high_hz = (double)options->sample_rate / 2;
    if (options->power_floor == 0) options->power_floor = 1e-10;
    if (options->mfcc_count == 0)
        options->mfcc_count = options->mel_count < 13 ? options->mel_count : 13;
}

// Checks the options that do not depend on a frame's samples.
static bel_status *check_numbers(const bel_audio_options *o)
{
    if (o->sample_rate < 1 || o->sample_rate > MAX_RATE) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "audio: expected a sample_rate in 1..%d, got %lld",
                       MAX_RATE, (long long)o->sample_rate);
    }
    if (o->kind < BEL_AUDIO_LOG_MEL || o->kind > BEL_AUDIO_POWER) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "audio: there is no kind %d", (int)o->kind);
    }
    if (o->window < BEL_WINDOW_HANN || o->window > BEL_WINDOW_HAMMING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "audio: there is no window %d", (int)o->window);
    }
    if (o->mel_scale < BEL_MEL_HTK || o->mel_scale > BEL_MEL_SLANEY) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "audio: there is no mel_scale %d", (int)o->mel_scale);
    }
    if (o->mel_count < 1 || o->mel_count > MAX_BANDS || o->mfcc_count < 1 ||
        o->mfcc_count > o->mel_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "audio: expected a mel_count in 1..%d and an mfcc_count from 1 to that, got "
                       "%lld and %lld",
                       MAX_BANDS, (long long)o->mel_count, (long long)o->mfcc_count);
    }
    double nyquist = (double)o->sample_rate / 2;
    if (!within(o->low_hz, 0, nyquist) || !within(o->high_hz, 0, nyquist) ||
        o->low_hz >= o->high_hz) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "audio: expected 0 <= low_hz < high_hz <= %g (half of the sample rate), got "
                       "%g and %g",
                       nyquist, o->low_hz, o->high_hz);
    }
    if (!within(o->power_floor, 1e-37, 1e37)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "audio: expected a power_floor in 1e-37..1e37, got %g",
                       o->power_floor);
    }
    if (o->delta_order < 0 || o->delta_order > 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "audio: expected a delta_order in 0..2, got %lld",
                       (long long)o->delta_order);
    }
    return NULL;
}

// Sets frame, hop and the size of the transform.
static bel_status *set_frames(bel_audio *audio)
{
    bel_audio_options *o = &audio->options;
    double longest = 1000.0 * MAX_FFT / (double)o->sample_rate;
    if (!within(o->frame_ms, 0, longest) || !within(o->hop_ms, 0, 1e6) ||
        samples_of(o->frame_ms, o->sample_rate) < 1 || samples_of(o->hop_ms, o->sample_rate) < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "audio: expected a frame_ms of 1 to %d samples (%g ms) and a hop_ms of at "
                       "least one, got %g and %g ms",
                       MAX_FFT, longest, o->frame_ms, o->hop_ms);
    }
    audio->frame = samples_of(o->frame_ms, o->sample_rate);
    audio->hop = samples_of(o->hop_ms, o->sample_rate);
    int64_t smallest = 2;
    while (smallest < audio->frame)
        smallest *= 2;
    if (o->fft_size == 0) o->fft_size = smallest;
    if (o->fft_size < smallest || o->fft_size > MAX_FFT || (o->fft_size & (o->fft_size - 1)) != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "audio: expected an fft_size that is a power of two, from %lld for a frame "
                       "of %lld samples to %d, got %lld",
                       (long long)smallest, (long long)audio->frame, MAX_FFT,
                       (long long)o->fft_size);
    }
    return NULL;
}

static void make_window(bel_audio *audio)
{
    bool hann = audio->options.window == BEL_WINDOW_HANN;
    double offset = hann ? 0.5 : 0.54, swing = hann ? 0.5 : 0.46;
    audio->window = bel_xmalloc((size_t)audio->frame * sizeof *audio->window);
    for (int64_t i = 0; i < audio->frame; i++) {
        double angle = 2 * 3.14159265358979323846 * (double)i / (double)audio->frame;
        audio->window[i] = (float)(offset - swing * bel_real_cos(angle));
    }
}

static bel_status *audio_prepare(bel_audio *audio)
{
    bel_audio_options *o = &audio->options;
    fill_defaults(o);
    BEL_TRY(check_numbers(o));
    BEL_TRY(set_frames(audio));
    if (o->kind != BEL_AUDIO_POWER) BEL_TRY(bel_mel_bank_init(&audio->bank, o));
    make_window(audio);
    audio->fft = bel_fft_create(o->fft_size);
    switch (o->kind) {
    case BEL_AUDIO_LOG_MEL: audio->base_width = o->mel_count; break;
    case BEL_AUDIO_MFCC:
        audio->base_width = o->mfcc_count;
        audio->dct = bel_dct_table(o->mfcc_count, o->mel_count);
        break;
    case BEL_AUDIO_POWER: audio->base_width = o->fft_size / 2 + 1; break;
    }
    return NULL;
}

bel_status *bel_audio_create(const bel_audio_options *options, bel_audio **out_audio)
{
    bel_audio *audio = bel_xcalloc(1, sizeof *audio);
    bel_audio_options *copy = &audio->options;
    bel_status *status = bel_sized_take(copy, sizeof *copy, options, "bel_audio_options");
    if (status == NULL) status = audio_prepare(audio);
    if (status != NULL) {
        bel_audio_destroy(audio);
        return status;
    }
    *out_audio = audio;
    return NULL;
}

void bel_audio_destroy(bel_audio *audio)
{
    if (audio == NULL) return;
    bel_mel_bank_deinit(&audio->bank);
    bel_fft_destroy(audio->fft);
    bel_free(audio->window);
    bel_free(audio->dct);
    bel_free(audio);
}

int64_t bel_audio_sample_rate(const bel_audio *audio)
{
    return audio->options.sample_rate;
}

int64_t bel_audio_width(const bel_audio *audio)
{
    return audio->base_width * (1 + audio->options.delta_order);
}

int64_t bel_audio_frame_count(const bel_audio *audio, int64_t sample_count)
{
    if (sample_count <= audio->frame) return 1;
    return 1 + (sample_count - audio->frame) / audio->hop;
}

// --- One group of frames -------------------------------------------------------------------------

// Scratch memory of one call.
typedef struct frame_group {
    float *frames; // [fft_size, lanes]: zeros after the frame and in empty lanes
    float *fft;
    float *power;  // [bins, lanes]
    double *bands; // [mel_count, lanes]: logarithms
} frame_group;

static void group_init(const bel_audio *audio, frame_group *group)
{
    size_t size = (size_t)audio->options.fft_size, lanes = L;
    group->frames = bel_xcalloc(size * lanes, sizeof *group->frames);
    group->fft = bel_xmalloc((size_t)bel_fft_scratch(audio->fft) * sizeof *group->fft);
    group->power = bel_xmalloc((size / 2 + 1) * lanes * sizeof *group->power);
    group->bands = bel_xmalloc((size_t)(audio->bank.band_count + 1) * lanes * sizeof *group->bands);
}

static void group_deinit(frame_group *group)
{
    bel_free(group->frames);
    bel_free(group->fft);
    bel_free(group->power);
    bel_free(group->bands);
}

// Loads windowed samples of frame `number` into a lane, with zeros after the end of the sound.
static void load_frame(const bel_audio *audio, const float *samples, int64_t sample_count,
                       int64_t number, float *lane)
{
    int64_t begin = number * audio->hop, left = sample_count - begin;
    int64_t count = left < audio->frame ? left : audio->frame;
    for (int64_t i = 0; i < count; i++)
        lane[i * L] = samples[begin + i] * audio->window[i];
    for (int64_t i = count; i < audio->frame; i++)
        lane[i * L] = 0;
}

static void compute_bands(const bel_audio *audio, const float *power, double *out)
{
    double floor_power = audio->options.power_floor;
    for (int64_t band = 0; band < audio->bank.band_count; band++) {
        const bel_mel_band *at = &audio->bank.bands[band];
        const float *row = power + at->first * L;
        float sums[L] = {0};
        for (int64_t k = 0; k < at->count; k++) {
            for (int lane = 0; lane < L; lane++)
                sums[lane] += at->weights[k] * row[k * L + lane];
        }
        for (int lane = 0; lane < L; lane++) {
            double sum = (double)sums[lane];
            out[band * L + lane] = bel_real_log(sum > floor_power ? sum : floor_power);
        }
    }
}

// Stores the numbers of one lane, without slopes.
static void store_lane(const bel_audio *audio, const frame_group *group, int lane, float *out)
{
    int64_t bands = audio->bank.band_count;
    switch (audio->options.kind) {
    case BEL_AUDIO_LOG_MEL:
        for (int64_t i = 0; i < bands; i++)
            out[i] = (float)group->bands[i * L + lane];
        break;
    case BEL_AUDIO_MFCC:
        for (int64_t j = 0; j < audio->base_width; j++) {
            double sum = 0;
            for (int64_t i = 0; i < bands; i++)
                sum += audio->dct[j * bands + i] * group->bands[i * L + lane];
            out[j] = (float)sum;
        }
        break;
    case BEL_AUDIO_POWER:
        for (int64_t i = 0; i < audio->base_width; i++)
            out[i] = group->power[i * L + lane];
        break;
    }
}

void bel_audio_compute(const bel_audio *audio, const float *samples, int64_t sample_count,
                       float *out)
{
    int64_t count = bel_audio_frame_count(audio, sample_count), width = bel_audio_width(audio);
    frame_group group;
    group_init(audio, &group);
    for (int64_t first = 0; first < count; first += L) {
        int lanes = count - first < L ? (int)(count - first) : L;
        for (int lane = 0; lane < lanes; lane++)
            load_frame(audio, samples, sample_count, first + lane, group.frames + lane);
        bel_fft_power(audio->fft, group.frames, group.fft, group.power);
        compute_bands(audio, group.power, group.bands);
        for (int lane = 0; lane < lanes; lane++)
            store_lane(audio, &group, lane, out + (first + lane) * width);
    }
    group_deinit(&group);
    for (int64_t order = 1; order <= audio->options.delta_order; order++)
        bel_audio_slopes(out, count, width, (order - 1) * audio->base_width,
                         order * audio->base_width, audio->base_width);
}
