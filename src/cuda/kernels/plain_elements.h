// Elements for plain kernels: read as double and rounded once when written, as in bel_element_get
// and bel_element_set.
#ifndef BELFRY_CUDA_KERNELS_PLAIN_ELEMENTS_H
#define BELFRY_CUDA_KERNELS_PLAIN_ELEMENTS_H

#include "cuda/kernels/kernel.h"

static inline double plain_get(const void *x, int32_t is_f64, int64_t at)
{
    return is_f64 ? ((const double *)x)[at] : (double)((const float *)x)[at];
}

static inline void plain_set(void *y, int32_t is_f64, int64_t at, double value)
{
    if (is_f64) {
        ((double *)y)[at] = value;
    } else {
        ((float *)y)[at] = (float)value;
    }
}

// `value` after it was stored in an element.
static inline double plain_kept(int32_t is_f64, double value)
{
    return is_f64 ? value : (double)(float)value;
}

#endif
