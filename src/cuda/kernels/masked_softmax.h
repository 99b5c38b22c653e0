// Arguments of masked_softmax.cu.
#ifndef BELFRY_CUDA_KERNELS_MASKED_SOFTMAX_H
#define BELFRY_CUDA_KERNELS_MASKED_SOFTMAX_H

#include "cuda/kernels/params.h"

// bel_masked_softmax_params (ops/sequence.h). The mask of a row starts at the walk's place of its
// first element.
typedef struct bel_cuda_masked_softmax {
    int64_t rows, columns, queries, sequence_rows;
    int32_t mask, lengths; // inputs; -1: absent
    int32_t causal, type;
    int64_t mask_step; // distance of the mask's elements; 0: one for the row
    bel_cuda_walk masks;
} bel_cuda_masked_softmax;

#endif
