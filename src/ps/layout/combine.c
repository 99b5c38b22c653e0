// One loop for each reduction and type. Weights matter only to sums and means of floats. There a
// value is relative to the mean weight of its replicas, like a gradient (bel_weight_add). If all
// weights are equal, no value is multiplied, and the bits are those of a plain sum.
#include "ps/layout/combine.h"

#include <string.h>

#include "base/check.h"
#include "belfry/tensor.h"
#include "tensor/moments.h"

// --- Two values ----------------------------------------------------------------------------------

// A minimum or maximum with a NaN on either side is NaN.
#define LESS(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))

#define COMBINE_PLAIN(name, type)                                                                  \
    static void name(bel_reduce_op op, type *a, const type *b, int64_t n)                          \
    {                                                                                              \
        switch (op) {                                                                              \
        case BEL_REDUCE_SUM:                                                                       \
        case BEL_REDUCE_MEAN:                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i] = a[i] + b[i];                                                                \
            break;                                                                                 \
        case BEL_REDUCE_PRODUCT:                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i] = a[i] * b[i];                                                                \
            break;                                                                                 \
        case BEL_REDUCE_MIN:                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i] = LESS(a[i], b[i]);                                                           \
            break;                                                                                 \
        case BEL_REDUCE_MAX:                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i] = GREATER(a[i], b[i]);                                                        \
            break;                                                                                 \
        }                                                                                          \
    }

// Integers wrap around on overflow, as in the graph's additions.
COMBINE_PLAIN(combine_f32, float)
COMBINE_PLAIN(combine_f64, double)
COMBINE_PLAIN(combine_u32, uint32_t)
COMBINE_PLAIN(combine_u64, uint64_t)

#define COMBINE_ORDERED(name, type)                                                                \
    static void name(bel_reduce_op op, type *a, const type *b, int64_t n)                          \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            a[i] = (op == BEL_REDUCE_MIN) == (b[i] < a[i]) ? b[i] : a[i];                          \
    }

COMBINE_ORDERED(combine_i32, int32_t)
COMBINE_ORDERED(combine_i64, int64_t)

// Combines the moments of two sets of elements (Chan, Golub & LeVeque 1979, equation 2.1). No
// square of a mean enters, so a mean that is large beside the deviation costs no digits. A set
// without elements changes nothing.
static void combine_moments(float *a, const float *b, int64_t channels)
{
    for (int64_t i = 0; i < channels; i++) {
        float *count = &a[BEL_MOMENTS_COUNT * channels + i];
        float *mean = &a[BEL_MOMENTS_MEAN * channels + i];
        float *squares = &a[BEL_MOMENTS_SQUARES * channels + i];
        double left = (double)*count, right = (double)b[BEL_MOMENTS_COUNT * channels + i];
        if (right == 0) continue;
        double all = left + right, other = (double)b[BEL_MOMENTS_MEAN * channels + i];
        double apart = left == 0 ? 0 : other - (double)*mean;
        if (left == 0) *mean = *squares = 0;
        *squares = (float)((double)*squares + (double)b[BEL_MOMENTS_SQUARES * channels + i] +
                           apart * apart * (left * right / all));
        *mean = left == 0 ? (float)other : (float)((double)*mean + apart * (right / all));
        *count = (float)all;
    }
}

static void combine(const bel_combining *c, void *a, const void *b)
{
    if ((int)c->op == BEL_REDUCE_MOMENTS) {
        combine_moments(a, b, c->elements / BEL_MOMENTS_ROWS);
        return;
    }
    bool ordered = c->op == BEL_REDUCE_MIN || c->op == BEL_REDUCE_MAX;
    switch (c->dtype) {
    case BEL_DTYPE_F32: combine_f32(c->op, a, b, c->elements); break;
    case BEL_DTYPE_F64: combine_f64(c->op, a, b, c->elements); break;
    case BEL_DTYPE_I32:
        if (ordered) {
            combine_i32(c->op, a, b, c->elements);
        } else {
            combine_u32(c->op, a, b, c->elements);
        }
        break;
    case BEL_DTYPE_I64:
        if (ordered) {
            combine_i64(c->op, a, b, c->elements);
        } else {
            combine_u64(c->op, a, b, c->elements);
        }
        break;
    default: BEL_CHECK(false); // the graph has checked it
    }
}

// --- Weighted sums -------------------------------------------------------------------------------

static void add_scaled(const bel_combining *c, void *a, double a_factor, const void *b,
                       double b_factor)
{
    if (c->dtype == BEL_DTYPE_F64) {
        double *x = a;
        const double *y = b;
        for (int64_t i = 0; i < c->elements; i++)
            x[i] = x[i] * a_factor + y[i] * b_factor;
    } else {
        float *x = a, left = (float)a_factor, right = (float)b_factor;
        const float *y = b;
        for (int64_t i = 0; i < c->elements; i++)
            x[i] = x[i] * left + y[i] * right;
    }
}

static bool is_weighed(const bel_combining *c)
{
    bool floats = c->dtype == BEL_DTYPE_F32 || c->dtype == BEL_DTYPE_F64;
    return floats && (c->op == BEL_REDUCE_SUM || c->op == BEL_REDUCE_MEAN);
}

// --- The tree ------------------------------------------------------------------------------------

// At stride s, slot j holds the value of the ids [j, j + s).
void *bel_combine(const bel_combining *c, void **slots, bel_weight *weights, int count,
                  bel_weight *out_weight)
{
    for (int stride = 1; stride < count; stride *= 2)
        for (int j = 0; j + stride < count; j += 2 * stride) {
            int k = j + stride;
            if (slots[k] == NULL) continue;
            if (slots[j] == NULL) {
                slots[j] = slots[k];
                weights[j] = weights[k];
                continue;
            }
            double left, right;
            weights[j] = bel_weight_add(weights[j], weights[k], &left, &right);
            if (is_weighed(c) && (left != 1 || right != 1)) {
                add_scaled(c, slots[j], left, slots[k], right);
            } else {
                combine(c, slots[j], slots[k]);
            }
        }
    *out_weight = weights[0];
    return slots[0];
}

// The sum is replicas / examples times the weighted sum, divided by the weight of the receiver.
void bel_combine_give(const bel_combining *c, const void *result, bel_weight all, bel_weight own,
                      void *out)
{
    double factor =
        (double)all.examples * (double)own.replicas / ((double)all.replicas * (double)own.examples);
    double divisor = c->op == BEL_REDUCE_MEAN ? (double)all.replicas : 1;
    if (!is_weighed(c) || (factor == 1 && divisor == 1)) {
        size_t size = (size_t)c->elements * bel_dtype_size(c->dtype);
        if (out != result && size > 0) memcpy(out, result, size);
    } else if (c->dtype == BEL_DTYPE_F64) {
        const double *from = result;
        double *to = out;
        for (int64_t i = 0; i < c->elements; i++)
            to[i] = from[i] * factor / divisor;
    } else {
        const float *from = result;
        float *to = out;
        for (int64_t i = 0; i < c->elements; i++)
            to[i] = from[i] * (float)factor / (float)divisor;
    }
}
