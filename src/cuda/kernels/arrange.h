// What is copied between a tensor of f32 and the form in which cuDNN takes images and weights: see
// arrange.cu.
#ifndef BELFRY_CUDA_KERNELS_ARRANGE_H
#define BELFRY_CUDA_KERNELS_ARRANGE_H

#include "cuda/kernels/images.h"

typedef struct bel_cuda_arrange {
    int64_t images, rows, columns, channels; // of the tensor …
    bel_cuda_image_steps steps;
    int64_t form_rows, form_columns;     // … and of the form, where its place 0 is at
    int64_t margin_rows, margin_columns; // this one; around it are zeros
    int64_t offset;         // of the form in the workspace, bytes; -1: it is the tensor
    int32_t operand;        // of arrange_in: which input the tensor is
    int32_t bf16;           // the other form's type; else f32
    int32_t has_bias, relu; // of arrange_out: input 2, by channel
} bel_cuda_arrange;

#endif
