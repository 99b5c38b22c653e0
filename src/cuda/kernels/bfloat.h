// bf16 in kernels. bel_bfloat_make (tensor/half.c) computes in double, which is slow for images;
// these functions work on the bits of an f32.
#ifndef BELFRY_CUDA_KERNELS_BFLOAT_H
#define BELFRY_CUDA_KERNELS_BFLOAT_H

#include "cuda/kernels/kernel.h"

typedef union bel_cuda_bits {
    float value;
    uint32_t whole;
} bel_cuda_bits;

// Upper 16 bits of an f32, rounded to nearest, ties to even. NaN stays NaN.
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

// Element i of an f32 tensor, which is stored as bf16 if `bf16` is set
// (bel_kernel_call.inputs_bf16).
static inline float element_get(const void *x, int32_t bf16, int64_t i)
{
    return bf16 ? float_of(((const uint16_t *)x)[i]) : ((const float *)x)[i];
}

static inline void element_set(void *y, int32_t bf16, int64_t i, float value)
{
    if (bf16) {
        ((uint16_t *)y)[i] = bfloat_of(value);
    } else {
        ((float *)y)[i] = value;
    }
}

// Four neighbors for one access. The first one is at a multiple of the size of all four.
typedef struct __attribute__((aligned(16))) four_floats {
    float v[4];
} four_floats;
typedef struct __attribute__((aligned(8))) four_bfloats {
    uint16_t v[4];
} four_bfloats;

static inline bool four_fit(const void *x, int32_t bf16)
{
    return (uintptr_t)x % (bf16 ? sizeof(four_bfloats) : sizeof(four_floats)) == 0;
}

static inline four_floats four_get(const void *x, int32_t bf16, int64_t i)
{
    if (!bf16) return *(const four_floats *)(const void *)((const float *)x + i);
    const four_bfloats from = *(const four_bfloats *)(const void *)((const uint16_t *)x + i);
    four_floats made;
    for (int k = 0; k < 4; k++)
        made.v[k] = float_of(from.v[k]);
    return made;
}

static inline void four_set(void *y, int32_t bf16, int64_t i, four_floats values)
{
    if (bf16) {
        four_bfloats made;
        for (int k = 0; k < 4; k++)
            made.v[k] = bfloat_of(values.v[k]);
        *(four_bfloats *)(void *)((uint16_t *)y + i) = made;
    } else {
        *(four_floats *)(void *)((float *)y + i) = values;
    }
}

#endif
