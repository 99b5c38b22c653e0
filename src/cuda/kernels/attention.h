// Params of attention: bel_attention_walk.
#ifndef BELFRY_CUDA_KERNELS_ATTENTION_H
#define BELFRY_CUDA_KERNELS_ATTENTION_H

#include <stdint.h>

// A block has 16 queries, or 16 keys, and 16 threads for each.
#define BEL_CUDA_ATTENTION_ROWS 16
#define BEL_CUDA_ATTENTION_THREADS 256
#define BEL_CUDA_ATTENTION_MOST_KEYS 128  // in a block of keys
#define BEL_CUDA_ATTENTION_MOST_WIDTH 256 // columns of a head

typedef struct bel_cuda_attention {
    int64_t matrices, heads, t, s, d, e;
    int64_t keys;    // in a block
    int64_t queries; // processed together
    int64_t parts, part_keys;
    int64_t q, lengths; // indices of inputs; lengths -1: none
    double scale;
    int32_t causal, is_f64;
} bel_cuda_attention;

#endif
