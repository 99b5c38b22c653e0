// Softmax, log-softmax, their gradients and cross-entropy, row by row: 16 rows in a block
// (lanes.h). Each element of y is read again only by the thread that wrote it, so y may overwrite
// x.
#define PLAIN
#include "cuda/kernels/elements.h"
#include "cuda/kernels/lanes.h"

// First statements of a kernel: this thread's row, with n elements; n is 0 without a row.
#define TAKE_ROW                                                                                   \
    __shared__ lanes_of_rows shared;                                                               \
    int64_t row = (int64_t)blockIdx.x * BEL_CUDA_ROWS + ROW;                                       \
    int64_t n = row < p.rows ? p.columns : 0, first = n > 0 ? row * p.columns : 0;

KERNEL(softmax, bel_cuda_rows)
{
    TAKE_ROW
    const float *x = (const float *)at.in[0] + first;
    float *y = (float *)at.out[0] + first;
    float shift = largest_of(shared, x, n), sum = 0.0f;
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES) {
        y[i] = exp_one(x[i] - shift);
        sum += y[i];
    }
    float scale = 1.0f / add_lanes(shared, sum);
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        y[i] *= scale;
}

// The number that is subtracted from each element of a row.
static inline float log_offset(lanes_of_rows shared, const float *x, int64_t n)
{
    float shift = largest_of(shared, x, n), sum = 0.0f;
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        sum += exp_one(x[i] - shift);
    return shift + log_one(add_lanes(shared, sum));
}

KERNEL(log_softmax, bel_cuda_rows)
{
    TAKE_ROW
    const float *x = (const float *)at.in[0] + first;
    float *y = (float *)at.out[0] + first;
    float offset = log_offset(shared, x, n);
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        y[i] = x[i] - offset;
}

KERNEL(softmax_grad, bel_cuda_rows)
{
    TAKE_ROW
    const float *dy = (const float *)at.in[0] + first, *y = (const float *)at.in[1] + first;
    float *dx = (float *)at.out[0] + first, sum = 0.0f;
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        sum += dy[i] * y[i];
    float inner = add_lanes(shared, sum);
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        dx[i] = y[i] * (dy[i] - inner);
}

KERNEL(log_softmax_grad, bel_cuda_rows)
{
    TAKE_ROW
    const float *dy = (const float *)at.in[0] + first, *y = (const float *)at.in[1] + first;
    float *dx = (float *)at.out[0] + first, total = sum_of(shared, dy, n);
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES)
        dx[i] = dy[i] - exp_one(y[i]) * total;
}

// The thread that writes the label's logarithm writes the loss; a bad label has no loss.
KERNEL(cross_entropy, bel_cuda_rows)
{
    TAKE_ROW
    const float *x = (const float *)at.in[0] + first;
    const int64_t *labels = (const int64_t *)at.in[1];
    float *loss = (float *)at.out[0], *y = (float *)at.out[1] + first;
    float offset = log_offset(shared, x, n);
    int64_t label = n > 0 ? labels[row] : 0;
    bool good = label >= 0 && label < p.columns;
    if (n > 0 && LANE == 0 && !good) {
        report_bad(&at, label, 0, p.columns);
        loss[row] = 0.0f;
    }
    for (int64_t i = LANE; i < n; i += BEL_CUDA_LANES) {
        float value = x[i] - offset;
        y[i] = value;
        if (i == label) loss[row] = (float)-(double)value;
    }
}

KERNEL(cross_entropy_grad, bel_cuda_rows)
{
    const float *dy = (const float *)at.in[0], *log_probability = (const float *)at.in[1];
    const int64_t *labels = (const int64_t *)at.in[2];
    float *dx = (float *)at.out[0];
    for (int64_t e = THREAD; e < p.rows * p.columns; e += THREADS) {
        int64_t row = e / p.columns;
        float share = exp_one(log_probability[e]);
        if (labels[row] == e % p.columns) share -= 1.0f;
        dx[e] = share * dy[row];
    }
}

// --- In double, a row for each thread ------------------------------------------------------------

// A row's largest element, and the sum of the powers of the differences to it.
static inline double shift_of(const double *x, int64_t columns, double *out_total)
{
    double shift = x[0], total = 0;
    for (int64_t j = 1; j < columns; j++)
        shift = bel_larger_of(shift, x[j]);
    for (int64_t j = 0; j < columns; j++)
        total += bel_real_exp(x[j] - shift);
    *out_total = total;
    return shift;
}

KERNEL(softmax_f64, bel_cuda_rows) // op 0: Softmax, 1: LogSoftmax
{
    for (int64_t row = THREAD; row < p.rows; row += THREADS) {
        const double *x = (const double *)at.in[0] + row * p.columns;
        double *y = (double *)at.out[0] + row * p.columns, total;
        double shift = shift_of(x, p.columns, &total);
        for (int64_t j = 0; j < p.columns; j++) {
            double z = x[j] - shift;
            y[j] = p.op == 0 ? bel_real_exp(z) / total : z - bel_real_log(total);
        }
    }
}

KERNEL(softmax_grad_f64, bel_cuda_rows)
{
    for (int64_t row = THREAD; row < p.rows; row += THREADS) {
        const double *dy = (const double *)at.in[0] + row * p.columns;
        const double *y = (const double *)at.in[1] + row * p.columns;
        double *dx = (double *)at.out[0] + row * p.columns, inner = 0;
        for (int64_t j = 0; j < p.columns; j++)
            inner += dy[j] * (p.op == 1 ? 1.0 : y[j]);
        for (int64_t j = 0; j < p.columns; j++)
            dx[j] = p.op == 1 ? dy[j] - bel_real_exp(y[j]) * inner : y[j] * (dy[j] - inner);
    }
}

KERNEL(cross_entropy_f64, bel_cuda_rows)
{
    const int64_t *labels = (const int64_t *)at.in[1];
    for (int64_t row = THREAD; row < p.rows; row += THREADS) {
        const double *x = (const double *)at.in[0] + row * p.columns;
        double *y = (double *)at.out[1] + row * p.columns, total;
        double shift = shift_of(x, p.columns, &total);
        for (int64_t j = 0; j < p.columns; j++)
            y[j] = x[j] - shift - bel_real_log(total);
        bool good = labels[row] >= 0 && labels[row] < p.columns;
        if (!good) report_bad(&at, labels[row], 0, p.columns);
        ((double *)at.out[0])[row] = good ? -y[labels[row]] : 0;
    }
}

KERNEL(cross_entropy_grad_f64, bel_cuda_rows)
{
    const double *dy = (const double *)at.in[0], *log_probability = (const double *)at.in[1];
    const int64_t *labels = (const int64_t *)at.in[2];
    double *dx = (double *)at.out[0];
    for (int64_t e = THREAD; e < p.rows * p.columns; e += THREADS) {
        int64_t row = e / p.columns;
        double share = bel_real_exp(log_probability[e]) - (e % p.columns == labels[row] ? 1 : 0);
        dx[e] = share * dy[row];
    }
}
