// Arguments of gather.cu. Data is [outer, rows, width]; `count` is the number of indices. In
// GatherElements, `lines` of them are along the axis: [outer, lines, width].
#ifndef BELFRY_CUDA_KERNELS_GATHER_H
#define BELFRY_CUDA_KERNELS_GATHER_H

#include "cuda/kernels/params.h"

typedef struct bel_cuda_gather {
    int64_t outer, rows, width, count, lines;
    int32_t size, type; // for an element
    int32_t passes;     // for gather_sort
    int32_t zero;
} bel_cuda_gather;

#define BEL_CUDA_SORT_BITS 4 // bits of a number that a pass reads
#define BEL_CUDA_SORT_THREADS 256

// Workspace of GatherGrad: two buffers of row numbers [count] and their original positions [count];
// each pass sorts from one to the other.
#define BEL_CUDA_SORT_BYTES(count) ((count)*16)

#endif
