// What host and kernels of updates say to each other (cuda/updater_step.c, update.cu).
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

// bel_update_step; behind it a bel_rule_step for each group.
typedef struct bel_cuda_update_step {
    uint64_t counts;
    float scale, of_gradient, average_rest;
    int32_t first; // the first replica that counts
    float joins[2 * BEL_CUDA_UPDATE_REPLICAS];
} bel_cuda_update_step;

// Operands: in: pieces, step, numbers by group, factors by variable. out: values, averages or NULL,
// directions. work: squares by grain, of directions and then of values.
//
// Values lie as the space; averages, directions and slots begin with element `first` of it, and so
// do gradients from other devices, as `begins` says.
typedef struct bel_cuda_update {
    int64_t first, grain_count;
    float *slots[BEL_CUDA_UPDATE_SLOTS];
    const float *gradients[BEL_CUDA_UPDATE_REPLICAS]; // by replica
    int64_t begins[BEL_CUDA_UPDATE_REPLICAS];         // by replica: which element comes first
    int32_t trusts, zero;
} bel_cuda_update;

// All values of a card: input 0; output 0 [BEL_CUDA_HASH_BLOCKS] gets a hash of what each block has
// read, whose sum is that of all.
#define BEL_CUDA_HASH_BLOCKS 256
#define BEL_CUDA_HASH_THREADS 256
typedef struct bel_cuda_hash_values {
    int64_t elements;
} bel_cuda_hash_values;

#endif
