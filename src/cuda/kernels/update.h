// Arguments of update kernels, shared by host and kernels (cuda/updater_step.c, update.cu).
#ifndef BELFRY_CUDA_KERNELS_UPDATE_H
#define BELFRY_CUDA_KERNELS_UPDATE_H

#include "cuda/kernels/params.h"
#include "optim/rule_element.h"

#define BEL_CUDA_UPDATE_REPLICAS 64 // BEL_UPDATER_REPLICAS
#define BEL_CUDA_UPDATE_SLOTS 3     // BEL_RULE_MAX_SLOTS
#define BEL_CUDA_UPDATE_GRAIN 4096  // BEL_GRAIN

// bel_update_piece.
typedef struct bel_cuda_piece {
    int64_t offset, grain;
    int32_t count, kind, group, variable;
} bel_cuda_piece;

// bel_update_step; followed by a bel_rule_step for each group.
typedef struct bel_cuda_update_step {
    uint64_t counts;
    float scale, of_gradient, average_rest;
    int32_t first; // the first replica that counts
    float joins[2 * BEL_CUDA_UPDATE_REPLICAS];
} bel_cuda_update_step;

// Operands: in: pieces, step, numbers by group, factors by variable. out: values, averages or NULL,
// directions. work: squares by grain, of directions and then of values.
//
// Values cover the whole space. Averages, directions and slots start with its element `first`;
// gradients from other devices start where `begins` says.
typedef struct bel_cuda_update {
    int64_t first, grain_count;
    float *slots[BEL_CUDA_UPDATE_SLOTS];
    const float *gradients[BEL_CUDA_UPDATE_REPLICAS]; // by replica
    int64_t begins[BEL_CUDA_UPDATE_REPLICAS];         // by replica: its first element
    int32_t trusts, zero;
} bel_cuda_update;

// Hash of all values of a GPU: input 0. Output 0 [BEL_CUDA_HASH_BLOCKS] gets a hash of each block's
// elements; the sum is the hash of all.
#define BEL_CUDA_HASH_BLOCKS 256
#define BEL_CUDA_HASH_THREADS 256
typedef struct bel_cuda_hash_values {
    int64_t elements;
} bel_cuda_hash_values;

#endif
