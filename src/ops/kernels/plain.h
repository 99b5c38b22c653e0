// Functions of doubles in elementwise.def and conversions, for one element. Like scalar.h for f32,
// GPU kernels are compiled from this text as well (cuda/kernels/kernel.h).
#ifndef BELFRY_OPS_KERNELS_PLAIN_H
#define BELFRY_OPS_KERNELS_PLAIN_H

#include <math.h>

#include "base/real.h"

// Truncates and clamps to [low, high]; NaN becomes 0.
static inline int64_t bel_whole_of(double value, int64_t low, int64_t high)
{
    if (value != value) return 0;
    if (value <= (double)low) return low;
    return value >= (double)high ? high : (int64_t)value;
}

// Returns the number, if the other is NaN, and the first of two zeros, whatever their signs; C
// leaves that open for fmax and fmin.
static inline double bel_larger_of(double a, double b)
{
    return b > a || a != a ? b : a;
}

static inline double bel_smaller_of(double a, double b)
{
    return b < a || a != a ? b : a;
}

static const double sqrt_half = 0.70710678118654752440, sqrt_two_over_pi = 0.79788456080286535588;

static inline double gelu_inner(double x)
{
    return sqrt_two_over_pi * (x + 0.044715 * x * x * x);
}

static inline double gelu_slope(double x)
{
    return 0.5 * (1 + bel_real_erf(x * sqrt_half)) +
           0.5 * x * bel_real_exp(-0.5 * x * x) * sqrt_two_over_pi;
}

static inline double gelu_tanh_slope(double x)
{
    double t = bel_real_tanh(gelu_inner(x)), inner = sqrt_two_over_pi * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

static inline double silu_slope(double x)
{
    double y = 1 / (1 + bel_real_exp(-x));
    return y + x * y * (1 - y);
}

#endif
