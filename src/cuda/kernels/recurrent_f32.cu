// GRU and LSTM in f32, as ops/kernels/recurrent.c and recurrent_grad.c: products are chains of
// fused multiply-adds.
#include "cuda/kernels/kernel.h"
#include "ops/kernels/scalar.h"

#define REAL float
#define FUSED 1
#define CHAIN(a, b, c) fmaf(a, b, c)
#define SIGMOID(x) sigmoid_one(x)
#define TANH(x) tanh_one(x)
#define BEGIN(x) (x)
#include "cuda/kernels/recurrent_forward.h"
