// Functions of real numbers with the same bits on every machine: exp, log, pow, trigonometry and
// the like in double. C libraries differ in the last digits. These functions use only +, -, *, /
// and sqrt, which IEEE 754 rounds uniquely, in a fixed order, and bit operations. All code that
// computes a variable, a gradient or a learning rate must therefore call these (tools/lint checks
// it). (floor, fabs, fmod, frexp, rint and fma of a C library are exact.)
//
// The error is within 1 unit in the last place of a double (erf: within 2), so a result rounded to
// f32 is correctly rounded except for a few in 10^9. Special values as in C17, annex F.
// Thread-safe. The environment must round to nearest, as it does at start; its flags are ignored.
#ifndef BELFRY_BASE_REAL_H
#define BELFRY_BASE_REAL_H

#include <stdint.h>
#include <string.h>

double bel_real_exp(double x);
double bel_real_expm1(double x); // e^x - 1
double bel_real_log(double x);
double bel_real_log1p(double x); // ln (1 + x)
double bel_real_pow(double x, double y);

// Angles in radians, of any size.
double bel_real_sin(double x);
double bel_real_cos(double x);
double bel_real_tan(double x);
double bel_real_asin(double x);
double bel_real_acos(double x);
double bel_real_atan(double x);

double bel_real_sinh(double x);
double bel_real_cosh(double x);
double bel_real_tanh(double x);
double bel_real_asinh(double x);
double bel_real_acosh(double x);
double bel_real_atanh(double x);

double bel_real_erf(double x); // 2 / sqrt pi times the integral of e^-t² from 0 to x

// e^x = m · 2^exponent for |x| < 2^45, with m between 0.9 and 2: for numbers with a separate
// exponent.
typedef struct bel_real_power {
    double m;
    int64_t exponent;
} bel_real_power;
bel_real_power bel_real_exp_parts(double x);

static inline double bel_real_two_to(int64_t exponent) // -1022 … 1023
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

#endif
