// Sliding windows over images, shared by convolutions and pools. Images are x [n, c, w] or [n, c,
// h, w]; one with a single spatial dimension counts as one of height 1.
#ifndef BELFRY_OPS_WINDOW_H
#define BELFRY_OPS_WINDOW_H

#include "ops/op.h"

typedef struct bel_window { // each [height, width], in elements
    int64_t in[2], out[2];
    int64_t kernel[2], stride[2], dilation[2];
    int64_t pad[2], pad_end[2]; // before and after
} bel_window;

// Reads strides, dilations, pads, auto_pad and ceil_mode (ONNX; auto_pad is a bel_auto_pad) for the
// image `x` and `kernel` (rank - 2 sizes). INVALID_ARGUMENT: rank, an open or empty spatial
// dimension, a list of another length, sizes out of range, a window that does not fit.
bel_status *bel_window_make(const bel_attr_list *attrs, const bel_shape *x, const int64_t *kernel,
                            bel_window *out_window) BEL_MUST_USE;

// Makes the window of the convolution whose gradient is a transposed convolution of `x`: `out` are
// x's sizes, `in` those of the result. Also reads output_padding and output_shape. Errors as above;
// a result that is empty or that the convolution would divide into more windows than x has
// elements.
bel_status *bel_window_make_transposed(const bel_attr_list *attrs, const bel_shape *x,
                                       const int64_t *kernel, bel_window *out_window) BEL_MUST_USE;

// Returns x with c channels and the window's output sizes.
bel_shape bel_window_shape(const bel_window *window, const bel_shape *x, int64_t channels);

// Floats between neighbors of an image's tensor in memory.
typedef struct bel_image_steps {
    int64_t image, channel, row, column;
} bel_image_steps;
bel_image_steps bel_image_steps_of(const bel_shape *shape, bool channels_last);

// Finds the kernel positions [first, end) of dimension d inside the image, at output `at`.
static inline void bel_window_inside(const bel_window *w, int d, int64_t at, int64_t *out_first,
                                     int64_t *out_end)
{
    int64_t start = at * w->stride[d] - w->pad[d], step = w->dilation[d];
    int64_t first = start < 0 ? (step - 1 - start) / step : 0;
    int64_t end = w->in[d] > start ? (w->in[d] - start + step - 1) / step : 0;
    *out_first = first;
    *out_end = end < w->kernel[d] ? end : w->kernel[d];
}

#endif
