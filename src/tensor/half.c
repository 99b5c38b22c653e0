// Conversions of 16-bit floats: one pair of functions for both formats, which differ in two
// numbers. Rounding happens once, from double, to nearest with ties to even. A mantissa that rounds
// up carries into the exponent because the fields are neighbors. The vector conversions of
// bfloat16 (ops/kernels/cpu.h) must give the same bits. Every NaN becomes one quiet NaN with its
// sign.
#include "tensor/half.h"

#include <math.h>
#include <stdbool.h>

typedef struct format {
    int mantissa; // bits
    int least;    // exponent of the smallest normal number
} format;

static const format half = {10, -14}, bfloat = {7, -126};

// Bits of infinity: all exponent bits set.
static uint16_t infinity(const format *f)
{
    return (uint16_t)(0x7fff >> f->mantissa << f->mantissa);
}

static double format_get(const format *f, uint16_t bits)
{
    int exponent = (bits & 0x7fff) >> f->mantissa, mantissa = bits & ((1 << f->mantissa) - 1);
    double value;
    if ((bits & infinity(f)) == infinity(f)) {
        value = mantissa == 0 ? (double)INFINITY : (double)NAN;
    } else if (exponent == 0) {
        value = ldexp((double)mantissa, f->least - f->mantissa);
    } else {
        value =
            ldexp((double)(mantissa + (1 << f->mantissa)), f->least - f->mantissa + exponent - 1);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

static uint16_t format_make(const format *f, double value)
{
    unsigned sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return (uint16_t)(sign | infinity(f) | 1u << (f->mantissa - 1));
    if (isinf(value)) return (uint16_t)(sign | infinity(f));
    if (value == 0) return (uint16_t)sign;
    int exponent;
    (void)frexp(value, &exponent); // |value| < 2^exponent
    exponent = exponent - 1 < f->least ? f->least : exponent - 1;
    if (exponent > -f->least + 1) return (uint16_t)(sign | infinity(f));
    // In units of the last place: the leading bit carries into the exponent.
    double units = nearbyint(ldexp(fabs(value), f->mantissa - exponent));
    unsigned bits = ((unsigned)(exponent - f->least) << f->mantissa) + (unsigned)units;
    return (uint16_t)(sign | (bits < infinity(f) ? bits : infinity(f)));
}

double bel_half_get(uint16_t bits)
{
    return format_get(&half, bits);
}

uint16_t bel_half_make(double value)
{
    return format_make(&half, value);
}

double bel_bfloat_get(uint16_t bits)
{
    return format_get(&bfloat, bits);
}

uint16_t bel_bfloat_make(double value)
{
    return format_make(&bfloat, value);
}
