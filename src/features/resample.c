// Resampling by a ratio up / down in lowest terms. Output n is at input time n · down / up. Its
// integer part selects the samples, and its fraction, one of `up` phases, selects the weights:
//
//   out[n] = Σ_k x[i + k] · w_phase[k],   i = n · down div up,   phase = n · down mod up
//
// The weights are a sinc under a Kaiser window of 80 dB (Kaiser & Schafer 1980: beta, and the width
// of the transition). Its cutoff is a little below the lower Nyquist frequency, to leave room for
// the transition. Weights of a phase sum to 1, so that a constant stays unchanged. They are
// computed in double by base/real.h and rounded once; sums run over 16 lanes in a fixed order.
#include "features/resample.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/real.h"

enum {
    LANES = 16,
    ZERO_CROSSINGS = 32,
    MAX_RATE = 1 << 20,
    MAX_WEIGHTS = 1 << 22,
    MAX_SAMPLES = 1 << 28
};

static const double rolloff = 0.92; // cutoff over the lower Nyquist frequency
static const double beta = 7.857;   // 0.1102 (80 - 8.7)
static const double pi = 3.14159265358979323846;

struct bel_resampler {
    int64_t up, down;
    int64_t to_rate;
    int64_t reach;  // contributing samples before and after
    int64_t taps;   // 2 · reach, rounded up to a multiple of the lanes
    float *weights; // [up, taps]; the first is that of x[i + 1 - reach]
};

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Modified Bessel function of order 0 by its power series, whose terms are all positive.
static double bessel_i0(double x)
{
    double term = 1, sum = 1;
    for (int k = 1; k < 64; k++) {
        double half = x / (2 * k);
        term *= half * half;
        sum += term;
    }
    return sum;
}

// The weight of a sample at a distance of `t` input samples; `scale` is min(1, up / down).
static double weight_at(double t, double scale)
{
    double place = t * scale / ZERO_CROSSINGS; // within the window: -1 … 1
    if (place <= -1 || place >= 1) return 0;
    double angle = pi * rolloff * scale * t;
    double sinc = angle == 0 ? 1 : bel_real_sin(angle) / angle;
    return sinc * bessel_i0(beta * sqrt(1 - place * place));
}

static void fill_phase(const bel_resampler *resampler, int64_t phase, double scale, double *row)
{
    double sum = 0;
    for (int64_t k = 0; k < 2 * resampler->reach; k++) {
        double offset = (double)(k + 1 - resampler->reach);
        row[k] = weight_at((double)phase / (double)resampler->up - offset, scale);
        sum += row[k];
    }
    float *weights = resampler->weights + phase * resampler->taps;
    for (int64_t k = 0; k < 2 * resampler->reach; k++)
        weights[k] = (float)(row[k] / sum);
}

bel_status *bel_resampler_create(int64_t from_rate, int64_t to_rate, bel_resampler **out_resampler)
{
    if (from_rate < 1 || from_rate > MAX_RATE || to_rate < 1 || to_rate > MAX_RATE) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected sample rates of 1 to %d Hz, got %lld and %lld", MAX_RATE,
                       (long long)from_rate, (long long)to_rate);
    }
    int64_t divisor = greatest_divisor(from_rate, to_rate);
    int64_t up = to_rate / divisor, down = from_rate / divisor;
    double scale = up < down ? (double)up / (double)down : 1;
    int64_t reach = (int64_t)ceil(ZERO_CROSSINGS / scale);
    int64_t taps = (2 * reach + LANES - 1) / LANES * LANES;
    if (up * taps > MAX_WEIGHTS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "resampling from %lld to %lld Hz: expected a ratio of smaller numbers than "
                       "%lld : %lld, it would take %lld weights of at most %d",
                       (long long)from_rate, (long long)to_rate, (long long)up, (long long)down,
                       (long long)(up * taps), MAX_WEIGHTS);
    }
    bel_resampler *resampler = bel_xcalloc(1, sizeof *resampler);
    *resampler =
        (bel_resampler){.up = up, .down = down, .to_rate = to_rate, .reach = reach, .taps = taps};
    resampler->weights = bel_xcalloc((size_t)(up * taps), sizeof *resampler->weights);
    double *row = bel_xcalloc((size_t)(2 * reach), sizeof *row);
    for (int64_t phase = 0; phase < up && up != down; phase++)
        fill_phase(resampler, phase, scale, row);
    if (up == down) resampler->weights[reach - 1] = 1; // same rate: same samples
    bel_free(row);
    *out_resampler = resampler;
    return NULL;
}

void bel_resampler_destroy(bel_resampler *resampler)
{
    if (resampler == NULL) return;
    bel_free(resampler->weights);
    bel_free(resampler);
}

// `count` is a multiple of LANES.
static float resample_dot(const float *a, const float *b, int64_t count)
{
    float sums[LANES] = {0};
    for (int64_t i = 0; i < count; i += LANES) {
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; lane++)
            sums[lane] += sums[lane + half];
    }
    return sums[0];
}

bel_status *bel_resampler_run(const bel_resampler *resampler, const bel_wave *wave,
                              bel_wave *out_wave)
{
    int64_t up = resampler->up, down = resampler->down;
    int64_t count = (wave->sample_count * up + down - 1) / down;
    if (count > MAX_SAMPLES) {
        return BEL_ERR(BEL_DATA_LOSS, "expected at most %d samples at %lld Hz, got %lld",
                       MAX_SAMPLES, (long long)resampler->to_rate, (long long)count);
    }
    // Pads with silence, so that no output needs to check the ends.
    int64_t before = resampler->reach - 1, behind = resampler->taps + 1;
    float *padded = bel_xcalloc((size_t)(before + wave->sample_count + behind), sizeof *padded);
    memcpy(padded + before, wave->samples, (size_t)wave->sample_count * sizeof *padded);
    float *samples = bel_xmalloc((size_t)count * sizeof *samples);
    for (int64_t n = 0; n < count; n++) {
        int64_t at = n * down;
        samples[n] = resample_dot(padded + at / up, resampler->weights + at % up * resampler->taps,
                                  resampler->taps);
    }
    bel_free(padded);
    *out_wave =
        (bel_wave){.samples = samples, .sample_count = count, .sample_rate = resampler->to_rate};
    return NULL;
}

bel_status *bel_wave_resample(const bel_wave *wave, int64_t sample_rate, bel_wave *out_wave)
{
    bel_resampler *resampler;
    BEL_TRY(bel_resampler_create(wave->sample_rate, sample_rate, &resampler));
    bel_status *status = bel_resampler_run(resampler, wave, out_wave);
    bel_resampler_destroy(resampler);
    return status;
}
