// ONNX models for tests of the command and for benchmarks, written field by field, with weights
// from a generator: no library and no data is needed.
#ifndef BELFRY_TESTS_SUPPORT_ONNX_MODELS_H
#define BELFRY_TESTS_SUPPORT_ONNX_MODELS_H

#include <stdbool.h>

typedef struct bel_str bel_str; // base/str.h

// Returns the bytes of a model by its name. NULL text: there is no such model. Free with
// bel_str_deinit.
//
//   linear       y = x [batch, 3] · w + b, z = relu y, with w = [1 2; 3 4; 5 6], b = [10, -100]
//   unknown      the same, with an unknown operator
//   chain        20 products of [1, 8] with [8, 8], each with bias and relu
//   products     the same without bias and relu
//   tiny_mlp     16 layers of 16 × 16, each with bias and relu
//   mlp          784-128-10
//   lenet        two convolutions and three dense layers on [batch, 1, 28, 28]
//   resnet20     20 layers with residual connections on [batch, 3, 32, 32], with statistics
//   transformer  a block of 4 heads on [batch, 64, 128]
//   closed       x [1, 3] divided by its largest element, then a dense layer
//   running      x [4, 3] summed along the batch, then a dense layer
//   logits       a dense layer on [batch, 3]
//   written_out  its softmax as Exp, ReduceSum and Div
//   scaled       its Softmax times 0.5, which is an initializer
bel_str bel_onnx_model_make(const char *name);

// Their names, from 0 on; NULL after the last.
const char *bel_onnx_model_name(int index);

#endif
