// Open dimensions that are computed from others, when a Reshape merges dimensions. Such a
// dimension is a factor times the sizes of one or two symbols. It is written as one negative
// number, so that equal products are equal numbers and a symbol is itself:
//
//   -1 - (k - 1 + l · 2^20 + (factor - 1) · 2^40)     symbols -k and, if l > 0, -l; k <= l
//
// Symbols are therefore in -2^20 … -1 (tensor.h). Products that do not fit are refused.
#ifndef BELFRY_TENSOR_OPEN_H
#define BELFRY_TENSOR_OPEN_H

#include <stdbool.h>
#include <stdint.h>

enum { BEL_OPEN_BITS = 20, BEL_OPEN_SYMBOLS = 1 << BEL_OPEN_BITS, BEL_OPEN_FACTOR_MOST = 1 << 22 };

// Decomposed dimension. Symbols are k of -k; 0: unset.
typedef struct bel_open {
    int64_t factor, first, second;
} bel_open;

static inline bel_open bel_open_of(int64_t dim)
{
    if (dim >= 0) return (bel_open){dim, 0, 0};
    uint64_t code = (uint64_t)(-(dim + 1)), mask = BEL_OPEN_SYMBOLS - 1;
    return (bel_open){.factor = (int64_t)(code >> 2 * BEL_OPEN_BITS) + 1,
                      .first = (int64_t)(code & mask) + 1,
                      .second = (int64_t)(code >> BEL_OPEN_BITS & mask)};
}

// False if no number represents it.
static inline bool bel_open_dim(bel_open o, int64_t *out_dim)
{
    if (o.first == 0 || (o.second != 0 && o.second < o.first)) {
        int64_t first = o.first;
        o.first = o.second;
        o.second = first;
    }
    if (o.factor < 0) return false;
    if (o.first == 0 || o.factor == 0) {
        *out_dim = o.factor;
        return true;
    }
    bool fits = o.factor <= BEL_OPEN_FACTOR_MOST && o.first <= BEL_OPEN_SYMBOLS &&
                o.second < BEL_OPEN_SYMBOLS;
    if (!fits) return false;
    *out_dim =
        -1 - (o.first - 1 + (o.second << BEL_OPEN_BITS) + ((o.factor - 1) << 2 * BEL_OPEN_BITS));
    return true;
}

// Returns the symbols of an open dimension: the dimension without its factor.
static inline int64_t bel_open_symbols(int64_t dim)
{
    bel_open o = bel_open_of(dim);
    o.factor = 1;
    int64_t symbols = 1;
    return bel_open_dim(o, &symbols) ? symbols : dim;
}

// Products and quotients with a dimension of any kind. The factor has no limit before it becomes a
// dimension again. False for three symbols, an overflow, or a fractional quotient.
static inline bool bel_open_multiply(bel_open *p, int64_t dim)
{
    bel_open q = bel_open_of(dim);
    int symbols = (p->first != 0) + (p->second != 0) + (q.first != 0) + (q.second != 0);
    if (symbols > 2 || __builtin_mul_overflow(p->factor, q.factor, &p->factor)) return false;
    const int64_t more[] = {q.first, q.second};
    for (int i = 0; i < 2; i++) {
        if (more[i] == 0) continue;
        int64_t *free = p->first == 0 ? &p->first : &p->second;
        *free = more[i];
    }
    return true;
}

static inline bool bel_open_divide(bel_open *p, int64_t dim)
{
    bel_open q = bel_open_of(dim);
    if (q.factor == 0 || p->factor % q.factor != 0) return false;
    p->factor /= q.factor;
    const int64_t divisors[] = {q.first, q.second};
    for (int i = 0; i < 2; i++) {
        if (divisors[i] == 0) continue;
        if (p->first != divisors[i] && p->second != divisors[i]) return false;
        int64_t *taken = p->first == divisors[i] ? &p->first : &p->second;
        *taken = 0;
    }
    return true;
}

static inline bool bel_open_times(int64_t a, int64_t b, int64_t *out_dim)
{
    bel_open p = bel_open_of(a);
    return bel_open_multiply(&p, b) && bel_open_dim(p, out_dim);
}

#endif
