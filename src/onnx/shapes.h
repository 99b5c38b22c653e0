// Shapes given as elements of an input.
#ifndef BELFRY_ONNX_SHAPES_H
#define BELFRY_ONNX_SHAPES_H

#include "onnx/build.h"

// INVALID_ARGUMENT: a dimension below `low` (-1 or 0), or more elements than a value may have.
bel_status *bel_onnx_check_shape(const bel_shape *shape, int64_t low) BEL_MUST_USE;

// Returns a known input as a shape without open dimensions.
bel_status *bel_onnx_known_shape(bel_onnx_call *call, int input, bel_shape *out_shape) BEL_MUST_USE;

// Makes output 0: x repeated to the shape in an input, which may have open dimensions.
bel_status *bel_onnx_repeat(bel_onnx_call *call, bel_value *x, int input) BEL_MUST_USE;

#endif
