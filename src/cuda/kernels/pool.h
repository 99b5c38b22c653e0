// Params of pools: bel_pool.
#ifndef BELFRY_CUDA_KERNELS_POOL_H
#define BELFRY_CUDA_KERNELS_POOL_H

#include "cuda/kernels/divide.h"
#include "cuda/kernels/images.h"

typedef struct bel_cuda_pool {
    bel_cuda_window window[2];
    int64_t n, channels;
    bel_cuda_image_steps x, dx, y, top;
    int32_t result_last; // output 0 is channels-last
    int32_t count_include_pad, is_max, is_f64;
    int32_t in_bf16[3], out_bf16; // operands stored as bf16
    // No tensor has 2^31 elements. Then places fit 32 bits, and these divisors locate elements of
    // output 0 or, in a gradient by windows, of dy.
    int32_t near;
    bel_cuda_divisor by_channels, by_plane, by_columns;
    bel_cuda_divisor by_stride[2];
    float weight; // weight of every element of a window, if all windows are inside
} bel_cuda_pool;

#endif
