// Windows of convolutions and pools, as attributes say them.
#ifndef BELFRY_ONNX_WINDOWS_H
#define BELFRY_ONNX_WINDOWS_H

#include "onnx/build.h"

typedef struct bel_onnx_window {
    bel_window_options options;
    bel_shape kernel, strides, pads, dilations; // that options points to; rank 0: none
    bool ceil_mode, count_include_pad;          // of pools
} bel_onnx_window;

// Three spatial dimensions, of which Belfry's operations have one or two: the same function by
// several of these.
bel_status *bel_onnx_conv_volume(bel_onnx_call *call, const bel_onnx_window *window) BEL_MUST_USE;
bel_status *bel_onnx_pool_volume(bel_onnx_call *call, bel_value *x, const bel_onnx_window *window,
                                 bool average, bel_value **out_y) BEL_MUST_USE;

#endif
