// Images and windows as kernels take them: what the families of this room that work on images
// share.
#ifndef BELFRY_CUDA_IMAGES_H
#define BELFRY_CUDA_IMAGES_H

#include "cuda/kernels/images.h"
#include "ops/window.h"

bel_cuda_image_steps bel_cuda_steps_of(const bel_image_steps *steps);

// Kernels count places of a dimension in 32 bits. UNIMPLEMENTED: that is not enough.
bel_status *bel_cuda_windows_of(const bel_window *window,
                                bel_cuda_window out_windows[2]) BEL_MUST_USE;

// True where the channels of a pixel are neighbours: then threads side by side take those.
bool bel_cuda_is_last(const bel_image_steps *steps);

#endif
