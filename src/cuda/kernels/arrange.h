// Arguments of copies between a tensor and a library's form: see arrange.cu.
#ifndef BELFRY_CUDA_KERNELS_ARRANGE_H
#define BELFRY_CUDA_KERNELS_ARRANGE_H

#include "cuda/kernels/divide.h"
#include "cuda/kernels/images.h"

typedef struct bel_cuda_arrange {
    int64_t images, rows, columns, channels; // the tensor's …
    bel_cuda_image_steps steps;
    int64_t form_rows, form_columns;     // … and the form's, in which the tensor starts at
    int64_t margin_rows, margin_columns; // this position, with zeros around it
    int64_t offset;         // offset of the form in the workspace, bytes; -1: it is the tensor
    int32_t operand;        // for arrange_in: the input that is the tensor
    int32_t tensor_bf16;    // the tensor is bf16, else f32 …
    int32_t form_bf16;      // … and the form
    int32_t has_bias, relu; // for arrange_out: input 2, by channel
    int32_t fours;          // every fourth channel of the tensor starts at a multiple of four
    // Sizes of the form on the way in, of the tensor on the way out; by_fours: four channels at a
    // time.
    bel_cuda_divisor by_channels, by_fours, by_columns, by_rows;
} bel_cuda_arrange;

// Most channels and pixels of a block of arrange_planes_in and _out.
#define BEL_CUDA_ARRANGE_CHANNELS 64
#define BEL_CUDA_ARRANGE_PIXELS 64

// Copy of an f32 matrix as bf16.
typedef struct bel_cuda_arrange_flat {
    int64_t count;  // elements
    int64_t offset; // offset of the form in the workspace, bytes, a multiple of 8
    int32_t operand, zero;
} bel_cuda_arrange_flat;

#endif
