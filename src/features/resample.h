// Resampling of sounds: the weights for one pair of rates, and their use.
#ifndef BELFRY_FEATURES_RESAMPLE_H
#define BELFRY_FEATURES_RESAMPLE_H

#include "belfry/features.h"

// Immutable, so thread-safe.
typedef struct bel_resampler bel_resampler;

// INVALID_ARGUMENT as for bel_wave_resample.
bel_status *bel_resampler_create(int64_t from_rate, int64_t to_rate,
                                 bel_resampler **out_resampler) BEL_MUST_USE;
void bel_resampler_destroy(bel_resampler *resampler); // accepts NULL

// Makes a new wave at the resampler's rate. DATA_LOSS: it would have more than 2^28 samples.
bel_status *bel_resampler_run(const bel_resampler *resampler, const bel_wave *wave,
                              bel_wave *out_wave) BEL_MUST_USE;

#endif
