// Params of pools: bel_pool.
#ifndef BELFRY_CUDA_KERNELS_POOL_H
#define BELFRY_CUDA_KERNELS_POOL_H

#include "cuda/kernels/images.h"

typedef struct bel_cuda_pool {
    bel_cuda_window window[2];
    int64_t n, channels;
    bel_cuda_image_steps x, dx, y, top;
    int32_t result_last; // output 0 is channels-last
    int32_t count_include_pad, is_max, is_f64;
    int32_t in_half[3], out_half; // operands that lie as bfloat16
} bel_cuda_pool;

#endif
