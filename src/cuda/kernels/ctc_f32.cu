// CTC in f32, as ops/kernels/ctc.c: probabilities are wide numbers.
#include "base/real.c"
#include "cuda/kernels/lanes.h"
#include "ops/kernels/scalar.h"
#include "ops/kernels/wide.h"

#define REAL float
#define NUMBER bel_wide

static inline bel_wide number_zero(void)
{
    bel_wide zero = {0, 0};
    return zero;
}

static inline bel_wide number_one(void)
{
    bel_wide one = {1, 0};
    return one;
}

static inline bool number_is_zero(bel_wide a)
{
    return a.m == 0;
}

static inline bel_wide number_add(bel_wide a, bel_wide b)
{
    return bel_wide_add(a, b);
}

static inline bel_wide number_mul(bel_wide a, bel_wide b)
{
    return bel_wide_mul(a, b);
}

static inline bel_wide number_of(float log_p)
{
    return bel_wide_exp((double)log_p);
}

static inline double number_share(bel_wide part, bel_wide all)
{
    return bel_wide_ratio(part, all);
}

static inline float loss_of(bel_wide probability, int zero_infinity)
{
    if (probability.m != 0) return (float)-bel_wide_log(probability);
    return zero_infinity ? 0.0f : INFINITY;
}

static inline float absent_gradient(float log_p, double dy)
{
    return exp_one(log_p) * (float)dy;
}

// Probability of a class in double, as a difference with it may be small.
static inline double all_of(bel_wide p)
{
    return bel_wide_ratio(p, number_one());
}

#include "cuda/kernels/ctc_body.h"

// Zeros after an example's frames.
KERNEL(ctc_log_p, bel_cuda_ctc)
{
    __shared__ lanes_of_rows shared;
    int64_t row = (int64_t)blockIdx.x * BEL_CUDA_ROWS + ROW;
    bool there = row < p.n * p.frames;
    bool seen = there && row % p.frames < ((const int64_t *)at.work)[row / p.frames];
    int64_t n = seen ? p.classes : 0, first = there ? row * p.classes : 0;
    const float *x = (const float *)at.in[0] + first;
    float *y = (float *)at.out[1] + first;
    float shift = largest_of(shared, x, n), sum = 0.0f;
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        sum += exp_one(x[i] - shift);
    float offset = shift + log_one(add_lanes(shared, sum));
    for (int64_t i = LANE; there && i < p.classes; i += BEL_CUDA_LANES)
        y[i] = seen ? x[i] - offset : 0.0f;
}
