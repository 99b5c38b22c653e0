// What is copied between a tensor of f32 and the form in which cuDNN takes images and weights: see
// arrange.cu.
#ifndef BELFRY_CUDA_KERNELS_ARRANGE_H
#define BELFRY_CUDA_KERNELS_ARRANGE_H

#include "cuda/kernels/images.h"

typedef struct bel_cuda_arrange {
    int64_t images, rows, columns, channels;
    bel_cuda_image_steps steps; // of the tensor
    int64_t offset;             // of the other form in the workspace, bytes; -1: it is the tensor
    int32_t operand;            // of arrange_in: which input the tensor is
    int32_t bf16;               // the other form's type; else f32
    int32_t has_bias, relu;     // of arrange_out: input 2, by channel
} bel_cuda_arrange;

#endif
