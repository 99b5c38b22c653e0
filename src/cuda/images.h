// Images and windows in the form that kernels read, shared by the families that work on images.
#ifndef BELFRY_CUDA_IMAGES_H
#define BELFRY_CUDA_IMAGES_H

#include "cuda/kernels/images.h"
#include "ops/window.h"

bel_cuda_image_steps bel_cuda_steps_of(const bel_image_steps *steps);

// Kernels count the positions of a dimension in 32 bits. UNIMPLEMENTED: that is not enough.
bel_status *bel_cuda_windows_of(const bel_window *window,
                                bel_cuda_window out_windows[2]) BEL_MUST_USE;

// True if the channels of a pixel are neighbors; then neighboring threads take neighboring
// channels.
bool bel_cuda_is_last(const bel_image_steps *steps);

#endif
