// Most functions of belfry/ops.h: each packs its attributes under their ONNX names and adds a node.
// The operation's rule checks shapes and types, so that an error has the same text from a model,
// from ONNX and from a gradient rule. ONNX operations that Belfry lacks are composed here of public
// operations: vectors in MatMul, ReduceLogSumExp, L2 loss. A NULL input means an earlier failure.
// It may be passed on, but code that reads its shape must allow for it.
#include <float.h>
#include <math.h>

#include "belfry/ops.h"
#include "graph/attrs.h"

static bel_value *add1(bel_graph *graph, bel_op op, bel_value *x)
{
    return bel_graph_add(graph, op, NULL, &x, 1);
}

static bel_value *add2(bel_graph *graph, bel_op op, bel_value *a, bel_value *b)
{
    bel_value *inputs[] = {a, b};
    return bel_graph_add(graph, op, NULL, inputs, 2);
}

#define TWO_INPUTS(name, op)                                                                       \
    bel_value *bel_##name(bel_graph *graph, bel_value *a, bel_value *b)                            \
    {                                                                                              \
        return add2(graph, op, a, b);                                                              \
    }

TWO_INPUTS(add, BEL_OP_ADD)
TWO_INPUTS(sub, BEL_OP_SUB)
TWO_INPUTS(mul, BEL_OP_MUL)
TWO_INPUTS(div, BEL_OP_DIV)
TWO_INPUTS(max, BEL_OP_MAX)
TWO_INPUTS(min, BEL_OP_MIN)
TWO_INPUTS(equal, BEL_OP_EQUAL)
TWO_INPUTS(greater, BEL_OP_GREATER)
TWO_INPUTS(less, BEL_OP_LESS)
TWO_INPUTS(greater_or_equal, BEL_OP_GREATER_OR_EQUAL)
TWO_INPUTS(less_or_equal, BEL_OP_LESS_OR_EQUAL)
TWO_INPUTS(and, BEL_OP_AND)
TWO_INPUTS(or, BEL_OP_OR)
TWO_INPUTS(xor, BEL_OP_XOR)
TWO_INPUTS(pow, BEL_OP_POW)
TWO_INPUTS(softmax_cross_entropy, BEL_OP_SOFTMAX_CROSS_ENTROPY)
TWO_INPUTS(sigmoid_cross_entropy, BEL_OP_SIGMOID_CROSS_ENTROPY)
TWO_INPUTS(gather, BEL_OP_GATHER)

#define ONE_INPUT(name, op)                                                                        \
    bel_value *bel_##name(bel_graph *graph, bel_value *x)                                          \
    {                                                                                              \
        return add1(graph, op, x);                                                                 \
    }

ONE_INPUT(neg, BEL_OP_NEG)
ONE_INPUT(exp, BEL_OP_EXP)
ONE_INPUT(log, BEL_OP_LOG)
ONE_INPUT(sqrt, BEL_OP_SQRT)
ONE_INPUT(abs, BEL_OP_ABS)
ONE_INPUT(relu, BEL_OP_RELU)
ONE_INPUT(sigmoid, BEL_OP_SIGMOID)
ONE_INPUT(tanh, BEL_OP_TANH)
ONE_INPUT(not, BEL_OP_NOT)
ONE_INPUT(is_nan, BEL_OP_IS_NAN)
ONE_INPUT(sign, BEL_OP_SIGN)
ONE_INPUT(reciprocal, BEL_OP_RECIPROCAL)
ONE_INPUT(floor, BEL_OP_FLOOR)
ONE_INPUT(ceil, BEL_OP_CEIL)
ONE_INPUT(round, BEL_OP_ROUND)
ONE_INPUT(erf, BEL_OP_ERF)
ONE_INPUT(sin, BEL_OP_SIN)
ONE_INPUT(cos, BEL_OP_COS)
ONE_INPUT(tan, BEL_OP_TAN)
ONE_INPUT(asin, BEL_OP_ASIN)
ONE_INPUT(acos, BEL_OP_ACOS)
ONE_INPUT(atan, BEL_OP_ATAN)
ONE_INPUT(sinh, BEL_OP_SINH)
ONE_INPUT(cosh, BEL_OP_COSH)
ONE_INPUT(asinh, BEL_OP_ASINH)
ONE_INPUT(acosh, BEL_OP_ACOSH)
ONE_INPUT(atanh, BEL_OP_ATANH)
ONE_INPUT(gelu, BEL_OP_GELU)
ONE_INPUT(gelu_tanh, BEL_OP_GELU_TANH)
ONE_INPUT(silu, BEL_OP_SILU)
ONE_INPUT(softplus, BEL_OP_SOFTPLUS)
ONE_INPUT(identity, BEL_OP_IDENTITY)
ONE_INPUT(softmax, BEL_OP_SOFTMAX)
ONE_INPUT(log_softmax, BEL_OP_LOG_SOFTMAX)

// A function of x with two numbers; without a name the second one is left out.
static bel_value *curve(bel_graph *graph, bel_op op, bel_value *x, const char *s_name, double s,
                        const char *t_name, double t)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, s_name, s);
    if (t_name != NULL) bel_attr_put(&attrs, t_name, t);
    return bel_graph_add(graph, op, &attrs, &x, 1);
}

bel_value *bel_leaky_relu(bel_graph *graph, bel_value *x, double alpha)
{
    return curve(graph, BEL_OP_LEAKY_RELU, x, "alpha", alpha, NULL, 0);
}

bel_value *bel_elu(bel_graph *graph, bel_value *x, double alpha)
{
    return curve(graph, BEL_OP_ELU, x, "alpha", alpha, NULL, 0);
}

bel_value *bel_hard_sigmoid(bel_graph *graph, bel_value *x, double alpha, double beta)
{
    return curve(graph, BEL_OP_HARD_SIGMOID, x, "alpha", alpha, "beta", beta);
}

bel_value *bel_clip(bel_graph *graph, bel_value *x, double low, double high)
{
    return curve(graph, BEL_OP_CLIP, x, "min", low, "max", high);
}

bel_value *bel_cast(bel_graph *graph, bel_value *x, bel_dtype to)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "to", to);
    return bel_graph_add(graph, BEL_OP_CAST, &attrs, &x, 1);
}

// A vector becomes a matrix of one row (a) or one column (b), which is then dropped.
bel_value *bel_matmul(bel_graph *graph, bel_value *a, bel_value *b)
{
    static const int64_t row[] = {0}, column[] = {1};
    bool a_vector = a != NULL && bel_value_shape(a).rank == 1;
    bool b_vector = b != NULL && bel_value_shape(b).rank == 1;
    if (a_vector) a = bel_unsqueeze(graph, a, row, 1);
    if (b_vector) b = bel_unsqueeze(graph, b, column, 1);
    bel_value *y = add2(graph, BEL_OP_MATMUL, a, b);
    const int64_t dropped[] = {b_vector ? -1 : -2, -2};
    int count = a_vector + b_vector;
    return count == 0 || y == NULL ? y : bel_squeeze(graph, y, dropped, count);
}

bel_value *bel_gemm(bel_graph *graph, bel_value *a, bel_value *b, bel_value *c, double alpha,
                    double beta, bool transpose_a, bool transpose_b)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "alpha", alpha);
    bel_attr_put(&attrs, "beta", beta);
    bel_attr_put(&attrs, "transA", transpose_a);
    bel_attr_put(&attrs, "transB", transpose_b);
    bel_value *inputs[] = {a, b, c};
    return bel_graph_add(graph, BEL_OP_GEMM, &attrs, inputs, c == NULL ? 2 : 3);
}

static bel_value *builder_reduce(bel_graph *graph, bel_op op, bel_value *x, const int64_t *axes,
                                 int axis_count, bool keepdims)
{
    bel_attr_list attrs = {.count = 0};
    if (!bel_attr_count_ok(graph, bel_op_get(op)->name, axis_count)) return NULL;
    if (axis_count > 0) bel_attr_put_ints(&attrs, "axes", axis_count, axes);
    bel_attr_put(&attrs, "keepdims", keepdims);
    return bel_graph_add(graph, op, &attrs, &x, 1);
}

#define REDUCTION(name, op)                                                                        \
    bel_value *bel_##name(bel_graph *graph, bel_value *x, const int64_t *axes, int axis_count,     \
                          bool keepdims)                                                           \
    {                                                                                              \
        return builder_reduce(graph, op, x, axes, axis_count, keepdims);                           \
    }

REDUCTION(reduce_sum, BEL_OP_REDUCE_SUM)
REDUCTION(reduce_mean, BEL_OP_REDUCE_MEAN)
REDUCTION(reduce_max, BEL_OP_REDUCE_MAX)
REDUCTION(reduce_sum_square, BEL_OP_REDUCE_SUM_SQUARE)
REDUCTION(reduce_min, BEL_OP_REDUCE_MIN)
REDUCTION(reduce_prod, BEL_OP_REDUCE_PROD)
REDUCTION(reduce_l1, BEL_OP_REDUCE_L1)
REDUCTION(reduce_l2, BEL_OP_REDUCE_L2)

bel_value *bel_mean(bel_graph *graph, bel_value *x)
{
    return bel_reduce_mean(graph, x, NULL, 0, false);
}

// log sum e^(x - m) + m, where m is the maximum, clamped to finite numbers, as infinity less
// infinity is NaN. A sum with a finite maximum is 1 or more. If all of x is -infinity the sum is 0,
// whose logarithm has no slope: 0.5 replaces it, and -infinity the result, so that gradients are 0
// there. Axes are removed at the end unless they are kept.
bel_value *bel_reduce_log_sum_exp(bel_graph *graph, bel_value *x, const int64_t *axes,
                                  int axis_count, bool keepdims)
{
    bel_dtype dtype = bel_value_dtype(x);
    const double most_finite = dtype == BEL_DTYPE_F64 ? DBL_MAX : (double)FLT_MAX;
    bel_value *most = bel_reduce_max(graph, x, axes, axis_count, true);
    bel_value *shift = bel_clip(graph, most, -most_finite, most_finite);
    bel_value *power = bel_exp(graph, bel_sub(graph, x, shift));
    bel_value *sum = bel_reduce_sum(graph, power, axes, axis_count, true);
    bel_value *y = bel_add(graph, bel_log(graph, bel_clip(graph, sum, 0.5, INFINITY)), shift);
    bel_value *nothing = bel_scalar(graph, dtype, -INFINITY);
    y = bel_where(graph, bel_equal(graph, most, nothing), nothing, y);
    if (keepdims || y == NULL) return y;
    int32_t rank = bel_value_shape(x).rank;
    int64_t all[BEL_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (rank == 0) return y;
    return bel_squeeze(graph, y, axis_count > 0 ? axes : all, axis_count > 0 ? axis_count : rank);
}

bel_value *bel_l2_loss(bel_graph *graph, bel_value *x)
{
    bel_value *sum = bel_reduce_sum_square(graph, x, NULL, 0, false);
    return bel_mul(graph, sum, bel_scalar(graph, bel_value_dtype(x), 0.5));
}

bel_value *bel_arg_max(bel_graph *graph, bel_value *x, int64_t axis)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    return bel_graph_add(graph, BEL_OP_ARG_MAX, &attrs, &x, 1);
}

bel_value *bel_arg_min(bel_graph *graph, bel_value *x, int64_t axis)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    return bel_graph_add(graph, BEL_OP_ARG_MIN, &attrs, &x, 1);
}

bel_value *bel_top_k(bel_graph *graph, bel_value *x, int64_t k, int64_t axis, bool largest,
                     bel_value **out_indices)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "k", (double)k);
    bel_attr_put(&attrs, "axis", (double)axis);
    bel_attr_put(&attrs, "largest", largest);
    bel_value *values = bel_graph_add(graph, BEL_OP_TOP_K, &attrs, &x, 1);
    if (out_indices != NULL) *out_indices = values == NULL ? NULL : bel_graph_output(values, 1);
    return values;
}

bel_value *bel_cum_sum(bel_graph *graph, bel_value *x, int64_t axis, bool exclusive, bool reverse)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    bel_attr_put(&attrs, "exclusive", exclusive);
    bel_attr_put(&attrs, "reverse", reverse);
    return bel_graph_add(graph, BEL_OP_CUM_SUM, &attrs, &x, 1);
}

bel_value *bel_reshape(bel_graph *graph, bel_value *x, const bel_shape *shape)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put_ints(&attrs, "shape", shape->rank, shape->dims);
    return bel_graph_add(graph, BEL_OP_RESHAPE, &attrs, &x, 1);
}

bel_value *bel_flatten(bel_graph *graph, bel_value *x, int64_t axis)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    return bel_graph_add(graph, BEL_OP_FLATTEN, &attrs, &x, 1);
}

bel_value *bel_transpose(bel_graph *graph, bel_value *x, const int64_t *permutation)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put_ints(&attrs, "perm", bel_value_shape(x).rank, permutation);
    return bel_graph_add(graph, BEL_OP_TRANSPOSE, &attrs, &x, 1);
}

bel_value *bel_one_hot(bel_graph *graph, bel_value *indices, int64_t depth)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "depth", (double)depth);
    return bel_graph_add(graph, BEL_OP_ONE_HOT, &attrs, &indices, 1);
}

bel_value *bel_dropout(bel_graph *graph, bel_value *x, double ratio)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "ratio", ratio);
    return bel_graph_add(graph, BEL_OP_DROPOUT, &attrs, &x, 1);
}

bel_value *bel_random_uniform(bel_graph *graph, bel_value *like, double low, double high)
{
    return curve(graph, BEL_OP_RANDOM_UNIFORM, like, "low", low, "high", high);
}

bel_value *bel_random_normal(bel_graph *graph, bel_value *like, double mean, double deviation)
{
    return curve(graph, BEL_OP_RANDOM_NORMAL, like, "mean", mean, "scale", deviation);
}

bel_value *bel_global_step(bel_graph *graph)
{
    return bel_graph_add(graph, BEL_OP_GLOBAL_STEP, NULL, NULL, 0);
}

bel_value *bel_stop_gradient(bel_graph *graph, bel_value *x)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "stop", true);
    return bel_graph_add(graph, BEL_OP_IDENTITY, &attrs, &x, 1);
}
