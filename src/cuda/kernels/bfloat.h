// bfloat16 in kernels. bel_bfloat_make (tensor/half.c) computes in doubles, which takes long for
// the elements of images; these work on the bits of an f32.
#ifndef BELFRY_CUDA_KERNELS_BFLOAT_H
#define BELFRY_CUDA_KERNELS_BFLOAT_H

#include "cuda/kernels/kernel.h"

typedef union bel_cuda_bits {
    float value;
    uint32_t whole;
} bel_cuda_bits;

// The upper half of an f32, rounded to nearest, ties to even. NaN stays NaN.
static inline uint16_t bfloat_of(float value)
{
    bel_cuda_bits b = {value};
    if (value != value) return (uint16_t)(b.whole >> 16 | 0x40);
    return (uint16_t)((b.whole + 0x7fff + (b.whole >> 16 & 1)) >> 16);
}

static inline float float_of(uint16_t bfloat)
{
    bel_cuda_bits b;
    b.whole = (uint32_t)bfloat << 16;
    return b.value;
}

// Element i of a tensor of f32, which lies as bfloat16 where `half` is set
// (bel_kernel_call.inputs_half).
static inline float element_get(const void *x, int32_t half, int64_t i)
{
    return half ? float_of(((const uint16_t *)x)[i]) : ((const float *)x)[i];
}

static inline void element_set(void *y, int32_t half, int64_t i, float value)
{
    if (half) {
        ((uint16_t *)y)[i] = bfloat_of(value);
    } else {
        ((float *)y)[i] = value;
    }
}

#endif
