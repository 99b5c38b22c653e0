// Normalization of rows in the order of the plain kernels of ops/row_norm.c: a thread for each row,
// or for each scale, goes through its elements in order.
#include "cuda/kernels/plain_elements.h"
#include "cuda/kernels/row_norm.h"

// The scale of element (row, j).
static inline int64_t scale_at(const bel_cuda_row_norm *p, int64_t row, int64_t j)
{
    return row % p->period * p->scales + j / p->run;
}

KERNEL(row_norm_plain_forward, bel_cuda_row_norm)
{
    double count = (double)p.columns;
    for (int64_t row = THREAD; row < p.rows; row += THREADS) {
        int64_t base = row * p.columns;
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < p.columns; j++)
            mean += plain_get(at.in[0], p.is_f64, base + j) / count;
        for (int64_t j = 0; j < p.columns; j++) {
            double distance = plain_get(at.in[0], p.is_f64, base + j) - mean;
            variance += distance * distance / count;
        }
        double inverse = 1 / sqrt(variance + p.epsilon);
        plain_set(at.out[1], p.is_f64, row, mean);
        plain_set(at.out[2], p.is_f64, row, inverse);
        for (int64_t j = 0; j < p.columns; j++) {
            int64_t s = scale_at(&p, row, j);
            double bias = p.has_bias ? plain_get(at.in[2], p.is_f64, s) : 0;
            double y = (plain_get(at.in[0], p.is_f64, base + j) - mean) * inverse;
            plain_set(at.out[0], p.is_f64, base + j, y * plain_get(at.in[1], p.is_f64, s) + bias);
        }
    }
}

// dx; inputs dy, x, scale, mean, 1 / deviation.
KERNEL(row_norm_plain_grad, bel_cuda_row_norm)
{
    double count = (double)p.columns;
    for (int64_t row = THREAD; row < p.rows; row += THREADS) {
        double mean = plain_get(at.in[3], p.is_f64, row);
        double inverse = plain_get(at.in[4], p.is_f64, row), sum = 0, product = 0;
        int64_t base = row * p.columns;
        for (int64_t j = 0; j < p.columns; j++) {
            double g = plain_get(at.in[0], p.is_f64, base + j) *
                       plain_get(at.in[2], p.is_f64, scale_at(&p, row, j));
            double y = (plain_get(at.in[1], p.is_f64, base + j) - mean) * inverse;
            sum += g / count;
            product += g * y / count;
        }
        for (int64_t j = 0; j < p.columns; j++) {
            double g = plain_get(at.in[0], p.is_f64, base + j) *
                       plain_get(at.in[2], p.is_f64, scale_at(&p, row, j));
            double y = (plain_get(at.in[1], p.is_f64, base + j) - mean) * inverse;
            plain_set(at.out[0], p.is_f64, base + j, (g - sum - y * product) * inverse);
        }
    }
}

// dscale and dbias.
KERNEL(row_norm_plain_scales, bel_cuda_row_norm)
{
    for (int64_t s = THREAD; s < p.period * p.scales; s += THREADS) {
        double dscale = 0, dbias = 0;
        for (int64_t row = s / p.scales; row < p.rows; row += p.period) {
            double mean = plain_get(at.in[3], p.is_f64, row);
            double inverse = plain_get(at.in[4], p.is_f64, row);
            int64_t first = row * p.columns + s % p.scales * p.run;
            for (int64_t j = first; j < first + p.run; j++) {
                double d = plain_get(at.in[0], p.is_f64, j);
                double y = (plain_get(at.in[1], p.is_f64, j) - mean) * inverse;
                dscale = plain_kept(p.is_f64, dscale + d * y);
                dbias = plain_kept(p.is_f64, dbias + d);
            }
        }
        plain_set(at.out[1], p.is_f64, s, dscale);
        plain_set(at.out[2], p.is_f64, s, dbias);
    }
}
