// CTC in double, as ops/ctc.c: logarithms of probabilities.
#define PLAIN
#include "cuda/kernels/elements.h"

#define REAL double
#define NUMBER double

static inline double number_zero(void)
{
    return -(double)INFINITY;
}

static inline double number_one(void)
{
    return 0;
}

static inline bool number_is_zero(double a)
{
    return a == -(double)INFINITY;
}

static inline double number_add(double a, double b)
{
    double most = bel_larger_of(a, b);
    if (number_is_zero(most)) return most;
    return most + bel_real_log(bel_real_exp(a - most) + bel_real_exp(b - most));
}

static inline double number_mul(double a, double b)
{
    return a + b;
}

static inline double number_of(double log_p)
{
    return log_p;
}

static inline double number_share(double part, double all)
{
    return bel_real_exp(part - all);
}

static inline double loss_of(double probability, int zero_infinity)
{
    return number_is_zero(probability) && zero_infinity ? 0 : -probability;
}

static inline double all_of(double p)
{
    return bel_real_exp(p);
}

static inline double absent_gradient(double log_p, double dy)
{
    return dy * bel_real_exp(log_p);
}

#include "cuda/kernels/ctc_body.h"

// Zeros after an example's frames.
KERNEL(ctc_log_p, bel_cuda_ctc)
{
    for (int64_t row = THREAD; row < p.n * p.frames; row += THREADS) {
        bool seen = row % p.frames < ((const int64_t *)at.work)[row / p.frames];
        const double *x = (const double *)at.in[0] + row * p.classes;
        double *y = (double *)at.out[1] + row * p.classes, total = number_zero();
        for (int64_t k = 0; seen && k < p.classes; k++)
            total = number_add(total, x[k]);
        for (int64_t k = 0; k < p.classes; k++)
            y[k] = seen ? x[k] - total : 0;
    }
}
