// Arguments of reduce.cu.
#ifndef BELFRY_CUDA_KERNELS_REDUCE_H
#define BELFRY_CUDA_KERNELS_REDUCE_H

#include "cuda/kernels/params.h"

#define BEL_CUDA_REDUCE_SUM 0 // and mean
#define BEL_CUDA_REDUCE_SUM_SQUARE 1
#define BEL_CUDA_REDUCE_MAX 2

#define BEL_CUDA_REDUCE_THREADS 256 // threads of a block that adds parts
#define BEL_CUDA_REDUCE_COLUMNS 32  // columns whose parts such a block adds

// bel_reduce_box and bel_reduce_slices (ops/reduce.h).
typedef struct bel_cuda_reduce {
    int32_t op, bf16; // bf16: for columns, x is stored as bf16
    int64_t outer, count, inner, block;
    // Number of parts of a sum: a row's blocks, or the runs of a slice's result. For columns (with
    // fast arithmetic) also the rows of each part.
    int64_t parts, part;
    double scale;
    // For slices: the kept and the reduced dimensions, each in order, with the steps of x, and for
    // the kept ones the steps of the results.
    int64_t slices, elements, results;
    int32_t kept_rank, gone_rank;
    int64_t kept_dims[8], kept_steps[8], kept_places[8];
    int64_t gone_dims[8], gone_steps[8];
    int64_t run; // elements of a run that is added before it joins; 1: no runs
    float start, float_scale;
} bel_cuda_reduce;

#endif
