// Gradient rules of the trigonometric and hyperbolic functions; ops/math.c has their kernels, which
// compute in double. Slopes use public operations; if the result gives the slope (Tan) it is read
// instead of x. Those of Asin, Acos, Acosh and Atanh divide by 1 - x² or x² - 1, or its root, in
// the type of x: close to ±1 they have few digits, and at ±1 they are infinite.
#include "autodiff/rules.h"
#include "belfry/ops.h"

void bel_grad_sin(bel_gradient *g)
{
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], bel_cos(g->graph, g->inputs[0]));
}

void bel_grad_cos(bel_gradient *g)
{
    bel_value *slope = bel_neg(g->graph, bel_sin(g->graph, g->inputs[0]));
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], slope);
}

void bel_grad_sinh(bel_gradient *g)
{
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], bel_cosh(g->graph, g->inputs[0]));
}

void bel_grad_cosh(bel_gradient *g)
{
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], bel_sinh(g->graph, g->inputs[0]));
}

// scale · v² + offset.
static bel_value *quadratic(bel_graph *graph, bel_value *v, double scale, double offset)
{
    bel_dtype dtype = bel_value_dtype(v);
    bel_value *square = bel_mul(graph, v, v);
    square = bel_mul(graph, square, bel_scalar(graph, dtype, scale));
    return bel_add(graph, square, bel_scalar(graph, dtype, offset));
}

// dy (1 + y²)
void bel_grad_tan(bel_gradient *g)
{
    bel_value *slope = quadratic(g->graph, g->outputs[0], 1, 1);
    g->input_grads[0] = bel_mul(g->graph, g->output_grads[0], slope);
}

// dy over scale · x² + offset, or over its root.
static bel_value *over_quadratic(bel_gradient *g, double scale, double offset, bool root)
{
    bel_value *under = quadratic(g->graph, g->inputs[0], scale, offset);
    if (root) under = bel_sqrt(g->graph, under);
    return bel_div(g->graph, g->output_grads[0], under);
}

void bel_grad_asin(bel_gradient *g)
{
    g->input_grads[0] = over_quadratic(g, -1, 1, true);
}

void bel_grad_acos(bel_gradient *g)
{
    g->input_grads[0] = bel_neg(g->graph, over_quadratic(g, -1, 1, true));
}

void bel_grad_atan(bel_gradient *g)
{
    g->input_grads[0] = over_quadratic(g, 1, 1, false);
}

void bel_grad_asinh(bel_gradient *g)
{
    g->input_grads[0] = over_quadratic(g, 1, 1, true);
}

void bel_grad_acosh(bel_gradient *g)
{
    g->input_grads[0] = over_quadratic(g, 1, -1, true);
}

void bel_grad_atanh(bel_gradient *g)
{
    g->input_grads[0] = over_quadratic(g, -1, 1, false);
}
