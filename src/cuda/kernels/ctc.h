// Arguments of ctc_f32.cu and ctc_f64.cu.
#ifndef BELFRY_CUDA_KERNELS_CTC_H
#define BELFRY_CUDA_KERNELS_CTC_H

#include "cuda/kernels/params.h"

#define BEL_CUDA_CTC_SLOTS 128 // most examples that are processed at the same time

// bel_ctc_shape (ops/kernels/ctc.h). The workspace has the frames of each example (-1: impossible)
// [n], then slots of numbers: all alphas [frames, states] (for the loss only two of them), two
// betas and probabilities [states], shares [states].
typedef struct bel_cuda_ctc {
    int64_t n, frames, classes, labels, states;
    int32_t log_p, label, frame_length, label_length; // inputs
    int32_t zero_infinity, gradient;
    int64_t slots_at, slot; // in numbers of 64 bits: start of the slots, and a slot's size
    int64_t alphas;         // numbers before the betas
} bel_cuda_ctc;

#endif
