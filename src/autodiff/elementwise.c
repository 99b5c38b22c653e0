// Gradient rules of functions of one element or of two: arithmetic, activations, casts, dropout.
// Most slopes are one operation of output gradient and output (or input), so that a backward pass
// reads only one of the two. Broadcast operands get the sum over their repetitions. Rules never
// look at elements: they only add operations (rules.h).
#include "autodiff/rules.h"
#include "belfry/ops.h"

void bel_grad_add(bel_gradient *g)
{
    for (int i = 0; i < 2; i++)
        if (g->needed[i]) bel_set_broadcast_grad(g, i, g->output_grads[0]);
}

void bel_grad_sub(bel_gradient *g)
{
    if (g->needed[0]) bel_set_broadcast_grad(g, 0, g->output_grads[0]);
    if (g->needed[1]) bel_set_broadcast_grad(g, 1, bel_neg(g->graph, g->output_grads[0]));
}

void bel_grad_mul(bel_gradient *g)
{
    for (int i = 0; i < 2; i++) {
        if (!g->needed[i]) continue;
        bel_set_broadcast_grad(g, i, bel_mul(g->graph, g->output_grads[0], g->inputs[1 - i]));
    }
}

void bel_grad_div(bel_gradient *g)
{
    bel_value *quotient = bel_div(g->graph, g->output_grads[0], g->inputs[1]);
    if (g->needed[0]) bel_set_broadcast_grad(g, 0, quotient);
    if (!g->needed[1]) return;
    bel_value *scaled = bel_mul(g->graph, quotient, g->outputs[0]); // d(a/b)/db = -(a/b)/b
    bel_set_broadcast_grad(g, 1, bel_neg(g->graph, scaled));
}

// The gradient goes to `a` if the output equals it, else to `b`.
static void choice_grad(bel_gradient *g)
{
    bel_dtype dtype = bel_value_dtype(g->outputs[0]);
    bel_value *chose_a = bel_equal(g->graph, g->outputs[0], g->inputs[0]);
    bel_value *share = bel_cast(g->graph, chose_a, dtype);
    if (g->needed[0]) bel_set_broadcast_grad(g, 0, bel_mul(g->graph, g->output_grads[0], share));
    if (!g->needed[1]) return;
    bel_value *rest = bel_sub(g->graph, bel_scalar(g->graph, dtype, 1.0), share);
    bel_set_broadcast_grad(g, 1, bel_mul(g->graph, g->output_grads[0], rest));
}

void bel_grad_max(bel_gradient *g)
{
    choice_grad(g);
}

void bel_grad_min(bel_gradient *g)
{
    choice_grad(g);
}

void bel_grad_neg(bel_gradient *g)
{
    g->input_grads[0] = bel_neg(g->graph, g->output_grads[0]);
}

void bel_grad_exp(bel_gradient *g)
{
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], g->outputs[0]);
}

void bel_grad_log(bel_gradient *g)
{
    g->input_grads[0] = bel_div(g->graph, g->output_grads[0], g->inputs[0]);
}

void bel_grad_sqrt(bel_gradient *g)
{
    bel_value *twice = bel_add(g->graph, g->outputs[0], g->outputs[0]);
    g->input_grads[0] = bel_div(g->graph, g->output_grads[0], twice);
}

void bel_grad_abs(bel_gradient *g)
{
    bel_value *sign = bel_graph_add(g->graph, BEL_OP_SIGN, NULL, &g->inputs[0], 1);
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], sign);
}

void bel_grad_relu(bel_gradient *g)
{
    bel_gradient_from_output(g, BEL_OP_RELU_GRAD);
}

void bel_grad_sigmoid(bel_gradient *g)
{
    bel_gradient_from_output(g, BEL_OP_SIGMOID_GRAD);
}

void bel_grad_tanh(bel_gradient *g)
{
    bel_gradient_from_output(g, BEL_OP_TANH_GRAD);
}

// With the attribute `stop` no gradient passes: bel_stop_gradient.
void bel_grad_identity(bel_gradient *g)
{
    if (!bel_attr_flag(g->attrs, "stop")) g->input_grads[0] = g->output_grads[0];
}

// d/dx = sigmoid(x) - z, d/dz = -x.
void bel_grad_sigmoid_cross_entropy(bel_gradient *g)
{
    bel_value *dy = g->output_grads[0];
    if (g->needed[0]) {
        bel_value *error = bel_sub(g->graph, bel_sigmoid(g->graph, g->inputs[0]), g->inputs[1]);
        g->input_grads[0] = bel_mul(g->graph, dy, error);
    }
    if (g->needed[1]) {
        g->input_grads[1] = bel_neg(g->graph, bel_mul(g->graph, dy, g->inputs[0]));
    }
}

// Operation `op` of (output gradient, input).
static void gradient_from_input(bel_gradient *g, bel_op op)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, op, g->attrs, inputs, 2);
}

#define FROM_INPUT(name, op)                                                                       \
    void bel_grad_##name(bel_gradient *g)                                                          \
    {                                                                                              \
        gradient_from_input(g, op);                                                                \
    }

FROM_INPUT(gelu, BEL_OP_GELU_GRAD)
FROM_INPUT(gelu_tanh, BEL_OP_GELU_TANH_GRAD)
FROM_INPUT(silu, BEL_OP_SILU_GRAD)
FROM_INPUT(leaky_relu, BEL_OP_LEAKY_RELU_GRAD)
FROM_INPUT(elu, BEL_OP_ELU_GRAD)
FROM_INPUT(hard_sigmoid, BEL_OP_HARD_SIGMOID_GRAD)
FROM_INPUT(clip, BEL_OP_CLIP_GRAD)

void bel_grad_softplus(bel_gradient *g)
{
    bel_value *slope = bel_sigmoid(g->graph, g->inputs[0]);
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], slope);
}

void bel_grad_reciprocal(bel_gradient *g)
{
    bel_value *square = bel_mul(g->graph, g->outputs[0], g->outputs[0]);
    g->input_grads[0] = bel_neg(g->graph, bel_mul(g->graph, g->output_grads[0], square));
}

void bel_grad_erf(bel_gradient *g)
{
    bel_value *square = bel_mul(g->graph, g->inputs[0], g->inputs[0]);
    bel_value *factor = bel_scalar(g->graph, bel_value_dtype(g->inputs[0]),
                                   1.12837916709551257390); // 2 / sqrt(pi);
    bel_value *slope = bel_mul(g->graph, bel_exp(g->graph, bel_neg(g->graph, square)), factor);
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], slope);
}

// y = a^b: da = b a^(b - 1) dy, and 0 where b = 0; db = log(a) y dy, and 0 where a <= 0.
void bel_grad_pow(bel_gradient *g)
{
    bel_graph *graph = g->graph;
    bel_value *a = g->inputs[0], *b = g->inputs[1], *dy = g->output_grads[0];
    bel_value *zero = bel_scalar(graph, bel_value_dtype(a), 0);
    if (g->needed[0]) {
        bel_value *less = bel_sub(graph, b, bel_scalar(graph, bel_value_dtype(a), 1));
        bel_value *slope = bel_mul(graph, b, bel_pow(graph, a, less));
        slope = bel_where(graph, bel_equal(graph, b, zero), zero, slope);
        bel_set_broadcast_grad(g, 0, bel_mul(graph, dy, slope));
    }
    if (g->needed[1]) {
        bel_value *positive = bel_greater(graph, a, zero), *log = bel_log(graph, a);
        log = bel_where(graph, positive, log, zero);
        bel_set_broadcast_grad(g, 1, bel_mul(graph, dy, bel_mul(graph, log, g->outputs[0])));
    }
}

// y = a - b · (a / b towards 0), where the quotient is an integer: da = dy, db = -(a - y) / b · dy.
void bel_grad_remainder(bel_gradient *g)
{
    bel_graph *graph = g->graph;
    bel_value *dy = g->output_grads[0];
    if (g->needed[0]) bel_set_broadcast_grad(g, 0, dy);
    if (!g->needed[1]) return;
    bel_value *whole = bel_div(graph, bel_sub(graph, g->inputs[0], g->outputs[0]), g->inputs[1]);
    bel_value *slope = bel_neg(graph, bel_round(graph, whole));
    bel_set_broadcast_grad(g, 1, bel_mul(graph, dy, slope));
}

void bel_grad_cast(bel_gradient *g)
{
    bel_dtype from = bel_value_dtype(g->inputs[0]);
    bool has_gradient = from == BEL_DTYPE_F32 || from == BEL_DTYPE_F64 || from == BEL_DTYPE_F16 ||
                        from == BEL_DTYPE_BF16;
    if (has_gradient) g->input_grads[0] = bel_cast(g->graph, g->output_grads[0], from);
}

void bel_grad_dropout(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->outputs[1]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_DROPOUT_GRAD, g->attrs, inputs, 2);
}
