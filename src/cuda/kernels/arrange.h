// What is copied between a tensor and the form in which a library takes it: see arrange.cu.
#ifndef BELFRY_CUDA_KERNELS_ARRANGE_H
#define BELFRY_CUDA_KERNELS_ARRANGE_H

#include "cuda/kernels/divide.h"
#include "cuda/kernels/images.h"

typedef struct bel_cuda_arrange {
    int64_t images, rows, columns, channels; // of the tensor …
    bel_cuda_image_steps steps;
    int64_t form_rows, form_columns;     // … and of the form, where its place 0 is at
    int64_t margin_rows, margin_columns; // this one; around it are zeros
    int64_t offset;         // of the form in the workspace, bytes; -1: it is the tensor
    int32_t operand;        // of arrange_in: which input the tensor is
    int32_t half;           // the tensor lies as bfloat16, else as f32 …
    int32_t bf16;           // … and the form
    int32_t has_bias, relu; // of arrange_out: input 2, by channel
    int32_t fours;          // every fourth channel of the tensor begins at a multiple of four
    // Of the form on the way in, of the tensor on the way out; by_fours: four channels at a time.
    bel_cuda_divisor by_channels, by_fours, by_columns, by_rows;
} bel_cuda_arrange;

// Of a block of arrange_planes_in and _out: so many channels of images of so few pixels.
#define BEL_CUDA_ARRANGE_CHANNELS 64
#define BEL_CUDA_ARRANGE_PIXELS 64

// A matrix of f32 as bfloat16.
typedef struct bel_cuda_arrange_flat {
    int64_t count;  // elements
    int64_t offset; // of the form in the workspace, bytes, a multiple of 8
    int32_t operand, zero;
} bel_cuda_arrange_flat;

#endif
