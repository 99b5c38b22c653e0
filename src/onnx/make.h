// Functions named in operators.def.
#ifndef BELFRY_ONNX_MAKE_H
#define BELFRY_ONNX_MAKE_H

#include "onnx/build.h"

#define MADE(name, since, min_inputs, max_inputs, function, ...)                                   \
    bel_onnx_make_fn bel_onnx_##function;
#include "onnx/operators.def"

#endif
