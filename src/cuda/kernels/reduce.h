// Arguments of reduce.cu.
#ifndef BELFRY_CUDA_KERNELS_REDUCE_H
#define BELFRY_CUDA_KERNELS_REDUCE_H

#include "cuda/kernels/params.h"

#define BEL_CUDA_REDUCE_SUM 0 // and mean
#define BEL_CUDA_REDUCE_SUM_SQUARE 1
#define BEL_CUDA_REDUCE_MAX 2

#define BEL_CUDA_REDUCE_THREADS 256 // of a block that adds parts
#define BEL_CUDA_REDUCE_COLUMNS 32  // whose parts such a block adds

// bel_reduce_box and bel_reduce_slices (ops/reduce.h).
typedef struct bel_cuda_reduce {
    int32_t op, half; // half: of columns, x lies as bfloat16
    int64_t outer, count, inner, block;
    // What is added in parts: how many, of a row its blocks; of a result
    // of a slice its runs; of columns (with fast arithmetic) also
    // how many rows each has.
    int64_t parts, part;
    double scale;
    // Of slices: the dimensions that stay and those that go, each in order, with the steps of x;
    // and of those that stay the steps of the results.
    int64_t slices, elements, results;
    int32_t kept_rank, gone_rank;
    int64_t kept_dims[8], kept_steps[8], kept_places[8];
    int64_t gone_dims[8], gone_steps[8];
    int64_t run; // elements of a run that is added up before it joins; 1: none
    float start, float_scale;
} bel_cuda_reduce;

#endif
