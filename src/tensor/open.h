// Open dimensions that are a multiple of a symbol's size, as they come about when a Reshape puts an
// open dimension and closed ones together: `factor` times symbol -k is the dimension -(k + (factor
// - 1) · 2^32), so a symbol itself is its multiple by 1, and equal multiples are equal numbers.
// Symbols therefore lie in -2^32 … -1 (tensor.h).
#ifndef BELFRY_TENSOR_OPEN_H
#define BELFRY_TENSOR_OPEN_H

#include <stdbool.h>
#include <stdint.h>

enum { BEL_OPEN_SHIFT = 32, BEL_OPEN_FACTOR_MOST = 1 << 30 };

static inline int64_t bel_open_symbol(int64_t dim)
{
    uint64_t code = (uint64_t)(-(dim + 1));
    return -(int64_t)(code & UINT32_MAX) - 1;
}

static inline int64_t bel_open_factor(int64_t dim)
{
    uint64_t code = (uint64_t)(-(dim + 1));
    return (int64_t)(code >> BEL_OPEN_SHIFT) + 1;
}

// The dimension `dim` of any kind times factor >= 1; false where it is too large.
static inline bool bel_open_times(int64_t dim, int64_t factor, int64_t *out_dim)
{
    int64_t product;
    bool open = dim < 0;
    if (__builtin_mul_overflow(open ? bel_open_factor(dim) : dim, factor, &product)) return false;
    if (open && product > BEL_OPEN_FACTOR_MOST) return false;
    *out_dim = open ? bel_open_symbol(dim) - ((product - 1) << BEL_OPEN_SHIFT) : product;
    return true;
}

#endif
