// Params of convolutions.
#ifndef BELFRY_CUDA_KERNELS_CONV_H
#define BELFRY_CUDA_KERNELS_CONV_H

#include "cuda/kernels/images.h"

// Output and input gradient: a block of BEL_CUDA_CONV_THREADS makes sums of 64 positions by 32 or
// 64 channels.
#define BEL_CUDA_CONV_SIDE 64
#define BEL_CUDA_CONV_DEPTH 16 // products of each sum that are staged at a time
#define BEL_CUDA_CONV_THREADS 128

// Output, or gradient of the input: bel_conv_walk. Channels are those in a group.
typedef struct bel_cuda_conv {
    bel_cuda_window window[2];
    int64_t n;
    int32_t groups, width, depth;    // channels of the result, and channels that are summed over
    int32_t source_size[2], size[2]; // rows and columns of source and result
    bel_cuda_image_steps source, result;
    int32_t source_last, result_last;                    // channels-last
    int64_t weights_group, weights_depth, weights_width; // steps in w
    int32_t gradient, has_bias, relu;
    int32_t phases[2], width_tiles;
    int64_t tiles; // number of tiles over the positions of a phase
} bel_cuda_conv;

// Gradient of the weights: bel_conv_weights_walk.
typedef struct bel_cuda_conv_weights {
    bel_cuda_window window[2];
    int64_t n, images_per_part, parts;
    int32_t groups, depth, out; // channels of x and of dy in a group
    bel_cuda_image_steps x, dy;
    int32_t x_last, dy_last;
    // Tiles over the taps and channels of a row of the window, and over `out`.
    int32_t row_tiles, column_tiles;
} bel_cuda_conv_weights;

// The plain kernels: bel_conv_shape.
typedef struct bel_cuda_conv_plain {
    bel_cuda_window window[2];
    int64_t n, groups, in, out; // channels in a group
    int32_t is_f64, has_bias;
} bel_cuda_conv_plain;

#endif
