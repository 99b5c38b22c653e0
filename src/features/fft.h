// Power spectra of real frames, several frames side by side.
#ifndef BELFRY_FEATURES_FFT_H
#define BELFRY_FEATURES_FFT_H

#include <stdint.h>

// Number of frames that one call transforms. All arrays are [numbers, BEL_FFT_LANES]: number i of
// every frame, then number i + 1.
enum { BEL_FFT_LANES = 8 };

// Tables for one size. Immutable, so thread-safe.
typedef struct bel_fft bel_fft;

// size: a power of two, 2 to 2^15 real numbers a frame.
bel_fft *bel_fft_create(int64_t size);
void bel_fft_destroy(bel_fft *fft); // accepts NULL

// Size in floats of the scratch memory of bel_fft_power.
int64_t bel_fft_scratch(const bel_fft *fft);

// Computes |X_k|² for k = 0 … size / 2 of frames [size, lanes] -> power [size / 2 + 1, lanes]. A
// frame's numbers do not depend on the other lanes.
void bel_fft_power(const bel_fft *fft, const float *frames, float *scratch, float *power);

#endif
