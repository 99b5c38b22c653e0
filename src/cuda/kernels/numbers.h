// Elements of any type in kernels: as bits if they are only moved, and as doubles in the way of
// bel_element_get and bel_element_set (ops/kernels/elements.h). The type, or its size, is the same
// for a whole launch, so the switches never diverge.
#ifndef BELFRY_CUDA_KERNELS_NUMBERS_H
#define BELFRY_CUDA_KERNELS_NUMBERS_H

#include "cuda/kernels/kernel.h"

#ifdef PLAIN
#include "cuda/kernels/elements.h" // also has whole_get and number_get
#else
#include "ops/kernels/plain.h"
#include "tensor/half.c"
#endif

// bel_dtype, whose numbers are stable.
#define BEL_CUDA_F32 0
#define BEL_CUDA_F64 1
#define BEL_CUDA_I32 2
#define BEL_CUDA_I64 3
#define BEL_CUDA_BOOL 5
#define BEL_CUDA_F16 7
#define BEL_CUDA_BF16 8

// --- Bits ----------------------------------------------------------------------------------------

static inline uint64_t bits_get(const void *x, int64_t i, int32_t size)
{
    switch (size) {
    case 1: return ((const uint8_t *)x)[i];
    case 2: return ((const uint16_t *)x)[i];
    case 4: return ((const uint32_t *)x)[i];
    default: return ((const uint64_t *)x)[i];
    }
}

static inline void bits_set(void *y, int64_t i, int32_t size, uint64_t bits)
{
    switch (size) {
    case 1: ((uint8_t *)y)[i] = (uint8_t)bits; break;
    case 2: ((uint16_t *)y)[i] = (uint16_t)bits; break;
    case 4: ((uint32_t *)y)[i] = (uint32_t)bits; break;
    default: ((uint64_t *)y)[i] = bits;
    }
}

// --- Numbers -------------------------------------------------------------------------------------

static inline int64_t whole_get(const void *x, int64_t i, int32_t type)
{
    switch (type) {
    case BEL_CUDA_I32: return ((const int32_t *)x)[i];
    case BEL_CUDA_I64: return ((const int64_t *)x)[i];
    default: return ((const uint8_t *)x)[i];
    }
}

static inline void whole_set(void *y, int64_t i, int32_t type, int64_t value)
{
    switch (type) {
    case BEL_CUDA_I32: ((int32_t *)y)[i] = (int32_t)value; break;
    case BEL_CUDA_I64: ((int64_t *)y)[i] = value; break;
    case BEL_CUDA_BOOL: ((uint8_t *)y)[i] = value != 0; break;
    default: ((uint8_t *)y)[i] = (uint8_t)value;
    }
}

static inline bool number_is_whole(int32_t type)
{
    return type >= BEL_CUDA_I32 && type <= BEL_CUDA_BOOL;
}

static inline double number_get(const void *x, int64_t i, int32_t type)
{
    switch (type) {
    case BEL_CUDA_F32: return (double)((const float *)x)[i];
    case BEL_CUDA_F64: return ((const double *)x)[i];
    case BEL_CUDA_F16: return bel_half_get(((const uint16_t *)x)[i]);
    case BEL_CUDA_BF16: return bel_bfloat_get(((const uint16_t *)x)[i]);
    default: return (double)whole_get(x, i, type);
    }
}

static inline int64_t number_whole(double value, int32_t type)
{
    switch (type) {
    case BEL_CUDA_I32: return bel_whole_of(value, INT32_MIN, INT32_MAX);
    case BEL_CUDA_I64: return bel_whole_of(value, INT64_MIN, INT64_MAX);
    case BEL_CUDA_BOOL: return value != 0.0;
    default: return bel_whole_of(value, 0, UINT8_MAX);
    }
}

static inline void number_set(void *y, int64_t i, int32_t type, double value)
{
    switch (type) {
    case BEL_CUDA_F32: ((float *)y)[i] = (float)value; break;
    case BEL_CUDA_F64: ((double *)y)[i] = value; break;
    case BEL_CUDA_F16: ((uint16_t *)y)[i] = bel_half_make(value); break;
    case BEL_CUDA_BF16: ((uint16_t *)y)[i] = bel_bfloat_make(value); break;
    default: whole_set(y, i, type, number_whole(value, type));
    }
}

// number_get of an element after number_set: for sums that the CPU keeps in elements.
static inline double number_rounded(double value, int32_t type)
{
    switch (type) {
    case BEL_CUDA_F32: return (double)(float)value;
    case BEL_CUDA_F64: return value;
    case BEL_CUDA_F16: return bel_half_get(bel_half_make(value));
    case BEL_CUDA_BF16: return bel_bfloat_get(bel_bfloat_make(value));
    default: return (double)number_whole(value, type);
    }
}

#endif
