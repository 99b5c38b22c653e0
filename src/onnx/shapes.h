// Shapes given as elements of an input.
#ifndef BELFRY_ONNX_SHAPES_H
#define BELFRY_ONNX_SHAPES_H

#include "onnx/build.h"

// Makes output 0: x repeated to the shape in an input, which may have open dimensions.
bel_status *bel_onnx_repeat(bel_onnx_call *call, bel_value *x, int input) BEL_MUST_USE;

#endif
