// Direct convolution for f32 with fused multiply-add. One small kernel does all three passes
// (output, gradient of the input, gradient of the weights): it adds products of a few rows of
// numbers with rows of 16 channels, and keeps the sums in registers.
//
// An element's sum is one chain in a fixed order, so all instruction-set levels give the same bits.
// Measured against oneDNN 2.6 and im2col over OpenBLAS: bench/README.md.
#ifndef BELFRY_OPS_KERNELS_CONV_H
#define BELFRY_OPS_KERNELS_CONV_H

#include "ops/window.h"

enum { BEL_CONV_LANES = 16, BEL_CONV_MAX_ROWS = 12 };

typedef struct bel_conv_segment { // of a sum; in floats from block.a[r] and block.b
    int64_t a, b;
} bel_conv_segment;

// c[r][0 … 15] = start[r][…] + sum over segments s and i < k of
//     a[r][s.a + i · a_step] · b[s.b + i · b_step + (0 … 15)]
typedef struct bel_conv_block {
    int64_t rows; // 1 … bel_conv_rows_most()
    const float *a[BEL_CONV_MAX_ROWS], *b;
    int64_t c_rows[BEL_CONV_MAX_ROWS];
    const bel_conv_segment *segments;
    int64_t segment_count, k, a_step, b_step;
    const float *start; // NULL: zeros
    int64_t start_step; // 0: the same for all rows
    float *c;
} bel_conv_block;

typedef struct bel_conv_kernels {
    int64_t rows_most;
    void (*run)(const bel_conv_block *block);
} bel_conv_kernels;

extern const bel_conv_kernels bel_conv_kernels_v2, bel_conv_kernels_v3, bel_conv_kernels_v4;

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

const bel_conv_kernels *bel_conv_kernels_get(void);

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
