// Arguments of fold.cu.
#ifndef BELFRY_CUDA_KERNELS_FOLD_H
#define BELFRY_CUDA_KERNELS_FOLD_H

#include "cuda/kernels/params.h"

#define BEL_CUDA_FOLD_MIN 0
#define BEL_CUDA_FOLD_PROD 1
#define BEL_CUDA_FOLD_L1 2
#define BEL_CUDA_FOLD_L2 3

// `outputs` results, each of `count` elements; x has steps along the kept dimensions and along the
// reduced ones.
typedef struct bel_cuda_fold {
    int64_t outputs, count;
    int32_t op, type;
    bel_cuda_walk kept, reduced;
} bel_cuda_fold;

#endif
