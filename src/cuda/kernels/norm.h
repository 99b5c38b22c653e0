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

// A block of 256 threads sums so many channels, so many pixels at a time.
#define BEL_CUDA_NORM_CHANNELS 8
#define BEL_CUDA_NORM_PIXELS 128
#define BEL_CUDA_NORM_THREADS 256

typedef struct bel_cuda_norm {
    int64_t n, channels, pixels; // of an image
    int64_t parts, images_per_part;
    bel_cuda_image_steps u, v, y; // whose rows are one
    int32_t u_last, v_last, y_last;
    int32_t what, v_input; // where v is among the inputs
    int32_t training, by_sums, is_f64;
    double epsilon, momentum;
} bel_cuda_norm;

#endif
