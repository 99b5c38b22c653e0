// Windows of convolutions and pools, from attributes.
#ifndef BELFRY_ONNX_WINDOWS_H
#define BELFRY_ONNX_WINDOWS_H

#include "onnx/build.h"

typedef struct bel_onnx_window {
    bel_window_options options;
    bel_shape kernel, strides, pads, dilations; // options points to these; rank 0: absent
    bool ceil_mode, count_include_pad;          // for pools
} bel_onnx_window;

// Three spatial dimensions, composed of several of Belfry's operations, which have one or two.
bel_status *bel_onnx_conv_volume(bel_onnx_call *call, const bel_onnx_window *window) BEL_MUST_USE;
bel_status *bel_onnx_pool_volume(bel_onnx_call *call, bel_value *x, const bel_onnx_window *window,
                                 bool average, bel_value **out_y) BEL_MUST_USE;

#endif
