// Params of normalisation by channel: bel_channel_norm.
#ifndef BELFRY_CUDA_KERNELS_NORM_H
#define BELFRY_CUDA_KERNELS_NORM_H

#include "cuda/kernels/images.h"

// What is made of a channel's sums.
#define BEL_CUDA_NORM_SUM 0            // ChannelSum
#define BEL_CUDA_NORM_MOMENTS 1        // BatchMoments
#define BEL_CUDA_NORM_FORWARD 2        // BatchNormalization
#define BEL_CUDA_NORM_BACKWARD 3       // BatchNormGrad
#define BEL_CUDA_NORM_WHOLE 4          // MomentsNorm
#define BEL_CUDA_NORM_WHOLE_SUMS 5     // MomentsNormSums
#define BEL_CUDA_NORM_WHOLE_BACKWARD 6 // MomentsNormGrad

#define BEL_CUDA_NORM_PARTS 8 // BEL_NORM_PARTS

// Threads of a block where each sums one channel, and of one that brings tiles of so many channels
// and pixels.
#define BEL_CUDA_NORM_LANES 64
#define BEL_CUDA_NORM_TILE 32

// A block of 256 threads adds up the chains of so many channels, in each part, of either sum.
#define BEL_CUDA_NORM_THREADS 256
#define BEL_CUDA_NORM_CHANNELS (BEL_CUDA_NORM_THREADS / (2 * BEL_CUDA_NORM_PARTS))

// So many times four elements a thread normalises at a time.
#define BEL_CUDA_NORM_FOURS 4

typedef struct bel_cuda_norm {
    int64_t n, channels, pixels; // of an image
    int64_t parts, images_per_part, chains_per_part, pixels_per_chain;
    bel_cuda_image_steps u, v, y;   // whose rows are one
    int32_t u_last, v_last, y_last; // also where images are one pixel, so that both orders are one
    int32_t u_half, v_half, y_half; // lies as bfloat16
    int32_t what, v_input;          // where v is among the inputs; 0: it is u
    int32_t training, by_sums, is_f64, plain;
    double epsilon, momentum;
} bel_cuda_norm;

#endif
