// Row kernels of GRU and LSTM, compiled once for each level of base/isa_levels.h, its BEL_LEVEL.
// Plain loops that both compilers vectorize, without fused multiply-adds: all levels give the same
// bits.
#include "ops/kernels/recurrent.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

static void add_product(float *restrict a, const float *restrict b, const float *restrict c,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        a[i] += b[i] * c[i];
}

static void gru_state(const float *restrict candidate, const float *restrict z, float *restrict h,
                      int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        h[i] = (1.0f - z[i]) * candidate[i] + z[i] * h[i];
}

// From h' = (1 - z) n + z h: gradients of n and z before their functions, and dh · z, the direct
// part for h.
static void gru_grad(const float *restrict candidate, const float *restrict z,
                     const float *restrict h, float *restrict dh, float *restrict dn,
                     float *restrict dz, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float d = dh[i], keep = z[i], other = 1.0f - keep;
        dn[i] = d * other * (1.0f - candidate[i] * candidate[i]);
        dz[i] = d * (h[i] - candidate[i]) * (keep * other);
        dh[i] = d * keep;
    }
}

static void gru_reset_grad(const float *restrict dp, const float *restrict r,
                           const float *restrict q, float *restrict dr, float *restrict dq,
                           int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dr[i] = dp[i] * q[i] * (r[i] * (1.0f - r[i]));
        dq[i] = dp[i] * r[i];
    }
}

static void lstm_cell(const float *gates, int64_t step, float *restrict c, int64_t n)
{
    const float *restrict in = gates, *restrict forget = gates + 2 * step;
    const float *restrict candidate = gates + 3 * step;
    for (int64_t i = 0; i < n; i++)
        c[i] = forget[i] * c[i] + in[i] * candidate[i];
}

// Adds to dc the part through h = o · tanh(c). Then computes the gradients of the four gates before
// their functions, and dc · f for the previous step.
static void lstm_grad(const float *saved, int64_t saved_step, const float *restrict cell_before,
                      const float *restrict cell_tanh, const float *restrict dh, float *restrict dc,
                      float *restrict gates, int64_t step, int64_t n)
{
    const float *restrict in = saved, *restrict out = saved + saved_step;
    const float *restrict forget = saved + 2 * saved_step;
    const float *restrict candidate = saved + 3 * saved_step;
    for (int64_t i = 0; i < n; i++) {
        float d = dc[i] + dh[i] * out[i] * (1.0f - cell_tanh[i] * cell_tanh[i]);
        gates[i] = d * candidate[i] * (in[i] * (1.0f - in[i]));
        gates[step + i] = dh[i] * cell_tanh[i] * (out[i] * (1.0f - out[i]));
        gates[2 * step + i] = d * cell_before[i] * (forget[i] * (1.0f - forget[i]));
        gates[3 * step + i] = d * in[i] * (1.0f - candidate[i] * candidate[i]);
        dc[i] = d * forget[i];
    }
}

const bel_recurrent_kernels JOIN(bel_recurrent_kernels_, BEL_LEVEL) = {
    .add_product = add_product,
    .gru_state = gru_state,
    .gru_grad = gru_grad,
    .gru_reset_grad = gru_reset_grad,
    .lstm_cell = lstm_cell,
    .lstm_grad = lstm_grad,
};
