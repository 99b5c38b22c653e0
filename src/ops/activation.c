// Functions of one input that need more than a value: with numbers of their own (LeakyRelu, Elu,
// HardSigmoid, Clip) or with a gradient from x. The functions stand in kernels/elementwise.def.
#include <math.h>

#include "belfry/ops.h"
#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/vector.h"

// --- Gradients -----------------------------------------------------------------------------------

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

// y = a - b · (a / b towards 0), which is a whole number: da = dy, db = -(a - y) / b · dy.
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

// --- Curves --------------------------------------------------------------------------------------

#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain)                                \
    static double id##_plain(double p, double q, double s, double t)                               \
    {                                                                                              \
        (void)q, (void)t;                                                                          \
        return plain;                                                                              \
    }
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain)                           \
    CURVE(id, s_name, s_default, t_name, t_default, f32, plain)
#include "ops/kernels/elementwise.def"

static double (*const curve_plain[BEL_OP_COUNT])(double p, double q, double s, double t) = {
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain) [BEL_OP_##id] = id##_plain,
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain) [BEL_OP_##id] = id##_plain,
#include "ops/kernels/elementwise.def"
};

typedef struct curve_params {
    bel_vector_kernel kernel; // when fast
    double s, t;
} curve_params;

static void run_curve_reference(const bel_kernel_call *call, int64_t tile)
{
    const curve_params *params = call->params;
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        double p = bel_element_get(&call->inputs[0], i);
        double q = call->input_count > 1 ? bel_element_get(&call->inputs[1], i) : 0;
        double y = curve_plain[call->op](p, q, params->s, params->t);
        bel_element_set(&call->outputs[0], i, y);
    }
}

static void run_curve(const bel_kernel_call *call, int64_t tile)
{
    const curve_params *params = call->params;
    int64_t begin = bel_tile_begin(tile);
    int64_t n = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape)) - begin;
    const float *first = (const float *)call->inputs[0].data + begin;
    float *y = (float *)call->outputs[0].data + begin, s = (float)params->s, t = (float)params->t;
    if (params->kernel.curve != NULL) {
        params->kernel.curve(first, s, t, y, n);
    } else {
        params->kernel.curve_grad(first, (const float *)call->inputs[1].data + begin, s, t, y, n);
    }
}

void bel_prepare_curve(const bel_prepare *prepare, bel_kernel_call *call)
{
    curve_params params = {.s = 0};
    bel_curve_numbers(call->op, prepare->attrs, &params.s, &params.t);
    bool fast = !prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32 &&
                bel_vector_kernel_of(call->op, &params.kernel);
    call->run = fast ? run_curve : run_curve_reference;
    call->tile_count = bel_tiles_of(bel_shape_elements(&call->outputs[0].shape));
    call->params = bel_arena_copy(prepare->arena, &params, sizeof params);
}
