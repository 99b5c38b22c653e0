// Arguments of attention's kernels between a library's products: see attention_scores.cu.
#ifndef BELFRY_CUDA_KERNELS_ATTENTION_SCORES_H
#define BELFRY_CUDA_KERNELS_ATTENTION_SCORES_H

#include "cuda/kernels/attention.h"

// Scores of some queries of some matrices, [matrix, query, key], in the call's workspace.
typedef struct bel_cuda_attention_scores {
    bel_cuda_attention shape; // the call's; blocks and parts are ignored
    int64_t first_matrix, first_query, matrices, queries;
    // Offsets in the workspace, bytes. f32: results of the products, and dy · y of all queries.
    int64_t scores, weight_grads, inner;
    // Factors of products: bf16 if that is set, else over scores and weight_grads.
    int64_t weights, slopes;
    int32_t bf16, zero;
} bel_cuda_attention_scores;

// A copy of an operand, [matrices, rows, width], for the products.
typedef struct bel_cuda_attention_copy {
    bel_cuda_attention shape;
    int64_t rows, width, operand;
    int64_t offset;      // in the workspace, bytes
    int32_t bf16, hides; // as bf16; with zeros in rows that lengths hide
} bel_cuda_attention_copy;

#endif
