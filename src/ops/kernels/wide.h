// Numbers from 0 on with the digits of a double and an exponent of their own: products of thousands
// of probabilities neither vanish nor need a logarithm each. Built of additions, products and bits
// alone, so that they are the same on every machine; within some 1e-15 of the true value.
#ifndef BELFRY_OPS_KERNELS_WIDE_H
#define BELFRY_OPS_KERNELS_WIDE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

// m · 2^(256 e); m is 0, at least 2^-256, or not a number. Sums and products of numbers up to 1
// keep m below some 2.
typedef struct bel_wide {
    double m;
    int64_t e;
} bel_wide;

static inline bel_wide bel_wide_add(bel_wide a, bel_wide b)
{
    if (a.m == 0) return b;
    if (b.m == 0) return a;
    if (a.e == b.e) return (bel_wide){a.m + b.m, a.e};
    bel_wide large = a.e > b.e ? a : b, small = a.e > b.e ? b : a;
    if (large.e - small.e == 1) large.m += small.m * 0x1p-256; // further down nothing is left of it
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

static inline double bel_power_of_two(int64_t exponent) // -1022 … 1023
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

// e^x for x up to some 100: 2^k e^r with |r| <= ln 2 / 2, and Taylor's series of e^r.
static inline bel_wide bel_wide_exp(double x)
{
    enum { TERMS = 13 };
    static const double inverse[TERMS + 1] = {0,        1.0 / 1,  1.0 / 2,  1.0 / 3, 1.0 / 4,
                                              1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8, 1.0 / 9,
                                              1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13};
    if (!(fabs(x) < 1e15)) return (bel_wide){x < 0 ? 0 : x, 0};
    int64_t k = (int64_t)floor(x * 1.4426950408889634 + 0.5), e = k < 0 ? -(-k / 256) : 0;
    double r = (x - (double)k * 0x1.62e42feep-1) - (double)k * 0x1.a39ef35793c76p-33, y = 1;
    for (int i = TERMS; i > 0; i--)
        y = 1 + y * r * inverse[i];
    return (bel_wide){y * bel_power_of_two(k - e * 256), e};
}

// ln a: with a = 2^k (1 + z) / (1 - z) and |z| <= 0.172 it is k ln 2 + 2 (z + z^3 / 3 + …).
static inline double bel_wide_log(bel_wide a)
{
    if (a.m == 0) return -INFINITY;
    if (!(a.m < INFINITY)) return a.m;
    int k;
    double f = frexp(a.m, &k), sum = 0;
    if (f < 0.70710678118654752) {
        f *= 2;
        k--;
    }
    double z = (f - 1) / (f + 1);
    for (int i = 21; i > 0; i -= 2)
        sum = sum * z * z + 1.0 / i;
    return ((double)a.e * 256 + k) * 0.69314718055994531 + 2 * z * sum;
}

#endif
