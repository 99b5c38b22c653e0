// Gradient rules of convolutions and pools. Each gradient is a separate operation with the
// original's attributes, so pads and strides are written once. The gradient of a transposed
// convolution is the convolution that it reverses.
#include <string.h>

#include "autodiff/rules.h"
#include "belfry/ops.h"
#include "ops/window.h"

void bel_grad_conv(bel_gradient *g)
{
    bel_value *x = g->inputs[0], *w = g->inputs[1], *dy = g->output_grads[0];
    if (g->needed[0]) {
        bel_value *inputs[] = {dy, w, x};
        g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_CONV_GRAD_INPUT, g->attrs, inputs, 3);
    }
    if (g->needed[1]) {
        bel_value *inputs[] = {dy, x, w};
        g->input_grads[1] = bel_graph_add(g->graph, BEL_OP_CONV_GRAD_WEIGHTS, g->attrs, inputs, 3);
    }
    if (g->input_count > 2 && g->needed[2]) {
        g->input_grads[2] = bel_graph_add(g->graph, BEL_OP_CHANNEL_SUM, NULL, &dy, 1);
    }
}

// Returns the attributes of the convolution, with the computed pads.
static bel_attr_list convolution_of(const bel_attr_list *attrs, const bel_window *w, int32_t rank)
{
    static const char *const kept[] = {"strides", "dilations", "group"};
    bel_attr_list made = {.count = 0};
    for (int i = 0; i < attrs->count; i++)
        for (size_t k = 0; k < sizeof kept / sizeof kept[0]; k++)
            if (strcmp(attrs->items[i].name, kept[k]) == 0)
                made.items[made.count++] = attrs->items[i];
    bel_shape pads = rank == 3 ? BEL_SHAPE(w->pad[1], w->pad_end[1])
                               : BEL_SHAPE(w->pad[0], w->pad[1], w->pad_end[0], w->pad_end[1]);
    made.items[made.count++] = (bel_attr){.name = "pads", .ints = pads};
    return made;
}

void bel_grad_conv_transpose(bel_gradient *g)
{
    bel_value *x = g->inputs[0], *w = g->inputs[1], *dy = g->output_grads[0];
    bel_shape x_shape = bel_value_shape(x), w_shape = bel_value_shape(w);
    bel_window window; // the shape rule has already accepted it
    bel_status_ignore(bel_window_make_transposed(g->attrs, &x_shape, w_shape.dims + 2, &window));
    bel_attr_list attrs = convolution_of(g->attrs, &window, x_shape.rank);
    if (g->needed[0]) {
        bel_value *inputs[] = {dy, w};
        g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_CONV, &attrs, inputs, 2);
    }
    if (g->needed[1]) {
        bel_value *inputs[] = {x, dy, w};
        g->input_grads[1] = bel_graph_add(g->graph, BEL_OP_CONV_GRAD_WEIGHTS, &attrs, inputs, 3);
    }
    if (g->input_count > 2 && g->needed[2]) {
        g->input_grads[2] = bel_graph_add(g->graph, BEL_OP_CHANNEL_SUM, NULL, &dy, 1);
    }
}

void bel_grad_max_pool(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0], g->outputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_MAX_POOL_GRAD, g->attrs, inputs, 3);
}

void bel_grad_average_pool(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_AVERAGE_POOL_GRAD, g->attrs, inputs, 2);
}
