// Mel filter banks, the discrete cosine transform and slopes over time. Band edges are equally
// spaced in mel. HTK's triangles are linear in mel and 1 high, as in HTK, Kaldi and TensorFlow;
// Slaney's (Auditory Toolbox, 1998) are linear in Hz and have area 1, as in librosa. All values are
// computed in double by base/real.h and rounded once. Weights of 0 are not kept, so a band's list
// has minimal length.
#include "features/mel.h"

#include <math.h>

#include "base/alloc.h"
#include "base/real.h"

static const double pi = 3.14159265358979323846;
static const double slaney_hz = 200.0 / 3; // Hz per mel below 1 kHz, which is 15 mel
static const double slaney_step = 27;      // mel from 1 to 6.4 kHz

static double to_mel(bel_mel_scale scale, double hz)
{
    if (scale == BEL_MEL_HTK) return 2595 * bel_real_log(1 + hz / 700) / bel_real_log(10);
    if (hz < 1000) return hz / slaney_hz;
    return 15 + slaney_step * bel_real_log(hz / 1000) / bel_real_log(6.4);
}

static double to_hz(bel_mel_scale scale, double mel)
{
    if (scale == BEL_MEL_HTK) return 700 * (bel_real_exp(mel * bel_real_log(10) / 2595) - 1);
    if (mel < 15) return mel * slaney_hz;
    return 1000 * bel_real_exp((mel - 15) * bel_real_log(6.4) / slaney_step);
}

// The three corners of a band, in the unit in which its triangle is linear.
typedef struct corners {
    double low, middle, high;
} corners;

static double triangle(corners at, double x)
{
    double up = (x - at.low) / (at.middle - at.low), down = (at.high - x) / (at.high - at.middle);
    double height = up < down ? up : down;
    return height > 0 ? height : 0;
}

// Computes the weights of one band over all frequencies of the transform.
static void fill_band(const bel_audio_options *options, int64_t band, double *weights)
{
    bel_mel_scale scale = options->mel_scale;
    double low = to_mel(scale, options->low_hz), high = to_mel(scale, options->high_hz);
    double edges[3], hz_step = (double)options->sample_rate / (double)options->fft_size;
    for (int i = 0; i < 3; i++)
        edges[i] = low + (high - low) * (double)(band + i) / (double)(options->mel_count + 1);
    if (scale == BEL_MEL_HTK) {
        for (int64_t k = 0; k <= options->fft_size / 2; k++)
            weights[k] = triangle((corners){edges[0], edges[1], edges[2]},
                                  to_mel(scale, (double)k * hz_step));
        return;
    }
    corners at = {to_hz(scale, edges[0]), to_hz(scale, edges[1]), to_hz(scale, edges[2])};
    for (int64_t k = 0; k <= options->fft_size / 2; k++)
        weights[k] = triangle(at, (double)k * hz_step) * 2 / (at.high - at.low);
}

bel_status *bel_mel_bank_init(bel_mel_bank *bank, const bel_audio_options *options)
{
    int64_t bins = options->fft_size / 2 + 1;
    double *row = bel_xcalloc((size_t)bins, sizeof *row);
    *bank = (bel_mel_bank){.band_count = options->mel_count};
    bank->bands = bel_xcalloc((size_t)options->mel_count, sizeof *bank->bands);
    bank->weights = bel_xcalloc((size_t)(bins * options->mel_count), sizeof *bank->weights);
    bel_status *status = NULL;
    for (int64_t i = 0; i < options->mel_count && status == NULL; i++) {
        fill_band(options, i, row);
        int64_t first = 0, end = bins;
        while (first < bins && row[first] == 0)
            first++;
        while (end > first && row[end - 1] == 0)
            end--;
        if (first == end) {
            status = BEL_ERR(BEL_INVALID_ARGUMENT,
                             "audio: mel band %lld of %lld lies between two frequencies of the "
                             "transform (%g Hz apart): expected fewer bands, or a larger fft_size",
                             (long long)i + 1, (long long)options->mel_count,
                             (double)options->sample_rate / (double)options->fft_size);
        }
        float *weights = bank->weights + i * bins;
        for (int64_t k = first; k < end; k++)
            weights[k - first] = (float)row[k];
        bank->bands[i] = (bel_mel_band){first, end - first, weights};
    }
    bel_free(row);
    if (status != NULL) bel_mel_bank_deinit(bank);
    return status;
}

void bel_mel_bank_deinit(bel_mel_bank *bank)
{
    bel_free(bank->bands);
    bel_free(bank->weights);
    *bank = (bel_mel_bank){0};
}

double *bel_dct_table(int64_t row_count, int64_t size)
{
    double *table = bel_xmalloc((size_t)(row_count * size) * sizeof *table);
    for (int64_t j = 0; j < row_count; j++) {
        double scale = sqrt((j == 0 ? 1.0 : 2.0) / (double)size);
        for (int64_t i = 0; i < size; i++) {
            double angle = pi * (double)j * ((double)i + 0.5) / (double)size;
            table[j * size + i] = scale * bel_real_cos(angle);
        }
    }
    return table;
}

// d[t] = Σ_n n (c[t + n] - c[t - n]) / (2 Σ_n n²), n = 1, 2 (Furui 1986).
void bel_audio_slopes(float *frames, int64_t count, int64_t stride, int64_t from, int64_t to,
                      int64_t width)
{
    enum { REACH = 2 };
    for (int64_t t = 0; t < count; t++) {
        for (int64_t i = 0; i < width; i++) {
            double sum = 0;
            for (int64_t n = 1; n <= REACH; n++) {
                int64_t behind = t + n < count ? t + n : count - 1, before = t > n ? t - n : 0;
                double difference = (double)frames[behind * stride + from + i] -
                                    (double)frames[before * stride + from + i];
                sum += (double)n * difference;
            }
            frames[t * stride + to + i] = (float)(sum / 10);
        }
    }
}
