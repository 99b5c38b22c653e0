// Layout of images, and windows over them, for kernels (ops/window.h).
#ifndef BELFRY_CUDA_KERNELS_IMAGES_H
#define BELFRY_CUDA_KERNELS_IMAGES_H

#include <stdint.h>

typedef struct bel_cuda_image_steps { // bel_image_steps
    int64_t image, channel, row, column;
} bel_cuda_image_steps;

typedef struct bel_cuda_window { // in one dimension
    int32_t in, out, kernel, stride, dilation, pad, pad_end;
    // For a gradient: distance from a tap that reads a place to the next one that does, in taps and
    // in places.
    int32_t period, advance;
} bel_cuda_window;

#endif
