// Arguments of gather.cu: data is [outer, rows, width], `count` are the indices; of GatherElements
// `lines` of them lie along the axis, [outer, lines, width].
#ifndef BELFRY_CUDA_KERNELS_GATHER_H
#define BELFRY_CUDA_KERNELS_GATHER_H

#include "cuda/kernels/params.h"

typedef struct bel_cuda_gather {
    int64_t outer, rows, width, count, lines;
    int32_t size, type; // of an element
    int32_t passes;     // of gather_sort
    int32_t zero;
} bel_cuda_gather;

#define BEL_CUDA_SORT_BITS 4 // of a number that a pass looks at
#define BEL_CUDA_SORT_THREADS 256

// The workspace of GatherGrad: twice the numbers [count] of rows and the places [count] where they
// stood; the passes go from one to the other.
#define BEL_CUDA_SORT_BYTES(count) ((count)*16)

#endif
