// Division by numbers that are known before the launch. A GPU divides with some twenty
// instructions, or with three if the host has computed a factor for the divisor.
#ifndef BELFRY_CUDA_KERNELS_DIVIDE_H
#define BELFRY_CUDA_KERNELS_DIVIDE_H

#include <stdint.h>

// With 2^(l - 1) < by <= 2^l: factor = 2^(31 + l) / by, rounded up, and shift = 31 + l. Rounding up
// adds less than `by` / 2^(31 + l) <= 2^-31 to a / by for each unit of a: too little to reach the
// next integer as long as a < 2^31.
typedef struct bel_cuda_divisor {
    uint32_t by, factor, shift;
} bel_cuda_divisor;

static inline bel_cuda_divisor divisor_make(uint32_t by)
{
    if (by == 0) by = 1; // size of an empty dimension, by which no thread divides
    bel_cuda_divisor made = {by, 0, 31};
    while ((uint64_t)1 << (made.shift - 31) < by)
        made.shift++;
    made.factor = (uint32_t)((((uint64_t)1 << made.shift) + by - 1) / by);
    return made;
}

// a / d->by, for a < 2^31.
static inline uint32_t divided(uint32_t a, const bel_cuda_divisor *d)
{
    return (uint32_t)((uint64_t)a * d->factor >> d->shift);
}

#endif
