// Direct convolution for f32. All three passes (output, gradient of the input, gradient of the
// weights) use blocks of kernels/product.h. bench/README.md compares it with oneDNN 2.6 and with
// im2col over OpenBLAS.
#ifndef BELFRY_OPS_KERNELS_CONV_H
#define BELFRY_OPS_KERNELS_CONV_H

#include "ops/kernels/product.h"
#include "ops/window.h"

// Parameters of a convolution, from the shapes of x [n, c, …] and w [o, c / groups, …].
typedef struct bel_conv_shape {
    bel_window window;
    int64_t n, groups;
    int64_t in, out;   // channels per group
    bel_shape x, y, w; // tensors
} bel_conv_shape;

// Choose kernels for the fast passes: call->run, before, after, their tiles and the workspace.
// bel_conv_prepare_input also serves ConvTranspose, with a bias.
void bel_conv_prepare_output(const bel_prepare *prepare, bel_kernel_call *call,
                             const bel_conv_shape *shape);
void bel_conv_prepare_input(const bel_prepare *prepare, bel_kernel_call *call,
                            const bel_conv_shape *shape);
void bel_conv_prepare_weights(const bel_prepare *prepare, bel_kernel_call *call,
                              const bel_conv_shape *shape);

// --- Between conv.c and winograd.c (winograd.h) ---

// Returns true if a convolution can use Winograd's method: windows of 3 × 3 with steps of 1, one
// group, channels in multiples of 16, images and results channels-last, constant weights (and
// bias).
bool bel_winograd_fits(const bel_prepare *prepare, const bel_kernel_call *call,
                       const bel_conv_shape *shape);

// As bel_conv_prepare_output.
void bel_winograd_prepare(const bel_prepare *prepare, bel_kernel_call *call,
                          const bel_conv_shape *shape);

// --- Between conv.c and conv_weights.c ---

// Image whose rows have a border of zeros, channels-last: the source of `a`. Rows above and below
// the image are left out, as are the taps that would read them. (With weights that are not finite,
// edges to the left and right are NaN, and those above and below are not.)
typedef struct bel_conv_padded {
    int64_t source[2];     // rows and columns of the image
    int64_t pad, columns;  // pixels: zeros before a row; a row with its border
    int64_t depth;         // channels of a group
    bel_image_steps steps; // steps of the tensor that it is copied from
} bel_conv_padded;

// Returns the size of the copy; 0 if the image itself can be used.
int64_t bel_conv_padded_floats(const bel_conv_padded *padded);
void bel_conv_clear_border(const bel_conv_padded *padded, float *room);

// Channels of a group of an image, whose rows are copied shortly before they are read: they are
// then in the first-level cache.
typedef struct bel_conv_source {
    const bel_conv_padded *padded;
    const float *image;
    float *room;    // NULL: in place
    int64_t copied; // rows
} bel_conv_source;
// The group's channels begin at `channel`. The border of `room` is zero.
bel_conv_source bel_conv_source_of(const bel_conv_padded *padded, const float *image,
                                   int64_t channel, float *room);
// Copies the rows before `end` that are not yet copied.
void bel_conv_source_copy(bel_conv_source *source, int64_t end);
static inline const float *bel_conv_source_first(const bel_conv_source *source)
{
    return source->room != NULL ? source->room : source->image;
}

// Params of bel_conv_prepare_output and bel_conv_prepare_input, unless Winograd's method is used. A
// sum begins with the bias or 0 and adds taps by rising place in the source, row by row, without
// those outside its rows; within each tap it adds one channel after another.
typedef struct bel_conv_phase bel_conv_phase;
typedef struct bel_conv_walk {
    bel_conv_padded padded;
    bel_image_steps result;
    int64_t n, images_per_tile, groups, width, blocks;   // width: result channels of a group
    int64_t block_width;                                 // maximum in a block
    int64_t slot_floats, block_floats;                   // packed weights, followed by the same
                                                         // number of biases
    int64_t weights_group, weights_depth, weights_width; // steps in w
    bool has_bias, packs_once, relu;
    int64_t window_columns; // columns of w's window
    int phase_count;
    bel_conv_phase *phases;
    bel_window window;
    bool input_gradient;
} bel_conv_walk;

// Params of bel_conv_prepare_weights. A part's sum goes through images, rows and columns of dy,
// without those whose tap is above or below the image; then parts are added in order.
typedef struct bel_conv_weights_walk {
    bel_conv_padded padded;
    bel_window window;
    bel_image_steps dy;
    int64_t n, groups, out, blocks; // out: output channels of a group
    int64_t images_per_part, parts;
    int64_t row_run;                               // output rows that are summed at once
    int64_t sums_floats, padded_floats, dy_floats; // for a part; dy_floats 0: dy is read in place
    int64_t row_floats;                            // for a part's sums: one tap and channel
} bel_conv_weights_walk;

// Next image of the tile, which would otherwise stall: a few of its cache lines are prefetched with
// each block of sums of the current one.
typedef struct bel_conv_next {
    const float *at, *end;
} bel_conv_next;
// Images are `step` apart; `image` is the current one, and end - 1 the tile's last. Prefetches only
// the beginning of a large image: the rest would be evicted before it is read.
static inline bel_conv_next bel_conv_next_of(const float *images, int64_t step, int64_t image,
                                             int64_t end)
{
    enum { MOST = 1 << 16 };
    const float *at = images + (image + 1) * step;
    if (image + 1 >= end) return (bel_conv_next){at, at};
    return (bel_conv_next){at, at + (step < MOST ? step : MOST)};
}
static inline void bel_conv_fetch(bel_conv_next *next)
{
    enum { LINES = 16, LINE = 16 }; // numbers in a cache line
    int64_t lines = bel_smaller((next->end - next->at + LINE - 1) / LINE, LINES);
    for (int64_t i = 0; i < lines; i++, next->at += LINE)
        __builtin_prefetch(next->at, 0, 2); // into the second-level cache
}

#endif
