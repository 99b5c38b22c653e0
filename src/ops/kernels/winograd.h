// Convolutions of 3 × 3 windows by Winograd's F(2 × 2, 3 × 3) (Lavin & Gray 2015, arXiv
// 1509.09308, section 4.1): four results of a channel come from 16 products in place of 36. It
// rounds otherwise than the direct sum, by a few units of the last place, and everywhere alike, so
// only programs that allow it (bel_program_options.fast_math) take it.
#ifndef BELFRY_OPS_KERNELS_WINOGRAD_H
#define BELFRY_OPS_KERNELS_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/isa_levels.h"

enum { BEL_WINOGRAD_POINTS = 16 }; // of a patch of 4 × 4 pixels, and of its products

// Vector kernels, one table per instruction-set level, for a row of `count` patches side by side.
// Channels are a multiple of 16, pixels lie one behind another.
typedef struct bel_winograd_kernels {
    // Bᵀ d B of each patch: the first one begins at `pixels`, the next two pixels further, its four
    // rows `row` apart. Point e of patch p goes to out[e · step + p · channels].
    void (*patches)(const float *pixels, int64_t row, int64_t channels, int64_t count, float *out,
                    int64_t step);
    // Aᵀ m A of each patch, whose points lie as above, plus bias (NULL: none), and with `relu` 0 in
    // place of what is not above it. The results are `columns` pixels of two rows, which begin at
    // `upper` and `lower`; NULL: nobody wants the lower one.
    void (*results)(const float *products, int64_t step, int64_t channels, int64_t count,
                    const float *bias, bool relu, int64_t columns, float *upper, float *lower);
} bel_winograd_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_winograd_kernels)

#endif
