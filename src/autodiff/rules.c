// Functions that several rules share. A gradient is summed to the shape of its input if the two
// shapes differ as they are now known: an open dimension equals itself, so the batch needs no sum.
// SumTo uses that input only for its shape and keeps no value alive.
#include "autodiff/rules.h"
#include "belfry/ops.h"

void bel_gradient_from_output(bel_gradient *g, bel_op op)
{
    bel_value *inputs[] = {g->output_grads[0], g->outputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, op, NULL, inputs, 2);
}

void bel_set_broadcast_grad(bel_gradient *g, int i, bel_value *grad)
{
    bel_shape have = bel_value_shape(grad), want = bel_value_shape(g->inputs[i]);
    if (!bel_shape_equal(&have, &want)) {
        bel_value *inputs[] = {grad, g->inputs[i]};
        grad = bel_graph_add(g->graph, BEL_OP_SUM_TO, NULL, inputs, 2);
    }
    g->input_grads[i] = grad;
}
