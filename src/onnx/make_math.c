// Element-wise operators composed of others. Old broadcasting (up to opset 6) becomes Unsqueeze.
// Known limits of Clip become attributes, for one kernel; others become Max and then Min. Dropout
// without training is the identity, with a mask that is true even where x is NaN. Inputs are
// requested one at a time, never two in one argument list, because the graph's variables are in the
// order of their creation.
#include <math.h>
#include <string.h>

#include "onnx/make.h"

// --- Two inputs ----------------------------------------------------------------------------------

// Up to opset 6 b has a's shape, or with `broadcast` a contiguous part of a's dimensions: those
// from `axis` on, or without it the last ones.
static bel_status *old_operand(bel_onnx_call *call, bel_value **out_b)
{
    bel_value *b = bel_onnx_in(call, 1);
    bel_shape a_shape = bel_onnx_in_shape(call, 0), b_shape = bel_value_shape(b);
    *out_b = b;
    if (b == NULL) return NULL;
    if (bel_onnx_int(call, "broadcast") == 0) {
        if (bel_shape_equal(&a_shape, &b_shape)) return NULL;
        char at[BEL_SHAPE_TEXT], bt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "shapes %s and %s differ, and broadcast is 0",
                       bel_shape_text(&a_shape, at), bel_shape_text(&b_shape, bt));
    }
    if (bel_onnx_find_attr(call, "axis") == NULL) return NULL;
    int32_t axis;
    BEL_TRY(bel_onnx_axis(bel_onnx_int(call, "axis"), a_shape.rank, &axis));
    int64_t ones[BEL_MAX_RANK];
    int count = 0;
    for (int32_t d = axis + b_shape.rank; d < a_shape.rank; d++)
        ones[count++] = d - axis;
    if (count > 0) *out_b = bel_unsqueeze(call->graph, b, ones, count);
    return NULL;
}

#define OLD_BINARY(name)                                                                           \
    bel_status *bel_onnx_old_##name(bel_onnx_call *call)                                           \
    {                                                                                              \
        bel_value *b;                                                                              \
        BEL_TRY(old_operand(call, &b));                                                            \
        bel_onnx_out(call, 0, bel_##name(call->graph, bel_onnx_in(call, 0), b));                   \
        return NULL;                                                                               \
    }
OLD_BINARY(add)
OLD_BINARY(sub)
OLD_BINARY(mul)
OLD_BINARY(div)
OLD_BINARY(pow)

// Floats of one type are computed directly; others in double and then cast to the base's type.
bel_status *bel_onnx_pow(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *a = bel_onnx_in(call, 0), *b = bel_onnx_in(call, 1);
    bel_dtype dtype = bel_value_dtype(a);
    if (dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64) {
        bel_onnx_out(call, 0, bel_pow(graph, a, bel_onnx_to(graph, b, dtype)));
        return NULL;
    }
    a = bel_onnx_to(graph, a, BEL_DTYPE_F64);
    b = bel_onnx_to(graph, b, BEL_DTYPE_F64);
    bel_onnx_out(call, 0, bel_onnx_to(graph, bel_pow(graph, a, b), dtype));
    return NULL;
}

// The remainder has the sign of a (fmod) or that of b, as in Python.
bel_status *bel_onnx_mod(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *inputs[2];
    bel_onnx_ins(call, 2, inputs);
    bel_value *b = inputs[1];
    bel_value *rest = bel_graph_add(graph, BEL_OP_REMAINDER, NULL, inputs, 2);
    if (bel_onnx_int(call, "fmod") == 0) {
        bel_value *zero = bel_onnx_scalar(graph, bel_value_dtype(b), 0);
        bel_value *rest_below = bel_less(graph, rest, zero), *b_below = bel_less(graph, b, zero);
        bel_value *opposite = bel_xor(graph, rest_below, b_below);
        bel_value *inexact = bel_not(graph, bel_equal(graph, rest, zero));
        bel_value *wrong = bel_and(graph, inexact, opposite), *other = bel_add(graph, rest, b);
        rest = bel_where(graph, wrong, other, rest);
    }
    bel_onnx_out(call, 0, rest);
    return NULL;
}

// For uint8 only: x · 2^n, or x / 2^n, in int64. 2^n comes from a table whose last entry serves n =
// 8 and above.
bel_status *bel_onnx_bit_shift(bel_onnx_call *call)
{
    static const char *const names[] = {"", "LEFT", "RIGHT"};
    int direction;
    BEL_TRY(bel_onnx_choice(call, "direction", names, 3, &direction));
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0), *n = bel_onnx_in(call, 1);
    if (direction == 0 || bel_value_dtype(x) != BEL_DTYPE_U8) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected uint8 and a direction, got %s",
                       bel_dtype_name(bel_value_dtype(x)));
    }
    int64_t powers[9];
    for (int i = 0; i < 9; i++)
        powers[i] = INT64_C(1) << i;
    bel_tensor table = {BEL_DTYPE_I64, BEL_SHAPE(9), powers};
    n = bel_onnx_to(graph, n, BEL_DTYPE_I64);
    n = bel_min(graph, n, bel_onnx_scalar(graph, BEL_DTYPE_I64, 8));
    bel_value *power = bel_gather(graph, bel_constant(graph, &table), n);
    x = bel_onnx_to(graph, x, BEL_DTYPE_I64);
    x = direction == 1 ? bel_mul(graph, x, power) : bel_div(graph, x, power);
    bel_onnx_out(call, 0, bel_onnx_to(graph, x, BEL_DTYPE_U8)); // the low bits
    return NULL;
}

// --- Any number of inputs ------------------------------------------------------------------------

static bel_value *fold_inputs(bel_onnx_call *call,
                              bel_value *combine(bel_graph *, bel_value *, bel_value *))
{
    bel_value *y = bel_onnx_in(call, 0);
    for (int i = 1; i < call->node->input_count; i++)
        y = combine(call->graph, y, bel_onnx_in(call, i));
    return call->node->input_count > 1 ? y : bel_identity(call->graph, y);
}

bel_status *bel_onnx_max(bel_onnx_call *call)
{
    bel_onnx_out(call, 0, fold_inputs(call, bel_max));
    return NULL;
}

bel_status *bel_onnx_min(bel_onnx_call *call)
{
    bel_onnx_out(call, 0, fold_inputs(call, bel_min));
    return NULL;
}

bel_status *bel_onnx_sum(bel_onnx_call *call)
{
    bel_onnx_out(call, 0, fold_inputs(call, bel_add));
    return NULL;
}

bel_status *bel_onnx_mean(bel_onnx_call *call)
{
    bel_value *sum = fold_inputs(call, bel_add);
    bel_value *count =
        bel_onnx_scalar(call->graph, bel_value_dtype(sum), (double)call->node->input_count);
    bel_onnx_out(call, 0, bel_div(call->graph, sum, count));
    return NULL;
}

// --- One input -----------------------------------------------------------------------------------

bel_status *bel_onnx_is_inf(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0);
    bool negative = bel_onnx_int(call, "detect_negative") != 0;
    bool positive = bel_onnx_int(call, "detect_positive") != 0;
    if (negative && positive) x = bel_abs(graph, x);
    // NaN equals nothing: neither sign is wanted.
    double wanted = positive ? INFINITY : negative ? -INFINITY : NAN;
    bel_value *infinite = bel_scalar(graph, bel_value_dtype(x), wanted);
    bel_onnx_out(call, 0, bel_equal(graph, x, infinite));
    return NULL;
}

// A weight of another type is a cast of its f32 variable; a cast back to f32 removes that cast.
static bel_value *cast(bel_graph *graph, bel_value *x, bel_dtype dtype)
{
    bool back = x != NULL && dtype == BEL_DTYPE_F32 && x->node->op == BEL_OP_CAST &&
                x->node->inputs[0]->node->op == BEL_OP_VARIABLE;
    return back ? bel_identity(graph, x->node->inputs[0]) : bel_cast(graph, x, dtype);
}

bel_status *bel_onnx_cast(bel_onnx_call *call)
{
    bel_dtype dtype;
    BEL_TRY_CTX(bel_onnx_dtype(bel_onnx_int(call, "to"), &dtype), "attribute \"to\"");
    bel_onnx_out(call, 0, cast(call->graph, bel_onnx_in(call, 0), dtype));
    return NULL;
}

bel_status *bel_onnx_cast_like(bel_onnx_call *call)
{
    bel_dtype dtype = bel_value_dtype(bel_onnx_in(call, 1));
    bel_onnx_out(call, 0, cast(call->graph, bel_onnx_in(call, 0), dtype));
    return NULL;
}

// --- Activations ---------------------------------------------------------------------------------

bel_status *bel_onnx_softsign(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0), *one = bel_scalar(graph, bel_value_dtype(x), 1);
    bel_onnx_out(call, 0, bel_div(graph, x, bel_add(graph, one, bel_abs(graph, x))));
    return NULL;
}

bel_status *bel_onnx_hard_swish(bel_onnx_call *call)
{
    bel_value *x = bel_onnx_in(call, 0);
    bel_value *gate = bel_hard_sigmoid(call->graph, x, 1.0 / 6, 0.5);
    bel_onnx_out(call, 0, bel_mul(call->graph, x, gate));
    return NULL;
}

bel_status *bel_onnx_mish(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0);
    bel_onnx_out(call, 0, bel_mul(graph, x, bel_tanh(graph, bel_softplus(graph, x))));
    return NULL;
}

// x times the sigmoid of alpha x.
bel_status *bel_onnx_swish(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0), *scaled = x;
    double alpha = bel_onnx_number(call, "alpha");
    if (alpha != 1) scaled = bel_mul(graph, x, bel_scalar(graph, bel_value_dtype(x), alpha));
    bel_onnx_out(call, 0,
                 alpha == 1 ? bel_silu(graph, x) : bel_mul(graph, x, bel_sigmoid(graph, scaled)));
    return NULL;
}

bel_status *bel_onnx_gelu(bel_onnx_call *call)
{
    static const char *const names[] = {"none", "tanh"};
    int approximate;
    BEL_TRY(bel_onnx_choice(call, "approximate", names, 2, &approximate));
    bel_value *x = bel_onnx_in(call, 0);
    bel_onnx_out(call, 0,
                 approximate != 0 ? bel_gelu_tanh(call->graph, x) : bel_gelu(call->graph, x));
    return NULL;
}

bel_status *bel_onnx_selu(bel_onnx_call *call)
{
    bel_value *elu = bel_elu(call->graph, bel_onnx_in(call, 0), bel_onnx_number(call, "alpha"));
    bel_value *gamma =
        bel_scalar(call->graph, bel_value_dtype(elu), bel_onnx_number(call, "gamma"));
    bel_onnx_out(call, 0, bel_mul(call->graph, elu, gamma));
    return NULL;
}

// alpha · Elu(x / alpha) is x above 0 and alpha (e^(x / alpha) - 1) below.
bel_status *bel_onnx_celu(bel_onnx_call *call)
{
    bel_value *x = bel_onnx_in(call, 0);
    bel_value *alpha = bel_scalar(call->graph, bel_value_dtype(x), bel_onnx_number(call, "alpha"));
    bel_value *elu = bel_elu(call->graph, bel_div(call->graph, x, alpha), 1);
    bel_onnx_out(call, 0, bel_mul(call->graph, alpha, elu));
    return NULL;
}

static bel_value *prelu(bel_graph *graph, bel_value *x, bel_value *slope)
{
    bel_value *zero = bel_onnx_scalar(graph, bel_value_dtype(x), 0);
    bel_value *below = bel_less(graph, x, zero), *scaled = bel_mul(graph, x, slope);
    return bel_where(graph, below, scaled, x);
}

bel_status *bel_onnx_prelu(bel_onnx_call *call)
{
    bel_value *inputs[2];
    bel_onnx_ins(call, 2, inputs);
    bel_onnx_out(call, 0, prelu(call->graph, inputs[0], inputs[1]));
    return NULL;
}

// Opset 6: one slope, or one for each channel of x [n, c, …].
bel_status *bel_onnx_old_prelu(bel_onnx_call *call)
{
    static const int64_t behind[] = {1, 2, 3, 4, 5, 6, 7};
    int32_t rank = bel_onnx_in_shape(call, 0).rank;
    bel_shape slopes = bel_onnx_in_shape(call, 1);
    bel_value *slope = bel_onnx_in(call, 1);
    bool by_channel = slopes.rank == 1 && slopes.dims[0] != 1 && rank > 2;
    if (by_channel) slope = bel_unsqueeze(call->graph, slope, behind, rank - 2);
    bel_onnx_out(call, 0, prelu(call->graph, bel_onnx_in(call, 0), slope));
    return NULL;
}

bel_status *bel_onnx_thresholded_relu(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0), *zero = bel_scalar(graph, bel_value_dtype(x), 0);
    bel_value *alpha = bel_scalar(graph, bel_value_dtype(x), bel_onnx_number(call, "alpha"));
    bel_onnx_out(call, 0, bel_where(graph, bel_greater(graph, x, alpha), x, zero));
    return NULL;
}

bel_status *bel_onnx_shrink(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0);
    bel_dtype dtype = bel_value_dtype(x);
    double edge = bel_onnx_number(call, "lambd");
    bel_value *bias = bel_scalar(graph, dtype, bel_onnx_number(call, "bias"));
    bel_value *below = bel_less(graph, x, bel_scalar(graph, dtype, -edge));
    bel_value *above = bel_greater(graph, x, bel_scalar(graph, dtype, edge));
    bel_value *lower = bel_sub(graph, x, bias), *zero = bel_scalar(graph, dtype, 0);
    bel_value *y = bel_where(graph, above, lower, zero);
    bel_onnx_out(call, 0, bel_where(graph, below, bel_add(graph, x, bias), y));
    return NULL;
}

// Known limits are attributes of Clip; others, and limits of integers, are Max and then Min.
bel_status *bel_onnx_clip(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0);
    bool low = bel_onnx_has(call, 1), high = bel_onnx_has(call, 2);
    bool known = (!low || bel_onnx_is_known(call, 1)) && (!high || bel_onnx_is_known(call, 2));
    bool is_float = bel_value_dtype(x) == BEL_DTYPE_F32 || bel_value_dtype(x) == BEL_DTYPE_F64;
    if (known && is_float) {
        double min = -INFINITY, max = INFINITY;
        if (low) BEL_TRY(bel_onnx_known_number(call, 1, &min));
        if (high) BEL_TRY(bel_onnx_known_number(call, 2, &max));
        x = bel_clip(graph, x, min, max);
    } else {
        if (low) x = bel_max(graph, x, bel_onnx_in(call, 1));
        if (high) x = bel_min(graph, x, bel_onnx_in(call, 2));
        if (!low && !high) x = bel_identity(graph, x);
    }
    bel_onnx_out(call, 0, x);
    return NULL;
}

// --- Dropout -------------------------------------------------------------------------------------

// Returns x unchanged, and a mask that is true everywhere.
static void rest(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0);
    bel_onnx_out(call, 0, bel_identity(graph, x));
    if (!bel_onnx_wants(call, 1)) return;
    bel_value *equal = bel_equal(graph, x, x);
    bel_onnx_out(call, 1, bel_or(graph, equal, bel_not(graph, equal)));
}

static void make_math_drop(bel_onnx_call *call, double ratio)
{
    bel_value *y = bel_dropout(call->graph, bel_onnx_in(call, 0), ratio);
    if (y == NULL) return;
    bel_onnx_out(call, 0, y);
    bel_onnx_out(call, 1, bel_graph_output(y, 1));
}

bel_status *bel_onnx_resting_dropout(bel_onnx_call *call)
{
    rest(call);
    return NULL;
}

bel_status *bel_onnx_old_dropout(bel_onnx_call *call)
{
    if (bel_onnx_int(call, "is_test") != 0) {
        rest(call);
    } else {
        make_math_drop(call, bel_onnx_number(call, "ratio"));
    }
    return NULL;
}

bel_status *bel_onnx_dropout(bel_onnx_call *call)
{
    double ratio = 0.5, training = 0;
    if (bel_onnx_has(call, 1)) BEL_TRY(bel_onnx_known_number(call, 1, &ratio));
    if (bel_onnx_has(call, 2)) BEL_TRY(bel_onnx_known_number(call, 2, &training));
    if (training != 0 && ratio != 0) {
        make_math_drop(call, ratio);
    } else {
        rest(call);
    }
    return NULL;
}
