// GRU and LSTM in f32, in the order of ops/kernels/recurrent.c and recurrent_grad.c: products are
// chains of fused multiply-adds.
#include "cuda/kernels/kernel.h"
#include "ops/kernels/scalar.h"

#define REAL float
#define FUSED 1
#define CHAIN(a, b, c) fmaf(a, b, c)
#define SIGMOID(x) sigmoid_one(x)
#define TANH(x) tanh_one(x)
#define BEGIN(x) (x)
#include "cuda/kernels/recurrent_forward.h"

// From h' = (1 - z) n + z h: gradients of n and z before their functions, and the part of dh that
// goes directly to h. These three are the loops of ops/kernels/recurrent_isa.c.
static inline void gru_back(float n, float z, float h, float *dh, float *dn, float *dz)
{
    float d = *dh, other = 1.0f - z;
    *dn = d * other * (1.0f - n * n);
    *dz = d * (h - n) * (z * other);
    *dh = d * z;
}

static inline void reset_back(float dp, float r, float q, float *dr, float *dq)
{
    *dr = dp * q * (r * (1.0f - r));
    *dq = dp * r;
}

// Gates are `step` apart.
static inline void lstm_back(const float *saved, int64_t step, float cell_before, float cell_tanh,
                             float dh, float *dc, float *gates)
{
    float in = saved[0], out = saved[step], forget = saved[2 * step], candidate = saved[3 * step];
    float d = *dc + dh * out * (1.0f - cell_tanh * cell_tanh);
    gates[0] = d * candidate * (in * (1.0f - in));
    gates[step] = dh * cell_tanh * (out * (1.0f - out));
    gates[2 * step] = d * cell_before * (forget * (1.0f - forget));
    gates[3 * step] = d * in * (1.0f - candidate * candidate);
    *dc = d * forget;
}

#include "cuda/kernels/recurrent_back.h"
