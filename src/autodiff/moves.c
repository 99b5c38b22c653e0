// Gradient rules of operations that move elements without computing: reshapes, transposes, slices,
// joins, gathers, sorting. An element moved to one place is moved back; copies of an element are
// summed.
#include "autodiff/rules.h"
#include "belfry/ops.h"
#include "ops/families.h"

void bel_grad_reshape(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_RESHAPE_LIKE, NULL, inputs, 2);
}

void bel_grad_transpose(bel_gradient *g)
{
    const bel_shape *perm = bel_attr_ints(g->attrs, "perm");
    int64_t inverse[BEL_MAX_RANK];
    for (int32_t i = 0; i < perm->rank; i++)
        inverse[perm->dims[i]] = i;
    g->input_grads[0] = bel_transpose(g->graph, g->output_grads[0], inverse);
}

void bel_grad_slice(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_SLICE_GRAD, g->attrs, inputs, 2);
}

void bel_grad_pad(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_PAD_GRAD, g->attrs, inputs, 2);
}

void bel_grad_expand(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_SUM_TO, NULL, inputs, 2);
}

// Each part gets its slice of the gradient.
void bel_grad_concat(bel_gradient *g)
{
    bel_shape y = bel_value_shape(g->outputs[0]);
    int32_t axis = 0;
    bel_status_ignore(bel_read_axis(g->attrs, 0, y.rank, &axis)); // checked by the shape rule
    int64_t start = 0, at = axis;
    if (y.dims[axis] < 0 && g->input_count > 1) {
        bel_graph_fail(g->graph, BEL_UNIMPLEMENTED,
                       "Concat along an open dimension has no gradient");
        return;
    }
    for (int i = 0; i < g->input_count; i++) {
        int64_t size = bel_value_shape(g->inputs[i]).dims[axis], end = start + size;
        if (g->needed[i] && g->input_count == 1) g->input_grads[0] = g->output_grads[0];
        if (g->needed[i] && g->input_count > 1) {
            g->input_grads[i] = bel_slice(g->graph, g->output_grads[0], &at, &start, &end, NULL, 1);
        }
        start = end;
    }
}

void bel_grad_where(bel_gradient *g)
{
    bel_value *zero = bel_scalar(g->graph, bel_value_dtype(g->outputs[0]), 0);
    bel_value *dy = g->output_grads[0], *condition = g->inputs[0];
    if (g->needed[1]) bel_set_broadcast_grad(g, 1, bel_where(g->graph, condition, dy, zero));
    if (g->needed[2]) bel_set_broadcast_grad(g, 2, bel_where(g->graph, condition, zero, dy));
}

void bel_grad_gather(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[1], g->inputs[0]};
    if (!g->needed[0]) return;
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_GATHER_GRAD, g->attrs, inputs, 3);
}

void bel_grad_gather_elements(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[1], g->inputs[0]};
    if (!g->needed[0]) return;
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_GATHER_ELEMENTS_GRAD, g->attrs, inputs, 3);
}

// Adds at the places of the selected elements.
void bel_grad_top_k(bel_gradient *g)
{
    if (g->output_grads[0] == NULL) return;
    bel_attr_list attrs = {.count = 1};
    attrs.items[0] = (bel_attr){.name = "axis", .number = bel_attr_number(g->attrs, "axis", -1)};
    bel_value *inputs[] = {g->output_grads[0], g->outputs[1], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_GATHER_ELEMENTS_GRAD, &attrs, inputs, 3);
}

// An element is part of all sums from its place on: its gradient is their reverse cumulative sum.
void bel_grad_cum_sum(bel_gradient *g)
{
    g->input_grads[0] =
        bel_cum_sum(g->graph, g->output_grads[0], (int64_t)bel_attr_number(g->attrs, "axis", 0),
                    bel_attr_number(g->attrs, "exclusive", 0) != 0,
                    bel_attr_number(g->attrs, "reverse", 0) == 0);
}
