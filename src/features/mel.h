// Filter banks on the mel scale, and what follows them.
#ifndef BELFRY_FEATURES_MEL_H
#define BELFRY_FEATURES_MEL_H

#include "belfry/features.h"

// A triangle over the frequencies first … first + count - 1 of a transform.
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

// Bands of options whose defaults are filled in. INVALID_ARGUMENT: a band that sees no frequency.
bel_status *bel_mel_bank_init(bel_mel_bank *bank, const bel_audio_options *options) BEL_MUST_USE;
void bel_mel_bank_deinit(bel_mel_bank *bank); // a zeroed one is fine

// Rows of the orthonormal DCT-II: table [row_count, size], result of bel_xmalloc.
double *bel_dct_table(int64_t row_count, int64_t size);

// Slopes of frames [count, stride] of which `width` numbers from `from` on are looked at; they are
// written from `to` on.
void bel_audio_slopes(float *frames, int64_t count, int64_t stride, int64_t from, int64_t to,
                      int64_t width);

#endif
