// Params of normalization by channel: bel_channel_norm.
#ifndef BELFRY_CUDA_KERNELS_NORM_H
#define BELFRY_CUDA_KERNELS_NORM_H

#include "cuda/kernels/images.h"

// Result made from a channel's sums.
#define BEL_CUDA_NORM_SUM 0            // ChannelSum
#define BEL_CUDA_NORM_MOMENTS 1        // BatchMoments
#define BEL_CUDA_NORM_FORWARD 2        // BatchNormalization
#define BEL_CUDA_NORM_BACKWARD 3       // BatchNormGrad
#define BEL_CUDA_NORM_WHOLE 4          // MomentsNorm
#define BEL_CUDA_NORM_WHOLE_SUMS 5     // MomentsNormSums
#define BEL_CUDA_NORM_WHOLE_BACKWARD 6 // MomentsNormGrad

#define BEL_CUDA_NORM_PARTS 8 // BEL_NORM_PARTS

// Threads of a block in which each sums one channel, and of a block with tiles of TILE channels by
// TILE pixels.
#define BEL_CUDA_NORM_LANES 64
#define BEL_CUDA_NORM_TILE 32

// A block of 256 threads adds the chains of BEL_CUDA_NORM_CHANNELS channels, in each part, for both
// sums.
#define BEL_CUDA_NORM_THREADS 256
#define BEL_CUDA_NORM_CHANNELS (BEL_CUDA_NORM_THREADS / (2 * BEL_CUDA_NORM_PARTS))

// Fours of elements that a thread normalizes at a time.
#define BEL_CUDA_NORM_FOURS 4

typedef struct bel_cuda_norm {
    int64_t n, channels, pixels; // pixels: in an image
    int64_t parts, images_per_part, chains_per_part, pixels_per_chain;
    bel_cuda_image_steps u, v, y;   // with rows merged
    int32_t u_last, v_last, y_last; // also set if images are one pixel
    int32_t u_bf16, v_bf16, y_bf16; // stored as bf16
    int32_t what, v_input;          // v_input: v's index among the inputs; 0: v is u
    int32_t training, by_sums, is_f64, plain;
    double epsilon, momentum;
} bel_cuda_norm;

#endif
