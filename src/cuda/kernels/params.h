// Arguments of every kernel, shared by host and kernels. Both compilers read this header, so it has
// only plain structs of fixed-width numbers.
#ifndef BELFRY_CUDA_KERNELS_PARAMS_H
#define BELFRY_CUDA_KERNELS_PARAMS_H

#include <stdint.h>

#define BEL_CUDA_MAX_INPUTS 10 // BEL_OP_MAX_INPUTS and a packed one
#define BEL_CUDA_MAX_OUTPUTS 5

// Values that differ from run to run, in GPU memory: bel_run_context.
typedef struct bel_cuda_state {
    uint64_t seed;
    int64_t step, replica, round;
    uint64_t place; // random operations draw under it: bel_run_place
    // Data error of the first call that has one; which of its bad elements is reported is random.
    // Kernels report with report_bad (kernel.h).
    int32_t error; // 0, or 1 + index of the call
    int32_t zero;
    int64_t bad_value, bad_low, bad_limit;
} bel_cuda_state; // followed by a bel_rng_key for each call: two 32-bit words

// The operands of a call, all in GPU memory.
typedef struct bel_cuda_operands {
    const void *in[BEL_CUDA_MAX_INPUTS];
    void *out[BEL_CUDA_MAX_OUTPUTS];
    void *work; // workspace of the call
    bel_cuda_state *run;
    int64_t call; // its index
} bel_cuda_operands;

// Elements of tensors with different layouts: bel_walk (ops/kernels/walk.h).
#define BEL_CUDA_WALK_TENSORS 4
typedef struct bel_cuda_walk {
    int32_t rank, tensors;
    int64_t dims[8];
    int64_t steps[BEL_CUDA_WALK_TENSORS][8];
} bel_cuda_walk;

// --- Element by element (cuda/launch_elementwise.c) ----------------------------------------------

#define BEL_CUDA_STEPS 16 // BEL_FUSED_STEPS

typedef struct bel_cuda_elements {
    int64_t count;
    int64_t rows[BEL_CUDA_MAX_INPUTS]; // for operands that repeat
    double s[BEL_CUDA_STEPS], t[BEL_CUDA_STEPS];
    float numbers[BEL_CUDA_STEPS];
    bel_cuda_walk walk; // for other broadcast operands
} bel_cuda_elements;

#endif
