// 16-bit floats: IEEE 754 binary16 ("half") and bfloat16, the upper half of a binary32. Conversion
// from a double rounds once, to nearest, ties to even; an overflow becomes infinity.
#ifndef BELFRY_TENSOR_HALF_H
#define BELFRY_TENSOR_HALF_H

#include <stdint.h>

double bel_half_get(uint16_t bits); // exact
uint16_t bel_half_make(double value);
double bel_bfloat_get(uint16_t bits); // exact
uint16_t bel_bfloat_make(double value);

#endif
