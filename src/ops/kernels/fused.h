// Fused multiply-add a · b + c in f32, rounded once, by additions and a product in double: for
// processors without such an instruction.
#ifndef BELFRY_OPS_KERNELS_FUSED_H
#define BELFRY_OPS_KERNELS_FUSED_H

#include <stdint.h>
#include <string.h>

// The product is exact in double; the sum is rounded to odd there, which makes the second rounding
// harmless (Boldo and Melquiond 2008).
static inline float bel_fused(float a, float b, float c)
{
    double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
    double part = sum - product;
    double error = (product - (sum - part)) + (addend - part); // Knuth's two-sum; NaN at infinity
    int64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if ((bits & 1) == 0 && (error > 0 || error < 0)) bits += (error > 0) == (sum > 0) ? 1 : -1;
    memcpy(&sum, &bits, sizeof bits);
    return (float)sum;
}

#endif
