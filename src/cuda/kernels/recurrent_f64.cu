// GRU and LSTM in double, in the order of ops/recurrent_plain.c.
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
#define BEGIN(x) (0.0 + (x)) // added to zeros
#include "cuda/kernels/recurrent_forward.h"

static inline void gru_back(double n, double z, double h, double *dh, double *dn, double *dz)
{
    double d = *dh;
    *dz = d * (h - n) * z * (1 - z);
    *dn = d * (1 - z) * (1 - n * n);
    *dh = d * z;
}

static inline void reset_back(double dp, double r, double q, double *dr, double *dq)
{
    *dr = dp * q * r * (1 - r);
    *dq = dp * r;
}

// Gates are `step` apart.
static inline void lstm_back(const double *saved, int64_t step, double cell_before,
                             double cell_tanh, double dh, double *dc, double *gates)
{
    double in = saved[0], out = saved[step], forget = saved[2 * step], candidate = saved[3 * step];
    double d = *dc + dh * out * (1 - cell_tanh * cell_tanh);
    gates[0] = d * candidate * in * (1 - in);
    gates[step] = dh * cell_tanh * out * (1 - out);
    gates[2 * step] = d * cell_before * forget * (1 - forget);
    gates[3 * step] = d * in * (1 - candidate * candidate);
    *dc = d * forget;
}

#include "cuda/kernels/recurrent_back.h"
