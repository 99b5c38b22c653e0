// Gradient rules of reductions: the gradient of each result is broadcast to its elements, times the
// slope of the reduction there. Shapes may be open while a rule runs, so a count of elements is an
// operation (CountRatio), and broadcasting uses the input only for its shape. Elements that share a
// maximum or minimum share its gradient equally; if a norm is 0 its gradient is 0.
#include "autodiff/rules.h"
#include "belfry/ops.h"

// Repeats a reduced value over the axes it lost, to the shape of the reduction's input.
static bel_value *reduce_spread(bel_gradient *g, bel_value *value)
{
    bel_attr_list attrs = {.count = 0};
    const bel_shape *axes = bel_attr_ints(g->attrs, "axes");
    if (axes != NULL && bel_attr_number(g->attrs, "keepdims", 0) == 0) {
        attrs.items[attrs.count++] = (bel_attr){.name = "axes", .ints = *axes};
    }
    bel_value *inputs[] = {value, g->inputs[0]};
    return bel_graph_add(g->graph, BEL_OP_BROADCAST_TO, &attrs, inputs, 2);
}

void bel_grad_reduce_sum(bel_gradient *g)
{
    g->input_grads[0] = reduce_spread(g, g->output_grads[0]);
}

// CountRatio is elements of the result / elements of x, which is 1 / count.
void bel_grad_reduce_mean(bel_gradient *g)
{
    bel_value *inputs[] = {g->inputs[0], g->output_grads[0]};
    bel_value *ratio = bel_graph_add(g->graph, BEL_OP_COUNT_RATIO, NULL, inputs, 2);
    g->input_grads[0] = reduce_spread(g, bel_mul(g->graph, g->output_grads[0], ratio));
}

// Also for ReduceMin: only equality with the result matters.
void bel_grad_reduce_max(bel_gradient *g)
{
    bel_value *equal = bel_equal(g->graph, g->inputs[0], reduce_spread(g, g->outputs[0]));
    bel_value *share = bel_cast(g->graph, equal, bel_value_dtype(g->inputs[0]));
    bel_value *count = bel_graph_add(g->graph, BEL_OP_REDUCE_SUM, g->attrs, &share, 1);
    bel_value *part = bel_div(g->graph, g->output_grads[0], count);
    g->input_grads[0] = bel_mul(g->graph, share, reduce_spread(g, part));
}

void bel_grad_reduce_sum_square(bel_gradient *g)
{
    bel_value *twice = bel_add(g->graph, g->inputs[0], g->inputs[0]);
    g->input_grads[0] = bel_mul(g->graph, twice, reduce_spread(g, g->output_grads[0]));
}

void bel_grad_reduce_prod(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_REDUCE_PROD_GRAD, g->attrs, inputs, 2);
}

void bel_grad_reduce_l1(bel_gradient *g)
{
    bel_value *sign = bel_sign(g->graph, g->inputs[0]);
    g->input_grads[0] = bel_mul(g->graph, sign, reduce_spread(g, g->output_grads[0]));
}

// x / |x|, and 0 if the norm is 0.
void bel_grad_reduce_l2(bel_gradient *g)
{
    bel_value *zero = bel_scalar(g->graph, bel_value_dtype(g->inputs[0]), 0);
    bel_value *none = bel_equal(g->graph, g->outputs[0], zero);
    bel_value *part = bel_div(g->graph, g->output_grads[0], g->outputs[0]);
    part = bel_where(g->graph, none, zero, part);
    g->input_grads[0] = bel_mul(g->graph, g->inputs[0], reduce_spread(g, part));
}
