// Convolutions of 3 × 3 windows by Winograd's F(2 × 2, 3 × 3) (Lavin & Gray 2015, arXiv 1509.09308,
// section 4.1): four results of a channel need 16 products instead of 36. Its rounding differs from
// the direct sum by a few units of the last place, the same everywhere. Only programs that allow it
// (bel_program_options.fast_math) use it.
#ifndef BELFRY_OPS_KERNELS_WINOGRAD_H
#define BELFRY_OPS_KERNELS_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/isa_levels.h"

enum { BEL_WINOGRAD_POINTS = 16 }; // in a patch of 4 × 4 pixels, and in its products

// Vector kernels, one table per instruction-set level, for a row of `count` adjacent patches.
// Channels are a multiple of 16; pixels are contiguous.
typedef struct bel_winograd_kernels {
    // Bᵀ d B of each patch. The first one begins at `pixels`, the next two pixels further, its four
    // rows `row` apart. Point e of patch p goes to out[e · step + p · channels].
    void (*patches)(const float *pixels, int64_t row, int64_t channels, int64_t count, float *out,
                    int64_t step);
    // Aᵀ m A of each patch, with points in the same layout, plus bias (NULL: 0), and with `relu`
    // max(result, 0). The results are `columns` pixels of two rows, which begin at `upper` and
    // `lower`; NULL: skip the lower one.
    void (*results)(const float *products, int64_t step, int64_t channels, int64_t count,
                    const float *bias, bool relu, int64_t columns, float *upper, float *lower);
} bel_winograd_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_winograd_kernels)

#endif
