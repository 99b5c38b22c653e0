// Arguments of order.cu.
#ifndef BELFRY_CUDA_KERNELS_ORDER_H
#define BELFRY_CUDA_KERNELS_ORDER_H

#include "cuda/kernels/params.h"

// bel_lane_params (ops/order.h).
typedef struct bel_cuda_lanes {
    int64_t count, inner, lanes, k;
    int32_t type, smallest, last_of_equals, exclusive, reverse, zero;
} bel_cuda_lanes;

#endif
