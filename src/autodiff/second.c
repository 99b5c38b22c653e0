// Gradient rules of gradients, for gradients of gradients: of element-wise functions, products and
// convolutions, reductions, and operations that move elements. Inputs are named as in ops.def; u is
// the gradient of the operation's result.
//
// A gradient operation is linear in dy. The gradient of dy is therefore the same operation on u, if
// the slope is element-wise or symmetric (softmax). If elements are moved or multiplied by
// matrices, it is the original operation. The remaining part is the slope of the slope, which is 0
// for piecewise linear functions.
//
// At most one argument of a call makes a node: C leaves the order of arguments to the compiler, and
// nodes are numbered in the order of their creation.
#include <string.h>

#include "autodiff/rules.h"
#include "belfry/ops.h"

static bel_value *second_constant(bel_gradient *g, double value)
{
    return bel_scalar(g->graph, bel_value_dtype(g->output_grads[0]), value);
}

// Adds operation `op` with the attributes of the differentiated one.
static bel_value *second_apply(bel_gradient *g, bel_op op, bel_value *a, bel_value *b)
{
    bel_value *inputs[] = {a, b};
    return bel_graph_add(g->graph, op, g->attrs, inputs, b == NULL ? 1 : 2);
}

void bel_grad_none(bel_gradient *g)
{
    (void)g; // inputs used only for their shape, and piecewise constant functions
}

// --- Slopes of functions of one element: inputs dy and y or x ------------------------------------

#define SLOPE(name, op)                                                                            \
    void bel_grad_##name(bel_gradient *g)                                                          \
    {                                                                                              \
        if (g->needed[0])                                                                          \
            g->input_grads[0] = second_apply(g, op, g->output_grads[0], g->inputs[1]);             \
    }

SLOPE(relu_grad, BEL_OP_RELU_GRAD)
SLOPE(leaky_relu_grad, BEL_OP_LEAKY_RELU_GRAD)
SLOPE(hard_sigmoid_grad, BEL_OP_HARD_SIGMOID_GRAD)
SLOPE(clip_grad, BEL_OP_CLIP_GRAD)
SLOPE(dropout_grad, BEL_OP_DROPOUT_GRAD)

// Functions with curvature: `bend` is the derivative of the slope by input 1, without dy.
static void second_of(bel_gradient *g, bel_op op, bel_value *(*bend)(bel_gradient *g, bel_value *x))
{
    bel_value *u = g->output_grads[0];
    if (g->needed[0]) g->input_grads[0] = second_apply(g, op, u, g->inputs[1]);
    if (!g->needed[1]) return;
    bel_value *both = bel_mul(g->graph, u, g->inputs[0]);
    g->input_grads[1] = bel_mul(g->graph, both, bend(g, g->inputs[1]));
}

// y (1 - y): 1 - 2 y.
static bel_value *bend_sigmoid(bel_gradient *g, bel_value *y)
{
    bel_value *one = second_constant(g, 1), *twice = bel_add(g->graph, y, y);
    return bel_sub(g->graph, one, twice);
}

void bel_grad_sigmoid_grad(bel_gradient *g)
{
    second_of(g, BEL_OP_SIGMOID_GRAD, bend_sigmoid);
}

// 1 - y²: -2 y.
static bel_value *bend_tanh(bel_gradient *g, bel_value *y)
{
    return bel_mul(g->graph, y, second_constant(g, -2));
}

void bel_grad_tanh_grad(bel_gradient *g)
{
    second_of(g, BEL_OP_TANH_GRAD, bend_tanh);
}

// 1, and alpha e^x where x <= 0: 0, and alpha e^x.
static bel_value *bend_elu(bel_gradient *g, bel_value *x)
{
    bel_value *zero = second_constant(g, 0),
              *alpha = second_constant(g, bel_attr_number(g->attrs, "alpha", 1));
    bel_value *below = bel_mul(g->graph, alpha, bel_exp(g->graph, bel_min(g->graph, x, zero)));
    return bel_where(g->graph, bel_greater(g->graph, x, zero), zero, below);
}

void bel_grad_elu_grad(bel_gradient *g)
{
    second_of(g, BEL_OP_ELU_GRAD, bend_elu);
}

// Phi(x) + x phi(x), with the normal distribution's phi(x) = e^(-x²/2) / sqrt(2 pi): (2 - x²) phi.
static bel_value *bend_gelu(bel_gradient *g, bel_value *x)
{
    bel_graph *graph = g->graph;
    bel_value *square = bel_mul(graph, x, x);
    bel_value *density = bel_exp(graph, bel_mul(graph, square, second_constant(g, -0.5)));
    density = bel_mul(graph, density, second_constant(g, 0.39894228040143267794)); // 1 / sqrt(2 pi)
    return bel_mul(graph, bel_sub(graph, second_constant(g, 2), square), density);
}

void bel_grad_gelu_grad(bel_gradient *g)
{
    second_of(g, BEL_OP_GELU_GRAD, bend_gelu);
}

// With t = tanh(v), v = k (x + c x³): slope (1 + t) / 2 + x (1 - t²) v' / 2, and its derivative (1
// - t²) (v' + x (v'' / 2 - t v'²)), where v' = k (1 + 3 c x²) and v'' = 6 k c x.
static bel_value *bend_gelu_tanh(bel_gradient *g, bel_value *x)
{
    const double k = 0.79788456080286535588, c = 0.044715; // sqrt(2 / pi)
    bel_graph *graph = g->graph;
    bel_value *square = bel_mul(graph, x, x), *one = second_constant(g, 1);
    bel_value *inner = bel_add(graph, one, bel_mul(graph, square, second_constant(g, c)));
    bel_value *t = bel_tanh(graph, bel_mul(graph, bel_mul(graph, x, second_constant(g, k)), inner));
    bel_value *first = bel_add(graph, one, bel_mul(graph, square, second_constant(g, 3 * c)));
    first = bel_mul(graph, first, second_constant(g, k));
    bel_value *half_second = bel_mul(graph, x, second_constant(g, 3 * k * c));
    bel_value *bent_more = bel_mul(graph, t, bel_mul(graph, first, first));
    bel_value *rest = bel_mul(graph, x, bel_sub(graph, half_second, bent_more));
    bel_value *flat = bel_sub(graph, one, bel_mul(graph, t, t));
    return bel_mul(graph, flat, bel_add(graph, first, rest));
}

void bel_grad_gelu_tanh_grad(bel_gradient *g)
{
    second_of(g, BEL_OP_GELU_TANH_GRAD, bend_gelu_tanh);
}

// With s = sigmoid(x): slope s (1 + x (1 - s)), and its derivative s (1 - s) (2 + x (1 - 2 s)).
static bel_value *bend_silu(bel_gradient *g, bel_value *x)
{
    bel_graph *graph = g->graph;
    bel_value *s = bel_sigmoid(graph, x), *one = second_constant(g, 1);
    bel_value *slope = bel_mul(graph, s, bel_sub(graph, one, s));
    bel_value *lean = bel_sub(graph, one, bel_add(graph, s, s));
    bel_value *two = second_constant(g, 2), *leaning = bel_mul(graph, x, lean);
    return bel_mul(graph, slope, bel_add(graph, two, leaning));
}

void bel_grad_silu_grad(bel_gradient *g)
{
    second_of(g, BEL_OP_SILU_GRAD, bend_silu);
}

// --- Softmax and cross-entropy -------------------------------------------------------------------

static bel_value *sum_of_rows(bel_gradient *g, bel_value *x, bool keepdims)
{
    const int64_t last = -1;
    return bel_reduce_sum(g->graph, x, &last, 1, keepdims);
}

// y_j (dy_j - s) with s = sum(dy y). The matrix of dy is symmetric. By y_j: u_j (dy_j - s) - dy_j
// sum(u y).
void bel_grad_softmax_grad(bel_gradient *g)
{
    bel_graph *graph = g->graph;
    bel_value *u = g->output_grads[0], *dy = g->inputs[0], *y = g->inputs[1];
    if (g->needed[0]) g->input_grads[0] = second_apply(g, BEL_OP_SOFTMAX_GRAD, u, y);
    if (!g->needed[1]) return;
    bel_value *s = sum_of_rows(g, bel_mul(graph, dy, y), true);
    bel_value *t = sum_of_rows(g, bel_mul(graph, u, y), true);
    bel_value *own = bel_mul(graph, u, bel_sub(graph, dy, s));
    g->input_grads[1] = bel_sub(graph, own, bel_mul(graph, dy, t));
}

// dy_j - e^y_j sum(dy): by dy_j u_j - sum(u e^y), by y_j -u_j e^y_j sum(dy).
void bel_grad_log_softmax_grad(bel_gradient *g)
{
    bel_graph *graph = g->graph;
    bel_value *u = g->output_grads[0];
    bel_value *weighted = bel_mul(graph, u, bel_exp(graph, g->inputs[1]));
    if (g->needed[0]) g->input_grads[0] = bel_sub(graph, u, sum_of_rows(g, weighted, true));
    if (!g->needed[1]) return;
    bel_value *all = sum_of_rows(g, g->inputs[0], true);
    g->input_grads[1] = bel_neg(graph, bel_mul(graph, weighted, all));
}

// (e^lp - onehot) dy, with a dy for each row: by dy sum(u (e^lp - onehot)), by lp u e^lp dy.
void bel_grad_cross_entropy_grad(bel_gradient *g)
{
    bel_graph *graph = g->graph;
    bel_value *u = g->output_grads[0], *dy = g->inputs[0], *logs = g->inputs[1];
    if (g->needed[0]) {
        bel_value *like[] = {second_constant(g, 1), dy};
        bel_value *ones = bel_graph_add(graph, BEL_OP_BROADCAST_TO, NULL, like, 2);
        bel_value *inputs[] = {ones, logs, g->inputs[2]};
        bel_value *slope = bel_graph_add(graph, BEL_OP_CROSS_ENTROPY_GRAD, NULL, inputs, 3);
        g->input_grads[0] = sum_of_rows(g, bel_mul(graph, u, slope), false);
    }
    if (!g->needed[1]) return;
    const int64_t last = -1;
    bel_value *column = bel_unsqueeze(graph, dy, &last, 1);
    bel_value *weighted = bel_mul(graph, u, bel_exp(graph, logs));
    g->input_grads[1] = bel_mul(graph, weighted, column);
}

// --- Products and convolutions -------------------------------------------------------------------

// alpha sum over rows of a_r b_r': by a alpha b u', by b alpha a u.
void bel_grad_matmul_flat(bel_gradient *g)
{
    bel_value *u = g->output_grads[0];
    for (int i = 0; i < 2; i++) {
        if (!g->needed[i]) continue;
        bel_attr_list attrs = {
            .count = 2,
            .items = {{.name = "transB", .number = i == 0},
                      {.name = "alpha", .number = bel_attr_number(g->attrs, "alpha", 1)}}};
        bel_value *inputs[] = {g->inputs[1 - i], u};
        g->input_grads[i] = bel_graph_add(g->graph, BEL_OP_MATMUL, &attrs, inputs, 2);
    }
}

static bel_value *second_convolve(bel_gradient *g, bel_op op, bel_value *a, bel_value *b,
                                  bel_value *like)
{
    bel_value *inputs[] = {a, b, like};
    return bel_graph_add(g->graph, op, g->attrs, inputs, like == NULL ? 2 : 3);
}

// Inputs dy, w, x; x only for its shape.
void bel_grad_conv_grad_input(bel_gradient *g)
{
    bel_value *u = g->output_grads[0], *dy = g->inputs[0], *w = g->inputs[1];
    if (g->needed[0]) g->input_grads[0] = second_convolve(g, BEL_OP_CONV, u, w, NULL);
    if (g->needed[1]) g->input_grads[1] = second_convolve(g, BEL_OP_CONV_GRAD_WEIGHTS, dy, u, w);
}

// Inputs dy, x, w; w only for its shape.
void bel_grad_conv_grad_weights(bel_gradient *g)
{
    bel_value *u = g->output_grads[0], *dy = g->inputs[0], *x = g->inputs[1];
    if (g->needed[0]) g->input_grads[0] = second_convolve(g, BEL_OP_CONV, x, u, NULL);
    if (g->needed[1]) g->input_grads[1] = second_convolve(g, BEL_OP_CONV_GRAD_INPUT, dy, u, x);
}

// [n, c, …] -> [c].
void bel_grad_channel_sum(bel_gradient *g)
{
    bel_shape shape = bel_value_shape(g->inputs[0]);
    int64_t behind[BEL_MAX_RANK];
    int count = 0;
    for (int32_t d = 2; d < shape.rank; d++)
        behind[count++] = d - 1;
    bel_value *u = g->output_grads[0];
    if (count > 0) u = bel_unsqueeze(g->graph, u, behind, count);
    bel_value *inputs[] = {u, g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_BROADCAST_TO, NULL, inputs, 2);
}

void bel_grad_average_pool_grad(bel_gradient *g)
{
    if (g->needed[0])
        g->input_grads[0] = second_apply(g, BEL_OP_AVERAGE_POOL, g->output_grads[0], NULL);
}

// --- Broadcasts, sums and moves of elements: the inverse -----------------------------------------

void bel_grad_sum_to(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    if (!g->needed[0]) return;
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_BROADCAST_TO, NULL, inputs, 2);
}

// With axes the value lacks these dimensions, else it is aligned at the last one.
void bel_grad_broadcast_to(bel_gradient *g)
{
    const bel_shape *axes = bel_attr_ints(g->attrs, "axes");
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    if (!g->needed[0]) return;
    g->input_grads[0] = axes != NULL
                            ? bel_reduce_sum(g->graph, inputs[0], axes->dims, axes->rank, false)
                            : bel_graph_add(g->graph, BEL_OP_SUM_TO, NULL, inputs, 2);
}

void bel_grad_reshape_like(bel_gradient *g)
{
    if (g->needed[0]) bel_grad_reshape(g);
}

void bel_grad_slice_grad(bel_gradient *g)
{
    if (g->needed[0]) g->input_grads[0] = second_apply(g, BEL_OP_SLICE, g->output_grads[0], NULL);
}

// Pads with zeros, or with the mode of the original.
void bel_grad_pad_grad(bel_gradient *g)
{
    bel_attr_list attrs = *g->attrs;
    for (int i = 0; i < attrs.count; i++)
        if (strcmp(attrs.items[i].name, "value") == 0) attrs.items[i].number = 0;
    if (!g->needed[0]) return;
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_PAD, &attrs, &g->output_grads[0], 1);
}

void bel_grad_gather_grad(bel_gradient *g)
{
    if (g->needed[0])
        g->input_grads[0] = second_apply(g, BEL_OP_GATHER, g->output_grads[0], g->inputs[1]);
}

void bel_grad_gather_elements_grad(bel_gradient *g)
{
    if (g->needed[0])
        g->input_grads[0] =
            second_apply(g, BEL_OP_GATHER_ELEMENTS, g->output_grads[0], g->inputs[1]);
}
