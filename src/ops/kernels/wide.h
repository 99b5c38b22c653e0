// Numbers from 0 on with the digits of a double and a separate exponent: products of thousands of
// probabilities neither underflow nor need a logarithm each. They use only additions, products and
// bit operations, so they are the same on every machine; the error is within about 1e-15. GPU
// kernels are compiled from this text as well (cuda/kernels/kernel.h).
#ifndef BELFRY_OPS_KERNELS_WIDE_H
#define BELFRY_OPS_KERNELS_WIDE_H

#include <math.h>
#include <stdint.h>

#include "base/real.h"

// m · 2^(256 e); m is 0, at least 2^-256, or not a number. Sums and products of numbers up to 1
// keep m below about 2.
typedef struct bel_wide {
    double m;
    int64_t e;
} bel_wide;

static inline bel_wide bel_wide_add(bel_wide a, bel_wide b)
{
    if (a.m == 0) return b;
    if (b.m == 0) return a;
    if (a.e == b.e) {
        a.m += b.m;
        return a;
    }
    bel_wide large = a.e > b.e ? a : b, small = a.e > b.e ? b : a;
    if (large.e - small.e == 1)
        large.m += small.m * 0x1p-256; // smaller exponents do not
                                       // contribute
    return large;
}

static inline bel_wide bel_wide_mul(bel_wide a, bel_wide b)
{
    bel_wide y = {a.m * b.m, a.e + b.e};
    if (y.m < 0x1p-256) {
        y.m *= 0x1p256;
        y.e--;
    }
    return y;
}

// a / b as a double; b is not 0.
static inline double bel_wide_ratio(bel_wide a, bel_wide b)
{
    double m = a.m / b.m;
    int64_t e = a.e - b.e;
    if (a.m == 0 || e < -4) return 0;
    for (; e < 0; e++)
        m *= 0x1p-256;
    for (; e > 0; e--)
        m *= 0x1p256;
    return m;
}

// e^x for x up to about 100. Below -2^45 it is 0.
static inline bel_wide bel_wide_exp(double x)
{
    bel_wide y = {x < 0 ? 0 : x, 0};
    if (!(fabs(x) < 0x1p45)) return y;
    bel_real_power p = bel_real_exp_parts(x);
    y.e = p.exponent < 0 ? -(-p.exponent / 256) : 0;
    y.m = p.m * bel_real_two_to(p.exponent - y.e * 256);
    return y;
}

static inline double bel_wide_log(bel_wide a)
{
    double log_m = bel_real_log(a.m);
    return log_m > -INFINITY ? log_m + (double)a.e * (256 * 0.69314718055994531) : log_m;
}

#endif
