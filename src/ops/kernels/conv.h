// Direct convolution for f32. All three passes (output, gradient of the input, gradient of the
// weights) are made of blocks of kernels/product.h. Measured against oneDNN 2.6 and im2col over
// OpenBLAS: bench/README.md.
#ifndef BELFRY_OPS_KERNELS_CONV_H
#define BELFRY_OPS_KERNELS_CONV_H

#include "ops/kernels/product.h"
#include "ops/window.h"

// What a convolution is, from the shapes of x [n, c, …] and w [o, c / groups, …].
typedef struct bel_conv_shape {
    bel_window window;
    int64_t n, groups;
    int64_t in, out;   // channels per group
    bel_shape x, y, w; // tensors
} bel_conv_shape;

// Choose kernels for the fast passes: call->run, before, after, their tiles and the workspace.
// bel_conv_prepare_input is also that of ConvTranspose, with a bias.
void bel_conv_prepare_output(const bel_prepare *prepare, bel_kernel_call *call,
                             const bel_conv_shape *shape);
void bel_conv_prepare_input(const bel_prepare *prepare, bel_kernel_call *call,
                            const bel_conv_shape *shape);
void bel_conv_prepare_weights(const bel_prepare *prepare, bel_kernel_call *call,
                              const bel_conv_shape *shape);

// --- Between conv.c and conv_weights.c ---

// An image with a border of zeros, channels-last: what `a` walks over.
typedef struct bel_conv_padded {
    int64_t source[2], pad[2], size[2]; // rows, columns
    int64_t depth;                      // channels of a group
    bel_image_steps steps;              // of the tensor it is copied from
} bel_conv_padded;
int64_t bel_conv_padded_floats(const bel_conv_padded *padded);
// Copies `depth` channels from `channel` on; the border was set to zero before.
void bel_conv_pad(const bel_conv_padded *padded, const float *image, int64_t channel, float *out);

#endif
