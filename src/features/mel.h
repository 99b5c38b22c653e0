// Mel filter banks, and the steps after them.
#ifndef BELFRY_FEATURES_MEL_H
#define BELFRY_FEATURES_MEL_H

#include "belfry/features.h"

// Triangle over the frequencies first … first + count - 1 of a transform.
typedef struct bel_mel_band {
    int64_t first, count;
    const float *weights;
} bel_mel_band;

// Immutable once made.
typedef struct bel_mel_bank {
    int64_t band_count;
    bel_mel_band *bands;
    float *weights;
} bel_mel_bank;

// Makes the bands for options whose defaults are filled in. INVALID_ARGUMENT: a band contains no
// frequency.
bel_status *bel_mel_bank_init(bel_mel_bank *bank, const bel_audio_options *options) BEL_MUST_USE;
void bel_mel_bank_deinit(bel_mel_bank *bank); // accepts a zeroed one

// Rows of the orthonormal DCT-II: table [row_count, size], allocated with bel_xmalloc.
double *bel_dct_table(int64_t row_count, int64_t size);

// Computes slopes over frames [count, stride], of `width` numbers from `from` on, and writes them
// from `to` on.
void bel_audio_slopes(float *frames, int64_t count, int64_t stride, int64_t from, int64_t to,
                      int64_t width);

#endif
