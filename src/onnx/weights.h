// Weights of a model: the constants that a training changes.
#ifndef BELFRY_ONNX_WEIGHTS_H
#define BELFRY_ONNX_WEIGHTS_H

#include "onnx/model.h"

typedef enum bel_onnx_role {
    BEL_ONNX_FIXED,     // stays a constant
    BEL_ONNX_TRAINED,   // a trainable variable
    BEL_ONNX_STATISTIC, // a frozen variable: mean or variance of a BatchNormalization
} bel_onnx_role;

// Returns the role of a value that is a float initializer, or a Constant or ConstantOfShape.
bel_onnx_role bel_onnx_role_of(const bel_onnx_weights *weights, int id);

#endif
