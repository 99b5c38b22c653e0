// GRU and LSTM in double, as ops/recurrent_plain.c.
#include "base/real.c"
#include "cuda/kernels/kernel.h"

static inline double sigmoid(double x)
{
    return 1 / (1 + bel_real_exp(-x));
}

#define REAL double
#define FUSED 0
#define CHAIN(a, b, c) ((c) + (a) * (b))
#define SIGMOID(x) sigmoid(x)
#define TANH(x) bel_real_tanh(x)
#define BEGIN(x) (0.0 + (x)) // is added to zeros
#include "cuda/kernels/recurrent_forward.h"
